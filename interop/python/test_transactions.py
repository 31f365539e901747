"""Transactions of the SDK, with key-value operations and with statements."""

import uuid

import pytest
from couchbase.exceptions import DocumentExistsException, TransactionFailed
from couchbase.options import QueryOptions, TransactionQueryOptions

from conftest import BUCKET


@pytest.fixture
def key(collection):
    key = f"transaction:{uuid.uuid4()}"
    collection.upsert(key, {"n": 1})
    return key


def read(cluster, key):
    found = cluster.query(f"SELECT RAW n FROM `{BUCKET}` USE KEYS $1", QueryOptions(positional_parameters=[key]))
    return list(found.rows())


def by_key(*keys):
    return TransactionQueryOptions(positional_parameters=list(keys))


def test_statements_and_documents_are_committed_together(cluster, collection, key):
    def change(attempt):
        attempt.insert(collection, f"{key}:new", {"n": 5})
        # From here on, the SDK sends everything as statements.
        attempt.query(f"UPDATE `{BUCKET}` USE KEYS $1 SET n = n + 10", by_key(key))
        found = attempt.query(f"SELECT RAW n FROM `{BUCKET}` USE KEYS [$1, $2]", by_key(key, f"{key}:new"))
        assert list(found.rows()) == [11, 5]
        assert read(cluster, key) == [1], "another client does not see it"
        document = attempt.get(collection, f"{key}:new")
        attempt.replace(document, {"n": 6})

    cluster.transactions.run(change)
    assert read(cluster, key) == [11]
    assert collection.get(f"{key}:new").content_as[dict] == {"n": 6}


def test_a_failure_undoes_statements_and_documents(cluster, collection, key):
    def change(attempt):
        attempt.insert(collection, f"{key}:new", {"n": 5})
        attempt.query(f"UPDATE `{BUCKET}` USE KEYS $1 SET n = 2", by_key(key))
        attempt.remove(attempt.get(collection, key))
        raise RuntimeError("no")

    with pytest.raises(TransactionFailed):
        cluster.transactions.run(change)
    assert read(cluster, key) == [1]
    assert not collection.exists(f"{key}:new").exists


def test_an_insert_of_a_document_that_exists_is_reported_and_the_transaction_goes_on(cluster, key):
    seen = []

    def change(attempt):
        try:
            attempt.query(f"INSERT INTO `{BUCKET}` VALUES ($1, {{}})", by_key(key))
        except DocumentExistsException as error:
            seen.append(error)
        attempt.query(f"UPDATE `{BUCKET}` USE KEYS $1 SET n = 3", by_key(key))

    cluster.transactions.run(change)
    assert len(seen) == 1
    assert read(cluster, key) == [3]
