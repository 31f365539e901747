"""Operations on whole documents."""

import os
from datetime import timedelta

import pytest
from couchbase.exceptions import (
    CasMismatchException,
    CouchbaseException,
    DeltaInvalidException,
    DocumentExistsException,
    DocumentLockedException,
    DocumentNotFoundException,
    DocumentNotLockedException,
    RequestCanceledException,
)
from couchbase.options import (
    AppendOptions,
    DecrementOptions,
    DeltaValue,
    GetAndLockOptions,
    GetOptions,
    IncrementOptions,
    RemoveOptions,
    ReplaceOptions,
    SignedInt64,
    UpsertOptions,
)
from couchbase.transcoder import RawBinaryTranscoder, RawStringTranscoder

from conftest import BUCKET

MINUTE = timedelta(seconds=60)


def test_upsert_and_get_agree_on_content_and_cas(collection):
    stored = collection.upsert("k", {"a": 1})
    found = collection.get("k")
    assert found.content_as[dict] == {"a": 1}
    assert found.cas == stored.cas
    assert stored.mutation_token().bucket_name == BUCKET


def test_insert_makes_a_document_once(collection):
    collection.insert("k", 1)
    with pytest.raises(DocumentExistsException):
        collection.insert("k", 2)
    assert collection.get("k").content_as[int] == 1


def test_replace_and_remove_want_the_document_as_it_is(collection):
    old = collection.upsert("k", 1).cas
    new = collection.replace("k", 2, ReplaceOptions(cas=old)).cas
    with pytest.raises(CasMismatchException):
        collection.replace("k", 3, ReplaceOptions(cas=old))
    with pytest.raises(CasMismatchException):
        collection.remove("k", RemoveOptions(cas=old))
    collection.remove("k", RemoveOptions(cas=new))


@pytest.mark.parametrize(
    "operation",
    [
        lambda collection: collection.get("k"),
        lambda collection: collection.replace("k", 1),
        lambda collection: collection.remove("k"),
        lambda collection: collection.touch("k", MINUTE),
        lambda collection: collection.get_and_touch("k", MINUTE),
        lambda collection: collection.get_and_lock("k", MINUTE),
        lambda collection: collection.unlock("k", 1),
        lambda collection: collection.binary().append("k", "x"),
        lambda collection: collection.binary().prepend("k", "x"),
    ],
)
def test_what_needs_a_document_does_not_find_it(collection, operation):
    with pytest.raises(DocumentNotFoundException):
        operation(collection)


def test_exists_says_whether(collection):
    assert not collection.exists("k").exists
    stored = collection.upsert("k", 1)
    assert collection.exists("k").exists
    assert collection.exists("k").cas == stored.cas
    collection.remove("k")
    assert not collection.exists("k").exists


def test_a_document_expires_and_touching_it_gives_it_time(server, collection):
    collection.upsert("k", 1, UpsertOptions(expiry=MINUTE))
    assert collection.get("k", GetOptions(with_expiry=True)).expiry_time is not None
    collection.upsert("k", 2, UpsertOptions(preserve_expiry=True))
    server.advance_clock(30)
    collection.touch("k", MINUTE)
    server.advance_clock(45)
    assert collection.get_and_touch("k", MINUTE).content_as[int] == 2
    server.advance_clock(45)
    assert collection.get("k").content_as[int] == 2
    server.advance_clock(16)
    with pytest.raises(DocumentNotFoundException):
        collection.get("k")


def test_an_upsert_without_an_expiry_takes_the_old_one_away(server, collection):
    collection.upsert("k", 1, UpsertOptions(expiry=MINUTE))
    collection.upsert("k", 2)
    server.advance_clock(61)
    assert collection.get("k").content_as[int] == 2


def test_a_lock_keeps_writers_out_until_it_is_unlocked(collection):
    collection.upsert("k", 1)
    locked = collection.get_and_lock("k", timedelta(seconds=30))
    assert locked.content_as[int] == 1
    short = timedelta(milliseconds=300)
    with pytest.raises(DocumentLockedException) as raised:
        collection.upsert("k", 2, UpsertOptions(timeout=short))
    assert "key_value_locked" in str(raised.value)
    with pytest.raises(DocumentLockedException):
        collection.get_and_lock("k", MINUTE, GetAndLockOptions(timeout=short))
    assert collection.get("k").content_as[int] == 1
    collection.unlock("k", locked.cas)
    with pytest.raises(DocumentNotLockedException):
        collection.unlock("k", locked.cas)
    collection.upsert("k", 2)


def test_whoever_has_the_lock_may_write_which_ends_it(collection):
    collection.upsert("k", 1)
    locked = collection.get_and_lock("k", timedelta(seconds=30))
    collection.replace("k", 2, ReplaceOptions(cas=locked.cas))
    collection.upsert("k", 3)


def test_a_lock_ends_by_itself(server, collection):
    collection.upsert("k", 1)
    collection.get_and_lock("k", timedelta(seconds=15))
    server.advance_clock(16)
    collection.upsert("k", 2)


def test_counters_start_where_they_are_told_and_stop_at_zero(collection):
    binary = collection.binary()
    with pytest.raises(DocumentNotFoundException):
        binary.increment("k", IncrementOptions(initial=SignedInt64(-1)))
    assert binary.increment("k", IncrementOptions(initial=SignedInt64(10))).content == 10
    assert binary.increment("k", IncrementOptions(delta=DeltaValue(5))).content == 15
    assert binary.decrement("k", DecrementOptions(delta=DeltaValue(4))).content == 11
    assert binary.decrement("k", DecrementOptions(delta=DeltaValue(20))).content == 0
    collection.upsert("k", {"no": "number"})
    with pytest.raises(DeltaInvalidException):
        binary.increment("k")


def test_append_and_prepend_add_to_the_ends(collection):
    binary = collection.binary()
    text = RawStringTranscoder()
    collection.upsert("k", "b", UpsertOptions(transcoder=text))
    binary.append("k", "c")
    cas = binary.prepend("k", "a").cas
    assert collection.get("k", GetOptions(transcoder=text)).content_as[str] == "abc"
    binary.append("k", "d", AppendOptions(cas=cas))
    with pytest.raises(CasMismatchException):
        binary.append("k", "e", AppendOptions(cas=cas))


def test_large_binary_values_survive(collection):
    value = bytes(range(251)) * 4096
    raw = RawBinaryTranscoder()
    collection.upsert("k", value, UpsertOptions(transcoder=raw))
    assert collection.get("k", GetOptions(transcoder=raw)).content_as[bytes] == value


def test_compressible_values_survive(collection):
    value = {"text": "x" * 100_000}
    collection.upsert("k", value)
    assert collection.get("k").content_as[dict] == value


def test_a_value_that_is_too_large_is_refused(collection):
    raw = RawBinaryTranscoder()
    value = os.urandom(20 * 1024 * 1024 + 1)
    with pytest.raises(CouchbaseException) as raised:
        collection.upsert("k", value, UpsertOptions(transcoder=raw, timeout=timedelta(seconds=10)))
    # The SDK has no class of its own for this one.
    assert raised.value.error_code == 104, raised.value
    assert not collection.exists("k").exists


def test_a_projection_fetches_a_part(collection):
    collection.upsert("k", {"a": {"b": 1, "c": 2}, "d": 3})
    found = collection.get("k", GetOptions(project=["a.b", "d"]))
    assert found.content_as[dict] == {"a": {"b": 1}, "d": 3}


def test_temporary_failures_are_retried_and_applied_once(server, collection):
    fault = server.fault(opcode="SET", key="k", times=3, effect="answer", status="ETMPFAIL")
    _, since = server.journal()
    collection.upsert("k", 1)
    assert server.fired(fault) == 3
    entries, _ = server.journal(since)
    assert [entry["key"] for entry in entries] == ["k"]


def test_a_write_that_was_cut_off_after_it_was_applied_is_not_sent_again(server, collection):
    fault = server.fault(opcode="SET", key="k", times=1, effect="cut-after-applying")
    _, since = server.journal()
    with pytest.raises(RequestCanceledException):
        collection.upsert("k", 1)
    assert server.fired(fault) == 1
    entries, _ = server.journal(since)
    assert [entry["key"] for entry in entries] == ["k"]
    assert collection.get("k", GetOptions(timeout=timedelta(seconds=10))).content_as[int] == 1
