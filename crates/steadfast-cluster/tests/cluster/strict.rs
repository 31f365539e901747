//! Requests that a real server rejects before it does anything.

use steadfast_wire::subdoc::{DocFlags, PathFlags, SinglePath};
use steadfast_wire::{
    CollectionId, Datatype, DocumentKey, Encode, Feature, FrameBuilder, Opcode, Status,
};

use crate::subdocument::{lookup, mutate};
use crate::support::{Client, USUAL, one_node};

const NONE: PathFlags = PathFlags::empty();
const XATTR: PathFlags = PathFlags::XATTR;
const MACRO: PathFlags = XATTR.union(PathFlags::EXPAND_MACROS);

/// Sends a request and returns the status.
async fn status<F: Encode, E: Encode, K: Encode, V: Encode>(
    client: &mut Client,
    request: FrameBuilder<F, E, K, V>,
) -> Status {
    client.call(request).await.status()
}

#[tokio::test]
async fn parts_that_a_command_does_not_have_are_rejected() {
    let (cluster, mut client) = one_node().await;
    client.set("k", "1").await;
    for opcode in [Opcode::Get, Opcode::GetReplica, Opcode::Delete] {
        let on = |client: &Client| client.on(opcode, "k");
        let value = on(&client).value("no");
        assert_eq!(status(&mut client, value).await, Status::InvalidArguments);
        let extras = on(&client).extras([0; 4]);
        assert_eq!(status(&mut client, extras).await, Status::InvalidArguments);
    }
    for (opcode, extras) in [
        (Opcode::Get, 0),
        (Opcode::Add, 8),
        (Opcode::Increment, 20),
        (Opcode::Touch, 4),
        (Opcode::GetAndTouch, 4),
        (Opcode::GetLocked, 4),
        (Opcode::GetMeta, 0),
    ] {
        let request = client.on(opcode, "k").extras(vec![0; extras]).cas(7);
        let found = status(&mut client, request).await;
        assert_eq!(found, Status::InvalidArguments, "{opcode} with a CAS");
    }
    for opcode in [
        Opcode::Noop,
        Opcode::Version,
        Opcode::SaslListMechs,
        Opcode::GetClusterConfig,
        Opcode::GetCollectionsManifest,
        Opcode::ObserveSeqno,
    ] {
        let request = FrameBuilder::request(opcode).key("k");
        let found = status(&mut client, request).await;
        assert_eq!(found, Status::InvalidArguments, "{opcode} with a key");
    }
    let unlock = client.on(Opcode::UnlockKey, "k");
    assert_eq!(status(&mut client, unlock).await, Status::InvalidArguments);
    let without_extras = client.on(Opcode::Set, "k").value("2");
    let found = status(&mut client, without_extras).await;
    assert_eq!(found, Status::InvalidArguments);
    assert_eq!(client.get("k").await.value(), b"1", "nothing was done");
    assert_eq!(cluster.journal().applied(), 1);
}

#[tokio::test]
async fn datatypes_are_those_of_the_command_and_of_the_connection() {
    let (_cluster, mut client) = one_node().await;
    for (opcode, extras, datatype, expected) in [
        (Opcode::Set, 8, 1, Status::Success),
        (Opcode::Set, 8, 2, Status::InvalidArguments),
        (Opcode::Set, 8, 4, Status::InvalidArguments),
        (Opcode::Set, 8, 8, Status::InvalidArguments),
        (Opcode::Get, 0, 0, Status::Success),
        (Opcode::Get, 0, 1, Status::InvalidArguments),
        (Opcode::Delete, 0, 1, Status::InvalidArguments),
        (Opcode::GetMeta, 0, 1, Status::InvalidArguments),
    ] {
        let value = if opcode == Opcode::Set { "1" } else { "" };
        let request = client.on(opcode, "k").extras(vec![0; extras]).value(value);
        let request = request.datatype(Datatype::from_bits_retain(datatype));
        let found = status(&mut client, request).await;
        assert_eq!(found, expected, "{opcode} with datatype {datatype}");
    }
    client.hello(&[Feature::Collections]).await;
    let json = client.storing(Opcode::Set, "k", "1");
    let json = json.datatype(Datatype::JSON);
    assert_eq!(status(&mut client, json).await, Status::InvalidArguments);
}

#[tokio::test]
async fn frame_infos_are_known_and_belong_to_the_command() {
    let (_cluster, mut client) = one_node().await;
    let (durable, preserving, unknown) = (&[0x11, 1][..], &[0x50][..], &[0x30][..]);
    for (opcode, framing, expected) in [
        (Opcode::Get, durable, Status::InvalidArguments),
        (Opcode::GetMeta, durable, Status::InvalidArguments),
        (Opcode::UnlockKey, durable, Status::InvalidArguments),
        (Opcode::Set, durable, Status::Success),
        (Opcode::Get, preserving, Status::NotSupported),
        (Opcode::Add, preserving, Status::NotSupported),
        (Opcode::Delete, preserving, Status::NotSupported),
        (Opcode::Set, preserving, Status::Success),
        (Opcode::Get, unknown, Status::UnknownFrameInfo),
        (Opcode::Set, unknown, Status::UnknownFrameInfo),
        (Opcode::Set, &[0x11, 0], Status::DurabilityInvalidLevel),
        (Opcode::Set, &[0x11, 4], Status::DurabilityInvalidLevel),
        (
            Opcode::Set,
            &[0x13, 1, 0, 0],
            Status::DurabilityInvalidLevel,
        ),
        (
            Opcode::Set,
            &[0x13, 1, 255, 255],
            Status::DurabilityInvalidLevel,
        ),
        (Opcode::Set, &[0x12, 1, 0], Status::InvalidArguments),
        (Opcode::Set, &[0x13, 1], Status::InvalidArguments),
        (Opcode::Noop, unknown, Status::UnknownFrameInfo),
    ] {
        let extras = if matches!(opcode, Opcode::Set | Opcode::Add) {
            8
        } else {
            0
        };
        let cas = u64::from(opcode == Opcode::UnlockKey);
        let found = match opcode {
            Opcode::Noop => {
                let request = FrameBuilder::request(opcode).framing(framing);
                status(&mut client, request).await
            }
            _ => {
                let request = client.on(opcode, "k").framing(framing).cas(cas);
                status(&mut client, request.extras(vec![0; extras])).await
            }
        };
        assert_eq!(found, expected, "{opcode} with {framing:x?}");
    }
}

#[tokio::test]
async fn reserved_collections_are_invalid_and_others_unknown() {
    let (_cluster, mut client) = one_node().await;
    for (collection, expected) in [
        (1, Status::InvalidArguments),
        (7, Status::InvalidArguments),
        (0x99, Status::UnknownCollection),
    ] {
        let key = DocumentKey::new(CollectionId(collection), b"k");
        let get = FrameBuilder::request(Opcode::Get).key(key);
        assert_eq!(status(&mut client, get).await, expected, "{collection}");
    }
}

#[tokio::test]
async fn names_that_cannot_be_ones_are_invalid_without_a_body() {
    let (_cluster, mut client) = one_node().await;
    let (longest, too_long) = ("x".repeat(251), "x".repeat(252));
    for (path, expected) in [
        ("inv!entory.airline".to_owned(), Status::InvalidArguments),
        ("_default.air line".to_owned(), Status::InvalidArguments),
        (format!("_default.{too_long}"), Status::InvalidArguments),
        (format!("{too_long}.c"), Status::InvalidArguments),
        (format!("_default.{longest}"), Status::UnknownCollection),
    ] {
        let asked = FrameBuilder::request(Opcode::GetCollectionId).value(path.as_bytes());
        let answer = client.call(asked).await;
        assert_eq!(answer.status(), expected, "{path}");
        let has_body = expected != Status::InvalidArguments;
        assert_eq!(!answer.value().is_empty(), has_body, "{path}");
    }
    let asked = FrameBuilder::request(Opcode::GetScopeId).value("inv!entory");
    let answer = client.call(asked).await;
    assert_eq!(answer.status(), Status::InvalidArguments);
    assert!(answer.value().is_empty());
}

#[tokio::test]
async fn lookups_have_no_flags_and_no_expiry_of_mutations() {
    let (_cluster, mut client) = one_node().await;
    client.set("k", "{\"a\":1}").await;
    let get = [(Opcode::SubdocGet, "a", NONE)];
    for flags in [
        DocFlags::UPSERT,
        DocFlags::INSERT,
        DocFlags::CREATE_AS_DELETED,
        DocFlags::REVIVE,
        DocFlags::ACCESS_DELETED | DocFlags::REPLICA_READ,
    ] {
        let (found, _) = lookup(&mut client, "k", &get, flags).await;
        assert_eq!(found, Status::InvalidArguments, "{flags:?}");
        let single = SinglePath {
            doc_flags: flags,
            ..SinglePath::lookup(b"a")
        };
        let request = client.on(Opcode::SubdocGet, "k").extras(single.extras());
        let found = status(&mut client, request.value(single.body())).await;
        assert_eq!(found, Status::InvalidArguments, "{flags:?}");
    }
    for flags in [PathFlags::CREATE_PARENTS, MACRO] {
        let get = [(Opcode::SubdocGet, "a", flags)];
        let (found, _) = lookup(&mut client, "k", &get, DocFlags::empty()).await;
        assert_eq!(found, Status::InvalidArguments, "{flags:?}");
    }
    let expiring = SinglePath {
        expiry: Some(1),
        ..SinglePath::lookup(b"a")
    };
    let request = client.on(Opcode::SubdocGet, "k").extras(expiring.extras());
    let found = status(&mut client, request.value(expiring.body())).await;
    assert_eq!(found, Status::InvalidArguments);
}

#[tokio::test]
async fn one_path_creates_a_tombstone_only_in_an_attribute_and_with_upsert_or_insert() {
    let (_cluster, mut client) = one_node().await;
    let tombstone = DocFlags::CREATE_AS_DELETED | DocFlags::ACCESS_DELETED;
    for (doc_flags, flags, expected) in [
        (tombstone, XATTR, Status::InvalidArguments),
        (tombstone | DocFlags::UPSERT, NONE, Status::InvalidArguments),
        (
            tombstone | DocFlags::UPSERT,
            XATTR,
            Status::SubdocSuccessDeleted,
        ),
    ] {
        let single = SinglePath {
            flags,
            doc_flags,
            ..SinglePath::mutation(b"a", b"1")
        };
        let request = client.on(Opcode::SubdocDictUpsert, "k");
        let request = request.extras(single.extras()).value(single.body());
        let found = status(&mut client, request).await;
        assert_eq!(found, expected, "{doc_flags:?} {flags:?}");
    }
}

#[tokio::test]
async fn invalid_subdocument_requests_are_rejected_as_a_whole() {
    let (cluster, mut client) = one_node().await;
    client.set("k", "{}").await;
    let upsert = Opcode::SubdocDictUpsert;
    let (longest, too_long) = ("x".repeat(15), "x".repeat(16));
    let nothing = DocFlags::empty();
    let first = (upsert, "one", "1", XATTR);
    for (spec, flags, expected) in [
        (
            (upsert, "two", "1", XATTR),
            nothing,
            Status::SubdocXattrInvalidKeyCombo,
        ),
        (
            (upsert, "one.a", "\"${Nonsense}\"", MACRO),
            nothing,
            Status::SubdocXattrUnknownMacro,
        ),
        (
            (upsert, "$document.a", "1", XATTR),
            nothing,
            Status::SubdocXattrCannotModifyVattr,
        ),
        (
            (upsert, too_long.as_str(), "1", XATTR),
            nothing,
            Status::XattrInvalid,
        ),
        ((upsert, "", "1", XATTR), nothing, Status::XattrInvalid),
        ((upsert, "!x", "1", XATTR), nothing, Status::XattrInvalid),
        ((upsert, "", "1", NONE), nothing, Status::InvalidArguments),
        ((upsert, "a", "", NONE), nothing, Status::InvalidArguments),
        (
            (Opcode::SubdocDelete, "a", "1", NONE),
            nothing,
            Status::InvalidArguments,
        ),
        (
            (Opcode::SubdocReplace, "", "1", NONE),
            nothing,
            Status::InvalidArguments,
        ),
        (
            (Opcode::SubdocGet, "a", "", NONE),
            nothing,
            Status::SubdocInvalidCombo,
        ),
        (
            (upsert, "a", "1", NONE),
            DocFlags::REVIVE,
            Status::InvalidArguments,
        ),
        (
            (upsert, "a", "1", NONE),
            DocFlags::REPLICA_READ,
            Status::InvalidArguments,
        ),
    ] {
        let answer = mutate(&mut client, "k", &[first, spec], flags).await;
        assert_eq!(answer.status(), expected, "{spec:?}");
    }
    assert_eq!(cluster.journal().applied(), 1, "nothing was done");
    let good = [(upsert, longest.as_str(), "1", XATTR)];
    let answer = mutate(&mut client, "k", &good, nothing).await;
    assert_eq!(answer.status(), Status::Success);
    let keys = [
        (Opcode::SubdocGet, "one", XATTR),
        (Opcode::SubdocGet, "$document", XATTR),
        (Opcode::SubdocGet, "two", XATTR),
    ];
    let (found, _) = lookup(&mut client, "k", &keys, nothing).await;
    assert_eq!(found, Status::SubdocXattrInvalidKeyCombo);
    let asked = [USUAL, &[Feature::SubdocAllowsAccessOnMultipleXattrKeys]].concat();
    client.hello(&asked).await;
    let (found, _) = lookup(&mut client, "k", &keys, nothing).await;
    assert_eq!(found, Status::SubdocMultiPathFailure);
}

#[tokio::test]
async fn an_insert_of_a_locked_document_finds_that_it_exists() {
    let (_cluster, mut client) = one_node().await;
    client.set("k", "1").await;
    client.lock("k", 30).await;
    let add = client.store(Opcode::Add, "k", "2", 0).await;
    assert_eq!(add.status(), Status::KeyExists);
    assert_eq!(client.set("k", "2").await.status(), Status::Locked);
}
