"""Replicas and durable writes."""

import threading
import time
from datetime import timedelta

import couchbase.subdocument as SD
import pytest
from couchbase.durability import (
    ClientDurability,
    DurabilityLevel,
    PersistTo,
    ReplicateTo,
    ServerDurability,
)
from couchbase.exceptions import (
    AmbiguousTimeoutException,
    DocumentUnretrievableException,
    DurabilityImpossibleException,
    DurabilitySyncWriteAmbiguousException,
)
from couchbase.options import (
    AppendOptions,
    DecrementOptions,
    GetAnyReplicaOptions,
    GetOptions,
    IncrementOptions,
    InsertOptions,
    MutateInOptions,
    PrependOptions,
    RemoveOptions,
    ReplaceOptions,
    SignedInt64,
    UpsertOptions,
)
from couchbase.transcoder import RawStringTranscoder


@pytest.mark.parametrize("level", list(DurabilityLevel))
def test_every_mutation_can_ask_for_every_level(collection, level):
    durability = ServerDurability(level)
    collection.insert("k", 1, InsertOptions(durability=durability))
    collection.upsert("k", 2, UpsertOptions(durability=durability))
    collection.replace("k", {"n": 3}, ReplaceOptions(durability=durability))
    collection.mutate_in("k", [SD.increment("n", 1)], MutateInOptions(durability=durability))
    assert collection.get("k").content_as[dict] == {"n": 4}
    collection.remove("k", RemoveOptions(durability=durability))
    binary, text = collection.binary(), RawStringTranscoder()
    initial = IncrementOptions(initial=SignedInt64(5), durability=durability)
    assert binary.increment("c", initial).content == 5
    assert binary.decrement("c", DecrementOptions(durability=durability)).content == 4
    collection.upsert("t", "b", UpsertOptions(transcoder=text))
    binary.append("t", "c", AppendOptions(durability=durability))
    binary.prepend("t", "a", PrependOptions(durability=durability))
    assert collection.get("t", GetOptions(transcoder=text)).content_as[str] == "abc"


def test_client_side_durability_observes_the_copies(collection):
    durability = ClientDurability(replicate_to=ReplicateTo.ONE, persist_to=PersistTo.ONE)
    collection.upsert("k", 1, UpsertOptions(durability=durability))
    collection.remove("k", RemoveOptions(durability=durability))


def test_durability_that_the_bucket_cannot_give_is_impossible(server, cluster):
    server.call("POST", "/buckets", {"name": "three", "replicas": 3, "vbuckets": 64})
    try:
        three = cluster.bucket("three").default_collection()
        with pytest.raises(DurabilityImpossibleException):
            three.upsert("k", 1, UpsertOptions(durability=ServerDurability(DurabilityLevel.MAJORITY)))
        three.upsert("k", 1)
    finally:
        server.call("DELETE", "/buckets/three")


def test_a_durable_write_whose_replica_does_not_answer_is_ambiguous(server, collection):
    collection.upsert("k", 0)
    holds = [server.call("POST", "/holds", {"what": "replication", "node": n})["id"] for n in range(3)]
    raised = []

    def write_durably():
        durability = ServerDurability(DurabilityLevel.MAJORITY)
        try:
            collection.upsert("k", 1, UpsertOptions(durability=durability, timeout=timedelta(seconds=3)))
        except Exception as error:  # examined below
            raised.append(error)

    try:
        writer = threading.Thread(target=write_durably)
        writer.start()
        assert in_progress(collection), "other writers were not kept out"
        writer.join()
        (error,) = raised
        assert isinstance(error, (DurabilitySyncWriteAmbiguousException, AmbiguousTimeoutException)), error
    finally:
        for hold in holds:
            server.call("DELETE", f"/holds/{hold}")


def in_progress(collection):
    """Whether a second writer is soon told that a durable write is in progress."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            collection.upsert("k", 2, UpsertOptions(timeout=timedelta(milliseconds=200)))
        except AmbiguousTimeoutException as error:
            return "key_value_sync_write_in_progress" in str(error)
    return False


def test_replicas_have_the_document_too(collection):
    collection.upsert("k", {"a": 1})
    assert collection.get_any_replica("k").content_as[dict] == {"a": 1}
    copies = list(collection.get_all_replicas("k"))
    assert sorted(copy.is_replica for copy in copies) == [False, True]
    assert [copy.content_as[dict] for copy in copies] == [{"a": 1}, {"a": 1}]


def test_a_document_that_no_copy_has_is_unretrievable(collection):
    with pytest.raises(DocumentUnretrievableException):
        collection.get_any_replica("missing")


def test_a_replica_answers_while_its_active_node_is_down(server, collection):
    _, since = server.journal()
    collection.upsert("k", 1)
    entries, _ = server.journal(since)
    node = entries[-1]["node"]
    server.topology("crash", node=node)
    try:
        patient = timedelta(seconds=10)
        found = collection.get_any_replica("k", GetAnyReplicaOptions(timeout=patient))
        assert found.content_as[int] == 1
        assert found.is_replica
    finally:
        server.topology("restart", node=node)
    assert collection.get("k", GetOptions(timeout=patient)).content_as[int] == 1
