"""Operations on parts of documents."""

from datetime import timedelta

import couchbase.subdocument as SD
import pytest
from couchbase.exceptions import (
    CasMismatchException,
    DocumentExistsException,
    DocumentNotFoundException,
    DocumentNotJsonException,
    PathExistsException,
    PathInvalidException,
    PathMismatchException,
    PathNotFoundException,
)
from couchbase.options import GetOptions, MutateInOptions, UpsertOptions
from couchbase.transcoder import RawStringTranscoder


def test_lookups_get_count_and_check_each_with_its_own_end(collection):
    document = {"a": {"b": [1, 2, 3]}, "dotted.key": 4}
    collection.upsert("k", document)
    result = collection.lookup_in(
        "k",
        [
            SD.get("a.b[-1]"),
            SD.exists("a.c"),
            SD.exists("a.b"),
            SD.count("a.b"),
            SD.get("`dotted.key`"),
            SD.get("missing"),
            SD.get("a.b.c"),
            SD.get("$document.exptime", xattr=True),
            SD.get_full(),
        ],
    )
    assert result.content_as[int](0) == 3
    assert not result.exists(1)
    assert result.exists(2)
    assert result.content_as[int](3) == 3
    assert result.content_as[int](4) == 4
    with pytest.raises(PathNotFoundException):
        result.content_as[int](5)
    with pytest.raises(PathMismatchException):
        result.content_as[int](6)
    assert result.content_as[int](7) == 0
    assert result.content_as[dict](8) == document


def test_a_lookup_wants_a_document_and_json(collection):
    with pytest.raises(DocumentNotFoundException):
        collection.lookup_in("k", [SD.get("a")])
    collection.upsert("k", "text", UpsertOptions(transcoder=RawStringTranscoder()))
    with pytest.raises(DocumentNotJsonException):
        collection.lookup_in("k", [SD.get("a")]).content_as[int](0)


def test_a_mutation_changes_all_its_paths(collection):
    collection.upsert("k", {"n": 1, "l": [2]})
    result = collection.mutate_in(
        "k",
        [
            SD.upsert("meta", {"by": "me"}, xattr=True),
            SD.upsert("a.b", 1, create_parents=True),
            SD.insert("c", 2),
            SD.replace("n", 10),
            SD.increment("n", 5),
            SD.decrement("n", 2),
            SD.array_append("l", 3, 4),
            SD.array_prepend("l", 1),
            SD.array_insert("l[0]", 0),
            SD.array_addunique("l", 9),
            SD.remove("c"),
        ],
    )
    assert result.content_as[int](4) == 15
    assert result.content_as[int](5) == 13
    expected = {"n": 13, "l": [0, 1, 2, 3, 4, 9], "a": {"b": 1}}
    assert collection.get("k").content_as[dict] == expected
    found = collection.lookup_in("k", [SD.get("meta.by", xattr=True)])
    assert found.content_as[str](0) == "me"


@pytest.mark.parametrize(
    "spec, error",
    [
        (SD.replace("x.y", 1), PathNotFoundException),
        (SD.upsert("x.y", 1), PathNotFoundException),
        (SD.remove("x"), PathNotFoundException),
        (SD.insert("n", 1), PathExistsException),
        (SD.array_addunique("l", 1), PathExistsException),
        (SD.array_append("n", 1), PathMismatchException),
        (SD.increment("l", 1), PathMismatchException),
        (SD.upsert("a..b", 1), PathInvalidException),
    ],
)
def test_a_mutation_is_refused_as_a_whole(collection, spec, error):
    stored = collection.upsert("k", {"n": 1, "l": [1]})
    with pytest.raises(error):
        collection.mutate_in("k", [SD.upsert("z", 1), spec])
    found = collection.get("k")
    assert found.content_as[dict] == {"n": 1, "l": [1]}
    assert found.cas == stored.cas


def test_a_mutation_can_make_its_document_and_want_its_cas(collection):
    def set_to(value, **options):
        return collection.mutate_in("k", [SD.upsert("n", value)], MutateInOptions(**options))

    with pytest.raises(DocumentNotFoundException):
        set_to(0)
    cas = set_to(1, store_semantics=SD.StoreSemantics.UPSERT).cas
    with pytest.raises(DocumentExistsException):
        set_to(2, store_semantics=SD.StoreSemantics.INSERT)
    set_to(2, cas=cas)
    with pytest.raises(CasMismatchException):
        set_to(3, cas=cas)
    assert collection.get("k").content_as[dict] == {"n": 2}


def test_a_macro_is_filled_in_by_the_server(collection):
    collection.upsert("k", {"n": 1})
    macro = SD.upsert("seen.cas", SD.MutationMacro.cas(), xattr=True, create_parents=True)
    cas = collection.mutate_in("k", [macro]).cas
    found = collection.lookup_in("k", [SD.get("seen.cas", xattr=True)]).content_as[str](0)
    # The macro is written in the byte order of the server's memory.
    assert int.from_bytes(bytes.fromhex(found[2:]), "little") == cas


def test_expiry_can_come_with_a_mutation_and_be_kept_by_one(server, collection):
    collection.upsert("k", {"n": 1})
    collection.mutate_in("k", [SD.upsert("n", 2)], MutateInOptions(expiry=timedelta(seconds=60)))
    collection.mutate_in("k", [SD.upsert("n", 3)], MutateInOptions(preserve_expiry=True))
    assert collection.get("k", GetOptions(with_expiry=True)).expiry_time is not None
    server.advance_clock(61)
    with pytest.raises(DocumentNotFoundException):
        collection.get("k")


def test_a_compressed_document_is_changed_in_place(collection):
    value = {"text": "x" * 100_000}
    collection.upsert("k", value)
    collection.mutate_in("k", [SD.upsert("more", 1)])
    assert collection.get("k").content_as[dict] == {**value, "more": 1}


def test_lookups_can_go_to_replicas(collection):
    collection.upsert("k", {"n": 1})
    assert collection.lookup_in_any_replica("k", [SD.get("n")]).content_as[int](0) == 1
    copies = list(collection.lookup_in_all_replicas("k", [SD.get("n")]))
    assert sorted(copy.is_replica for copy in copies) == [False, True]
    assert [copy.content_as[int](0) for copy in copies] == [1, 1]
