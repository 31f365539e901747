//! Subdocument commands against a real socket.

use crate::support::{Client, USUAL, one_node};
use bytes::BytesMut;
use serde_json::{Value, json};
use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::parse_opcode;
use steadfast_wire::Opcode::{self, *};
use steadfast_wire::Status::{
    SubdocPathExists as PathExists, SubdocPathMismatch as PathMismatch,
    SubdocPathNotFound as PathNotFound, Success,
};
use steadfast_wire::subdoc::{
    DocFlags, LookupResult, LookupSpec, MultiExtras, MutationOutcome, MutationSpec, PathFlags,
    SinglePath,
};
use steadfast_wire::{Encode, Entries, Feature, Frame, Status};

const NONE: PathFlags = PathFlags::empty();
const XATTR: PathFlags = PathFlags::XATTR;
const NO_FLAGS: DocFlags = DocFlags::empty();

async fn with_document(body: &str) -> (TestCluster, Client) {
    let (cluster, mut client) = one_node().await;
    client.set("k", body).await;
    (cluster, client)
}

/// The same for a client that may name several attributes in one request.
async fn with_several_attributes(body: &str) -> (TestCluster, Client) {
    let (cluster, mut client) = with_document(body).await;
    let several = [Feature::SubdocAllowsAccessOnMultipleXattrKeys];
    let asked = [USUAL, &several].concat();
    assert_eq!(client.hello(&asked).await.len(), asked.len());
    (cluster, client)
}

pub(crate) async fn lookup(
    client: &mut Client,
    key: &str,
    specs: &[(Opcode, &str, PathFlags)],
    flags: DocFlags,
) -> (Status, Vec<(Status, String)>) {
    let mut value = BytesMut::new();
    for &(opcode, path, flags) in specs {
        let path = path.as_bytes();
        let spec = LookupSpec {
            opcode,
            flags,
            path,
        };
        spec.append_to(&mut value).unwrap();
    }
    let answer = call_multi(client, SubdocMultiLookup, key, flags, value).await;
    if answer.status() == Status::InvalidArguments {
        // The body is an explanation.
        return (answer.status(), Vec::new());
    }
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let results = Entries::<LookupResult<'_>>::new(answer.value())
        .map(Result::unwrap)
        .map(|result| (result.status, text(result.value)));
    (answer.status(), results.collect())
}

/// Looks up the paths of these rows in one request, and compares the result of each.
async fn check_lookup(
    client: &mut Client,
    status: Status,
    rows: &[(Opcode, &str, PathFlags, Status, &str)],
) {
    let specs: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.2)).collect();
    let expected = rows.iter().map(|row| (row.3, row.4.to_owned())).collect();
    let found = lookup(client, "k", &specs, NO_FLAGS).await;
    assert_eq!(found, (status, expected));
}

pub(crate) async fn mutate(
    client: &mut Client,
    key: &str,
    specs: &[(Opcode, &str, &str, PathFlags)],
    flags: DocFlags,
) -> Frame {
    let mut body = BytesMut::new();
    for &(opcode, path, value, flags) in specs {
        let (path, value) = (path.as_bytes(), value.as_bytes());
        let spec = MutationSpec {
            opcode,
            flags,
            path,
            value,
        };
        spec.append_to(&mut body).unwrap();
    }
    call_multi(client, SubdocMultiMutation, key, flags, body).await
}

async fn call_multi(
    client: &mut Client,
    opcode: Opcode,
    key: &str,
    doc_flags: DocFlags,
    value: BytesMut,
) -> Frame {
    let expiry = None;
    let extras = MultiExtras {
        expiry,
        doc_flags,
        ..MultiExtras::default()
    };
    let request = client.on(opcode, key).extras(extras);
    client.call(request.value(value.to_vec())).await
}

async fn body(client: &mut Client, key: &str) -> Value {
    serde_json::from_slice(client.get(key).await.value()).unwrap()
}

#[tokio::test]
async fn a_lookup_has_a_result_for_each_path_and_says_that_some_failed() {
    let (_cluster, mut client) = with_document(r#"{"a":[1,2],"b":{}}"#).await;
    let found = [
        (
            SubdocGet,
            "$document.datatype",
            XATTR,
            Success,
            r#"["json"]"#,
        ),
        (SubdocGet, "$document.value_bytes", XATTR, Success, "18"),
        (SubdocGet, "$document.exptime", XATTR, Success, "0"),
        (SubdocGet, "a[-1]", NONE, Success, "2"),
        (SubdocExists, "b", NONE, Success, ""),
        (SubdocGetCount, "a", NONE, Success, "2"),
        (Get, "", NONE, Success, r#"{"a":[1,2],"b":{}}"#),
    ];
    check_lookup(&mut client, Success, &found).await;
    let unknown = Status::SubdocXattrUnknownVattr;
    let some_failed = [
        (SubdocGet, "$nothing", XATTR, unknown, ""),
        (SubdocGet, "none", NONE, PathNotFound, ""),
        (SubdocGet, "a.x", NONE, PathMismatch, ""),
        (SubdocGet, "a[", NONE, Status::SubdocPathInvalid, ""),
        (SubdocGet, "b", NONE, Success, "{}"),
    ];
    check_lookup(&mut client, Status::SubdocMultiPathFailure, &some_failed).await;
    let a = (SubdocGet, "a", NONE);
    for (key, specs, status) in [
        ("none", &[a][..], Status::KeyNotFound),
        ("k", &[], Status::SubdocInvalidCombo),
        ("k", &[(Touch, "a", NONE)], Status::SubdocInvalidCombo),
        ("k", &[a; 17], Status::SubdocInvalidCombo),
        (
            "k",
            &[a, (SubdocGet, "x", XATTR)],
            Status::SubdocInvalidXattrOrder,
        ),
    ] {
        assert_eq!(lookup(&mut client, key, specs, NO_FLAGS).await.0, status);
    }
    client.set("k", "no json").await;
    let (_, raw) = lookup(&mut client, "k", &[a], NO_FLAGS).await;
    assert_eq!(raw[0].0, Status::SubdocDocNotJson);
}

#[tokio::test]
async fn mutations_happen_together_or_not_at_all() {
    let (_cluster, mut client) = with_document(r#"{"n":1,"l":[]}"#).await;
    let specs = [
        (SubdocDictUpsert, "x", "\"y\"", NONE),
        (SubdocCounter, "n", "41", NONE),
        (SubdocArrayPushLast, "l", "1,2", NONE),
        (SubdocArrayAddUnique, "l", "3", NONE),
        (SubdocDictAdd, "d.e.f", "true", PathFlags::CREATE_PARENTS),
    ];
    let answer = mutate(&mut client, "k", &specs, NO_FLAGS).await;
    assert_eq!(answer.status(), Success);
    let Some(MutationOutcome::Done(mut done)) =
        MutationOutcome::decode(answer.status(), answer.value()).unwrap()
    else {
        panic!("it was done");
    };
    let counted = done.next().unwrap().unwrap();
    assert_eq!((counted.index, counted.value), (1, &b"42"[..]));
    assert!(done.next().is_none());
    let expected = json!({"n": 42, "l": [1, 2, 3], "x": "y", "d": {"e": {"f": true}}});
    assert_eq!(body(&mut client, "k").await, expected);

    let specs = [
        (SubdocDelete, "x", "", NONE),
        (SubdocReplace, "none", "1", NONE),
    ];
    let answer = mutate(&mut client, "k", &specs, NO_FLAGS).await;
    assert_eq!(answer.status(), Status::SubdocMultiPathFailure);
    let failure = MutationOutcome::failure_body(1, PathNotFound);
    assert_eq!(answer.value(), failure);
    assert_eq!(body(&mut client, "k").await, expected);
}

#[tokio::test]
async fn documents_are_created_added_and_refused_as_the_flags_say() {
    let (_cluster, mut client) = one_node().await;
    let add = [(SubdocDictAdd, "a", "1", NONE)];
    let both = DocFlags::UPSERT | DocFlags::INSERT;
    for (flags, status) in [
        (NO_FLAGS, Status::KeyNotFound),
        (DocFlags::UPSERT, Success),
        (DocFlags::INSERT, Status::KeyExists),
        (both, Status::InvalidArguments),
    ] {
        let answer = mutate(&mut client, "k", &add, flags).await;
        assert_eq!(answer.status(), status, "{flags:?}");
    }
    let twice = mutate(&mut client, "k", &add, DocFlags::UPSERT).await;
    let failure = MutationOutcome::failure_body(0, PathExists);
    assert_eq!(twice.value(), failure);
    let array = [(SubdocArrayPushLast, "", "1", NONE)];
    mutate(&mut client, "l", &array, DocFlags::INSERT).await;
    assert_eq!(body(&mut client, "l").await, json!([1]));
}

#[tokio::test]
async fn xattrs_live_beside_the_body_and_macros_are_filled_in() {
    let (_cluster, mut client) = with_several_attributes("{}").await;
    let (with_parents, with_macros) = (PathFlags::CREATE_PARENTS, PathFlags::EXPAND_MACROS);
    let cas_macro = "\"${Mutation.CAS}\"";
    let specs = [
        (SubdocDictUpsert, "meta.by", "\"me\"", XATTR | with_parents),
        (SubdocDictUpsert, "_sys", cas_macro, XATTR | with_macros),
        (SubdocDictUpsert, "a", "1", NONE),
    ];
    let answer = mutate(&mut client, "k", &specs, NO_FLAGS).await;
    assert_eq!(answer.status(), Success);
    assert_eq!(body(&mut client, "k").await, json!({"a": 1}));
    let cas = format!("\"{:#018x}\"", answer.header().cas.swap_bytes());
    let rows = [
        (SubdocGet, "meta.by", XATTR, Success, "\"me\""),
        (SubdocGet, "_sys", XATTR, Success, &cas),
    ];
    check_lookup(&mut client, Success, &rows).await;
    client.set("k", "{\"new\":true}").await;
    let read = rows.map(|row| (row.0, row.1, row.2));
    let (kept, _) = lookup(&mut client, "k", &read, NO_FLAGS).await;
    assert_eq!(kept, Success, "a store keeps the xattrs");

    client.remove("k", 0).await;
    let (gone, _) = lookup(&mut client, "k", &read, NO_FLAGS).await;
    assert_eq!(gone, Status::KeyNotFound);
    let (status, parts) = lookup(&mut client, "k", &read, DocFlags::ACCESS_DELETED).await;
    assert_eq!(status, Status::SubdocMultiPathFailureDeleted);
    assert_eq!((parts[0].0, parts[1].0), (PathNotFound, Success));

    client.set("k", "{}").await;
    let order = [
        (SubdocDictUpsert, "a", "1", NONE),
        (SubdocDictUpsert, "x", "1", XATTR),
    ];
    let refused = mutate(&mut client, "k", &order, NO_FLAGS).await;
    assert_eq!(refused.status(), Status::SubdocInvalidXattrOrder);
}

#[tokio::test]
async fn tombstones_are_created_and_revived() {
    let (_cluster, mut client) = one_node().await;
    let staged = [(SubdocDictUpsert, "_txn", "1", XATTR)];
    let flags = DocFlags::INSERT | DocFlags::ACCESS_DELETED | DocFlags::CREATE_AS_DELETED;
    let created = mutate(&mut client, "k", &staged, flags).await;
    assert!(created.status().is_success());
    // A transaction that replaces what it inserted.
    let staged = [(SubdocDictUpsert, "_txn", "2", XATTR)];
    let flags = DocFlags::ACCESS_DELETED | DocFlags::CREATE_AS_DELETED;
    let again = mutate(&mut client, "k", &staged, flags).await;
    assert_eq!(again.status(), Status::SubdocSuccessDeleted);
    let find = [(SubdocGet, "_txn", XATTR)];
    let (_, found) = lookup(&mut client, "k", &find, DocFlags::ACCESS_DELETED).await;
    assert_eq!(found, [(Success, "2".to_owned())]);
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let revive = [
        (SubdocDelete, "_txn", "", XATTR),
        (Set, "", "{\"v\":1}", NONE),
    ];
    let flags = DocFlags::ACCESS_DELETED | DocFlags::REVIVE;
    let revived = mutate(&mut client, "k", &revive, flags).await;
    assert!(revived.status().is_success());
    assert_eq!(body(&mut client, "k").await, json!({"v": 1}));
    let again = mutate(&mut client, "k", &revive, flags).await;
    assert_eq!(again.status(), Status::SubdocCanOnlyReviveDeletedDocuments);
}

#[tokio::test]
async fn single_paths_have_the_effect_or_the_status_of_their_path() {
    let (_cluster, mut client) = with_document("{}").await;
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    let long = [
        format!("{{}} | DICT_ADD | a | {deep} | SUBDOC_VALUE_ETOODEEP"),
        format!("{{}} | GET | {} | | EINVAL", "x".repeat(1025)),
        format!(
            "{{}} | GET | {} | | SUBDOC_PATH_ENOENT",
            ["x"; 32].join(".")
        ),
        format!("{{}} | GET | {} | | SUBDOC_PATH_E2BIG", ["x"; 33].join(".")),
    ];
    let rows = include_str!("subdocument.txt").lines();
    let rows = rows.chain(long.iter().map(String::as_str));
    for row in rows.filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let cells: Vec<&str> = row.split(" |").map(str::trim).collect();
        let [document, command, path, value, expected] = cells[..] else {
            panic!("{row}");
        };
        client.set("k", document).await;
        let flags = match command.ends_with('+') {
            true => PathFlags::CREATE_PARENTS,
            false => NONE,
        };
        let name = format!("SUBDOC_{}", command.trim_end_matches('+'));
        let single = SinglePath {
            flags,
            ..SinglePath::mutation(path.as_bytes(), value.as_bytes())
        };
        let request = client.on(parse_opcode(&name).unwrap(), "k");
        let request = request.extras(single.extras()).value(single.body());
        let answer = client.call(request).await;
        let now = client.get("k").await;
        if expected.starts_with(['{', '[']) {
            assert_eq!(answer.status(), Success, "{row}");
            assert_eq!(now.value(), expected.as_bytes(), "{row}");
        } else if let Some(text) = expected.strip_prefix('=') {
            assert_eq!(answer.value(), text.trim().as_bytes(), "{row}");
        } else {
            assert_eq!(answer.status().name(), Some(expected), "{row}");
            assert_eq!(now.value(), document.as_bytes(), "{row}");
        }
    }
    let malformed = client.on(SubdocGet, "k").extras([0, 9, 0]).value("short");
    let status = client.call(malformed).await.status();
    assert_eq!(status, Status::InvalidArguments);
}

/// The commit of a transaction: a staged attribute becomes the body, and goes.
#[tokio::test]
async fn an_attribute_replaces_the_body() {
    let (cluster, mut client) = with_document(r#"{"old":true}"#).await;
    let stage = [(
        SubdocDictUpsert,
        "txn",
        r#"{"op":{"stgd":{"new":1}}}"#,
        XATTR,
    )];
    assert_eq!(
        mutate(&mut client, "k", &stage, NO_FLAGS).await.status(),
        Success
    );
    let commit = [
        (SubdocReplaceBodyWithXattr, "txn.op.stgd", "", XATTR),
        (SubdocDelete, "txn", "", XATTR),
    ];
    let committed = mutate(&mut client, "k", &commit, NO_FLAGS).await;
    assert_eq!(committed.status(), Success);
    assert_eq!(body(&mut client, "k").await, json!({"new": 1}));
    let document = cluster.document("b", ".", b"k").unwrap().unwrap();
    assert!(document.xattrs.is_none());
    let missing = mutate(&mut client, "k", &commit[..1], NO_FLAGS).await;
    assert_eq!(missing.status(), Status::SubdocMultiPathFailure);
    assert_eq!(body(&mut client, "k").await, json!({"new": 1}));
    for (flags, status) in [
        (NONE, Status::SubdocInvalidCombo),
        (XATTR | PathFlags::CREATE_PARENTS, Status::InvalidArguments),
    ] {
        let spec = [(SubdocReplaceBodyWithXattr, "txn", "", flags)];
        let refused = mutate(&mut client, "k", &spec, NO_FLAGS).await;
        assert_eq!(refused.status(), status);
    }
}

/// The commit of a staged insert: a tombstone becomes a document.
#[tokio::test]
async fn a_staged_insert_is_revived_with_its_body_and_flags() {
    let (cluster, mut client) = one_node().await;
    let stage = [(SubdocDictUpsert, "txn", r#"{"stgd":[1,2]}"#, XATTR)];
    let staging = DocFlags::CREATE_AS_DELETED | DocFlags::INSERT | DocFlags::ACCESS_DELETED;
    let staged = mutate(&mut client, "k", &stage, staging).await;
    assert!(staged.status().is_success(), "{}", staged.status());
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let mut specs = BytesMut::new();
    for (opcode, path) in [
        (SubdocReplaceBodyWithXattr, "txn.stgd"),
        (SubdocDelete, "txn"),
    ] {
        let spec = MutationSpec {
            opcode,
            flags: XATTR,
            path: path.as_bytes(),
            value: b"",
        };
        spec.append_to(&mut specs).unwrap();
    }
    let extras = MultiExtras {
        expiry: Some(0),
        user_flags: Some(0x0200_0006),
        doc_flags: DocFlags::REVIVE | DocFlags::ACCESS_DELETED,
    };
    let revive = client.on(SubdocMultiMutation, "k").extras(extras);
    let revived = client
        .call(revive.cas(staged.header().cas).value(specs.to_vec()))
        .await;
    assert_eq!(revived.status(), Success);
    assert_eq!(body(&mut client, "k").await, json!([1, 2]));
    let document = cluster.document("b", ".", b"k").unwrap().unwrap();
    assert_eq!(document.flags, 0x0200_0006);
    assert!(document.xattrs.is_none() && !document.deleted);
}

#[tokio::test]
async fn binary_content_is_kept_in_an_attribute_and_becomes_the_body() {
    let (_cluster, mut client) = with_several_attributes("{}").await;
    let binary = XATTR | PathFlags::BINARY;
    let stage = [
        (SubdocDictUpsert, "bin", "\u{1}raw", binary),
        (SubdocDictUpsert, "text", "\"x\"", XATTR),
    ];
    let staged = mutate(&mut client, "k", &stage, NO_FLAGS).await;
    assert_eq!(staged.status(), Success);
    let encoded = r#""cb-content-base64-encoded:AXJhdw==""#;
    let not_binary = Status::SubdocFieldNotBinaryValue;
    let found = [
        (SubdocGet, "bin", binary, Success, "\u{1}raw"),
        (SubdocGet, "bin", XATTR, Success, encoded),
        (SubdocGet, "text", binary, not_binary, ""),
    ];
    check_lookup(&mut client, Status::SubdocMultiPathFailure, &found).await;
    let commit = [(SubdocReplaceBodyWithXattr, "bin", "", binary)];
    let committed = mutate(&mut client, "k", &commit, NO_FLAGS).await;
    assert_eq!(committed.status(), Success);
    assert_eq!(client.get("k").await.value(), b"\x01raw");
}

#[tokio::test]
async fn each_opcode_has_its_own_flags() {
    let (_cluster, mut client) = with_document(r#"{"a":[1]}"#).await;
    let list = [(SubdocDictUpsert, "l", "[]", XATTR)];
    mutate(&mut client, "k", &list, NO_FLAGS).await;
    let cas = r#""${Mutation.CAS}""#;
    let expand = XATTR | PathFlags::EXPAND_MACROS;
    for (opcode, path, value, flags, status) in [
        (SubdocArrayPushLast, "l", cas, expand, Success),
        (SubdocArrayInsert, "l[0]", cas, expand, Success),
        (
            SubdocArrayAddUnique,
            "l",
            cas,
            expand,
            Status::InvalidArguments,
        ),
        (SubdocCounter, "n", "1", expand, Status::InvalidArguments),
        (SubdocDelete, "l", "", expand, Status::InvalidArguments),
        (
            SubdocReplace,
            "a",
            "1",
            PathFlags::CREATE_PARENTS,
            Status::InvalidArguments,
        ),
        (SubdocArrayInsert, "a.[0]", "0", NONE, Success),
    ] {
        let done = mutate(&mut client, "k", &[(opcode, path, value, flags)], NO_FLAGS).await;
        assert_eq!(done.status(), status, "{opcode} {path}");
    }
    assert_eq!(body(&mut client, "k").await, json!({"a": [0, 1]}));
}

#[tokio::test]
async fn a_mutation_without_an_expiry_clears_it() {
    let (cluster, mut client) = one_node().await;
    client.set_with_expiry("k", "{}", 100).await;
    let spec = [(SubdocDictUpsert, "a", "1", NONE)];
    assert_eq!(
        mutate(&mut client, "k", &spec, NO_FLAGS).await.status(),
        Success
    );
    let document = cluster.document("b", ".", b"k").unwrap().unwrap();
    assert_eq!(document.expiry, 0);
}
