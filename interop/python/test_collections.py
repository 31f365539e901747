"""Scopes and collections that are created and dropped."""

import threading
from datetime import timedelta

import pytest
from couchbase.exceptions import (
    DocumentNotFoundException,
    ScopeNotFoundException,
    UnAmbiguousTimeoutException,
)
from couchbase.options import GetOptions, UpsertOptions

from conftest import BUCKET

SCOPES = f"/buckets/{BUCKET}/scopes"


@pytest.fixture
def scope(server, cluster):
    server.call("POST", SCOPES, {"name": "s"})
    server.call("POST", f"{SCOPES}/s/collections", {"name": "c"})
    yield cluster.bucket(BUCKET).scope("s")
    server.call("DELETE", f"{SCOPES}/s")


def test_the_same_key_in_two_collections_is_two_documents(scope, collection):
    inside = scope.collection("c")
    inside.upsert("k", "inside")
    collection.upsert("k", "outside")
    assert inside.get("k").content_as[str] == "inside"
    assert collection.get("k").content_as[str] == "outside"


def test_an_unknown_scope_is_not_found(cluster):
    with pytest.raises(ScopeNotFoundException):
        cluster.bucket(BUCKET).scope("none").collection("c").get("k")


def test_an_unknown_collection_is_looked_for_until_the_time_is_up(scope):
    with pytest.raises(UnAmbiguousTimeoutException) as raised:
        scope.collection("none").get("k", GetOptions(timeout=timedelta(seconds=1)))
    assert "key_value_collection_outdated" in str(raised.value)


def test_a_collection_that_comes_meanwhile_is_found(server, scope):
    later = scope.collection("later")
    results = []
    options = UpsertOptions(timeout=timedelta(seconds=10))
    writer = threading.Thread(target=lambda: results.append(later.upsert("k", 1, options)))
    writer.start()
    server.call("POST", f"{SCOPES}/s/collections", {"name": "later"})
    writer.join()
    assert len(results) == 1


def test_a_collection_that_is_dropped_and_made_again_is_another_one(server, scope):
    collection = scope.collection("c")
    collection.upsert("k", 1)
    server.call("DELETE", f"{SCOPES}/s/collections/c")
    server.call("POST", f"{SCOPES}/s/collections", {"name": "c"})
    with pytest.raises(DocumentNotFoundException):
        collection.get("k", GetOptions(timeout=timedelta(seconds=10)))
    collection.upsert("k", 2)
    assert collection.get("k").content_as[int] == 2
