"""Every data operation of the official SDK against the cluster."""

from datetime import timedelta

import couchbase.subdocument as SD
import pytest
from couchbase.durability import DurabilityLevel, ServerDurability
from couchbase.exceptions import (
    AmbiguousTimeoutException,
    CasMismatchException,
    DocumentExistsException,
    DocumentLockedException,
    DocumentNotFoundException,
    DocumentNotLockedException,
    DurabilityImpossibleException,
    PathExistsException,
    PathMismatchException,
    PathNotFoundException,
    ScopeNotFoundException,
    UnAmbiguousTimeoutException,
)
from couchbase.options import (
    GetOptions,
    IncrementOptions,
    DecrementOptions,
    DeltaValue,
    ReplaceOptions,
    SignedInt64,
    UpsertOptions,
    RemoveOptions,
)
from couchbase.transcoder import RawBinaryTranscoder, RawStringTranscoder

from conftest import BUCKET


def test_upsert_get_and_their_cas(collection):
    stored = collection.upsert("k", {"a": 1})
    found = collection.get("k")
    assert found.content_as[dict] == {"a": 1}
    assert found.cas == stored.cas
    assert stored.mutation_token() is not None


def test_insert_replace_remove(collection):
    collection.insert("k", {"a": 1})
    with pytest.raises(DocumentExistsException):
        collection.insert("k", {"a": 1})
    replaced = collection.replace("k", {"a": 2})
    with pytest.raises(CasMismatchException):
        collection.replace("k", {"a": 3}, ReplaceOptions(cas=replaced.cas + 1))
    collection.replace("k", {"a": 3}, ReplaceOptions(cas=replaced.cas))
    with pytest.raises(CasMismatchException):
        collection.remove("k", RemoveOptions(cas=replaced.cas))
    collection.remove("k")
    for missing in (
        lambda: collection.get("k"),
        lambda: collection.replace("k", {}),
        lambda: collection.remove("k"),
        lambda: collection.touch("k", timedelta(seconds=1)),
    ):
        with pytest.raises(DocumentNotFoundException):
            missing()


def test_exists(collection):
    assert not collection.exists("k").exists
    stored = collection.upsert("k", 1)
    assert collection.exists("k").exists
    assert collection.exists("k").cas == stored.cas
    collection.remove("k")
    assert not collection.exists("k").exists


def test_expiry_passes_when_the_clock_is_set_forward(server, collection):
    collection.upsert("k", 1, UpsertOptions(expiry=timedelta(seconds=60)))
    assert collection.get("k", GetOptions(with_expiry=True)).expiry_time is not None
    collection.upsert("k", 2, UpsertOptions(preserve_expiry=True))
    server.call("POST", "/clock", {"advance_ms": 30_000})
    collection.touch("k", timedelta(seconds=60))
    server.call("POST", "/clock", {"advance_ms": 45_000})
    assert collection.get_and_touch("k", timedelta(seconds=60)).content_as[int] == 2
    server.call("POST", "/clock", {"advance_ms": 61_000})
    with pytest.raises(DocumentNotFoundException):
        collection.get("k")


def test_locks(collection):
    collection.upsert("k", 1)
    locked = collection.get_and_lock("k", timedelta(seconds=30))
    with pytest.raises((DocumentLockedException, AmbiguousTimeoutException, UnAmbiguousTimeoutException)):
        collection.upsert("k", 2, UpsertOptions(timeout=timedelta(milliseconds=300)))
    with pytest.raises((DocumentLockedException, CasMismatchException)):
        collection.unlock("k", locked.cas + 1)
    collection.unlock("k", locked.cas)
    with pytest.raises(DocumentNotLockedException):
        collection.unlock("k", locked.cas)
    collection.upsert("k", 2)


def test_counters(collection):
    binary = collection.binary()
    with pytest.raises(DocumentNotFoundException):
        binary.increment("k", IncrementOptions(initial=SignedInt64(-1)))
    assert binary.increment("k", IncrementOptions(initial=SignedInt64(10))).content == 10
    assert binary.increment("k", IncrementOptions(delta=DeltaValue(5))).content == 15
    assert binary.decrement("k", DecrementOptions(delta=DeltaValue(20))).content == 0


def test_append_and_prepend(collection):
    binary = collection.binary()
    text = RawStringTranscoder()
    collection.upsert("k", "b", UpsertOptions(transcoder=text))
    binary.append("k", "c")
    binary.prepend("k", "a")
    assert collection.get("k", GetOptions(transcoder=text)).content_as[str] == "abc"


def test_large_binary_values_survive(collection):
    value = bytes(range(256)) * 4096
    raw = RawBinaryTranscoder()
    collection.upsert("k", value, UpsertOptions(transcoder=raw))
    assert collection.get("k", GetOptions(transcoder=raw)).content_as[bytes] == value


def test_compressible_values_survive(collection):
    value = {"text": "x" * 100_000}
    collection.upsert("k", value)
    assert collection.get("k").content_as[dict] == value
    collection.mutate_in("k", [SD.upsert("more", 1)])
    assert collection.get("k").content_as[dict] == {**value, "more": 1}


def test_lookup_in(collection):
    collection.upsert("k", {"a": {"b": [1, 2, 3]}, "dotted.key": 4})
    result = collection.lookup_in(
        "k",
        [
            SD.get("a.b[-1]"),
            SD.exists("a.c"),
            SD.count("a.b"),
            SD.get("`dotted.key`"),
            SD.get("missing"),
            SD.get("$document.exptime", xattr=True),
        ],
    )
    assert result.content_as[int](0) == 3
    assert not result.exists(1)
    assert result.content_as[int](2) == 3
    assert result.content_as[int](3) == 4
    with pytest.raises(PathNotFoundException):
        result.content_as[int](4)
    assert result.content_as[int](5) == 0


def test_mutate_in(collection):
    collection.upsert("k", {"n": 1, "l": [2]})
    collection.mutate_in(
        "k",
        [
            SD.upsert("meta", {"by": "me"}, xattr=True),
            SD.upsert("a.b", 1, create_parents=True),
            SD.insert("c", 2),
            SD.replace("n", 10),
            SD.increment("n", 5),
            SD.array_append("l", 3, 4),
            SD.array_prepend("l", 1),
            SD.array_insert("l[0]", 0),
            SD.array_addunique("l", 9),
            SD.remove("c"),
        ],
    )
    assert collection.get("k").content_as[dict] == {
        "n": 15,
        "l": [0, 1, 2, 3, 4, 9],
        "a": {"b": 1},
    }
    found = collection.lookup_in("k", [SD.get("meta.by", xattr=True)])
    assert found.content_as[str](0) == "me"
    with pytest.raises(PathNotFoundException):
        collection.mutate_in("k", [SD.replace("x.y", 1)])
    with pytest.raises(PathExistsException):
        collection.mutate_in("k", [SD.insert("n", 1)])
    with pytest.raises(PathMismatchException):
        collection.mutate_in("k", [SD.array_append("n", 1)])
    with pytest.raises(DocumentNotFoundException):
        collection.mutate_in("missing", [SD.upsert("n", 1)])


@pytest.mark.parametrize("level", list(DurabilityLevel))
def test_durable_writes(collection, level):
    options = UpsertOptions(durability=ServerDurability(level))
    collection.upsert("k", 1, options)
    assert collection.get("k").content_as[int] == 1


def test_durability_that_the_bucket_cannot_give(server, cluster):
    server.call("POST", "/buckets", {"name": "three", "replicas": 3, "vbuckets": 64})
    try:
        three = cluster.bucket("three").default_collection()
        options = UpsertOptions(durability=ServerDurability(DurabilityLevel.MAJORITY))
        with pytest.raises(DurabilityImpossibleException):
            three.upsert("k", 1, options)
    finally:
        server.call("DELETE", "/buckets/three")


def test_a_durable_write_whose_replica_does_not_answer_is_ambiguous(server, collection):
    holds = [server.call("POST", "/holds", {"what": "replication", "node": n}) for n in range(3)]
    try:
        options = UpsertOptions(
            durability=ServerDurability(DurabilityLevel.MAJORITY), timeout=timedelta(seconds=2)
        )
        with pytest.raises(Exception) as raised:
            collection.upsert("k", 1, options)
        assert "Ambiguous" in type(raised.value).__name__
    finally:
        for hold in holds:
            server.call("DELETE", f"/holds/{hold['id']}")


def test_replicas(collection):
    collection.upsert("k", {"a": 1})
    assert collection.get_any_replica("k").content_as[dict] == {"a": 1}
    copies = list(collection.get_all_replicas("k"))
    assert sorted(copy.is_replica for copy in copies) == [False, True]
    with pytest.raises(Exception) as raised:
        collection.get_any_replica("missing")
    assert "Unretrievable" in type(raised.value).__name__ or "NotFound" in type(raised.value).__name__


def test_collections(server, cluster):
    server.call("POST", f"/buckets/{BUCKET}/scopes", {"name": "s"})
    server.call("POST", f"/buckets/{BUCKET}/scopes/s/collections", {"name": "c"})
    try:
        bucket = cluster.bucket(BUCKET)
        inside = bucket.scope("s").collection("c")
        inside.upsert("k", "inside")
        bucket.default_collection().upsert("k", "outside")
        assert inside.get("k").content_as[str] == "inside"
        with pytest.raises(ScopeNotFoundException):
            bucket.scope("none").collection("c").get("k")
        with pytest.raises(UnAmbiguousTimeoutException) as raised:
            bucket.scope("s").collection("none").get("k", GetOptions(timeout=timedelta(seconds=1)))
        assert "key_value_collection_outdated" in str(raised.value)
    finally:
        server.call("DELETE", f"/buckets/{BUCKET}/scopes/s")
