//! Subdocument commands against a real socket.

use crate::support::{Client, cluster};
use bytes::BytesMut;
use serde_json::{Value, json};
use steadfast_wire::subdoc::{
    DocFlags, LookupResult, LookupSpec, MultiExtras, MutationOutcome, MutationSpec, PathFlags,
    SinglePath,
};
use steadfast_wire::{Encode, Entries, Frame, Opcode, Status};

async fn lookup(
    client: &mut Client,
    key: &str,
    specs: &[(Opcode, &str, PathFlags)],
    flags: DocFlags,
) -> Frame {
    let mut value = BytesMut::new();
    for (opcode, path, path_flags) in specs {
        LookupSpec {
            opcode: *opcode,
            flags: *path_flags,
            path: path.as_bytes(),
        }
        .append_to(&mut value)
        .unwrap();
    }
    call_multi(client, Opcode::SubdocMultiLookup, key, flags, value).await
}

fn results(frame: &Frame) -> Vec<(Status, String)> {
    Entries::<LookupResult<'_>>::new(frame.value())
        .map(|result| {
            let result = result.unwrap();
            (
                result.status,
                String::from_utf8(result.value.to_vec()).unwrap(),
            )
        })
        .collect()
}

async fn mutate(
    client: &mut Client,
    key: &str,
    specs: &[(Opcode, &str, &str, PathFlags)],
    flags: DocFlags,
) -> Frame {
    let mut value = BytesMut::new();
    for (opcode, path, text, path_flags) in specs {
        MutationSpec {
            opcode: *opcode,
            flags: *path_flags,
            path: path.as_bytes(),
            value: text.as_bytes(),
        }
        .append_to(&mut value)
        .unwrap();
    }
    call_multi(client, Opcode::SubdocMultiMutation, key, flags, value).await
}

async fn call_multi(
    client: &mut Client,
    opcode: Opcode,
    key: &str,
    doc_flags: DocFlags,
    value: BytesMut,
) -> Frame {
    let expiry = None;
    let request = client
        .on(opcode, key)
        .extras(MultiExtras { expiry, doc_flags });
    client.call(request.value(value.to_vec())).await
}

async fn body(client: &mut Client, key: &str) -> Value {
    serde_json::from_slice(client.get(key).await.value()).unwrap()
}

const NONE: PathFlags = PathFlags::empty();
const XATTR: PathFlags = PathFlags::XATTR;

#[tokio::test]
async fn a_lookup_answers_each_path_and_says_that_some_failed() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", r#"{"a":[1,2],"b":{}}"#).await;
    let specs = [
        (Opcode::SubdocGet, "$document.datatype", XATTR),
        (Opcode::SubdocGet, "a[-1]", NONE),
        (Opcode::SubdocExists, "b", NONE),
        (Opcode::SubdocGetCount, "a", NONE),
        (Opcode::Get, "", NONE),
    ];
    let answer = lookup(&mut client, "k", &specs, DocFlags::empty()).await;
    assert_eq!(answer.status(), Status::Success);
    let values: Vec<String> = results(&answer)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    assert_eq!(
        values,
        [r#"["json"]"#, "2", "", "2", r#"{"a":[1,2],"b":{}}"#]
    );
    let specs = [
        (Opcode::SubdocGet, "$nothing", XATTR),
        (Opcode::SubdocGet, "none", NONE),
        (Opcode::SubdocGet, "a.x", NONE),
        (Opcode::SubdocGet, "a[", NONE),
        (Opcode::SubdocGet, "b", NONE),
    ];
    let answer = lookup(&mut client, "k", &specs, DocFlags::empty()).await;
    assert_eq!(answer.status(), Status::SubdocMultiPathFailure);
    let statuses: Vec<Status> = results(&answer)
        .into_iter()
        .map(|(status, _)| status)
        .collect();
    assert_eq!(
        statuses,
        [
            Status::SubdocXattrUnknownVattr,
            Status::SubdocPathNotFound,
            Status::SubdocPathMismatch,
            Status::SubdocPathInvalid,
            Status::Success
        ]
    );
    let missing = lookup(&mut client, "none", &specs, DocFlags::empty()).await;
    assert_eq!(missing.status(), Status::KeyNotFound);
    let empty = lookup(&mut client, "k", &[], DocFlags::empty()).await;
    assert_eq!(empty.status(), Status::SubdocInvalidCombo);
    let wrong = lookup(
        &mut client,
        "k",
        &[(Opcode::Touch, "a", NONE)],
        DocFlags::empty(),
    )
    .await;
    assert_eq!(wrong.status(), Status::SubdocInvalidCombo);
    client.set("k", "no json").await;
    let raw = lookup(
        &mut client,
        "k",
        &[(Opcode::SubdocGet, "a", NONE)],
        DocFlags::empty(),
    )
    .await;
    assert_eq!(results(&raw)[0].0, Status::SubdocDocNotJson);
}

#[tokio::test]
async fn mutations_happen_together_or_not_at_all() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", r#"{"n":1,"l":[]}"#).await;
    let specs = [
        (Opcode::SubdocDictUpsert, "x", "\"y\"", NONE),
        (Opcode::SubdocCounter, "n", "41", NONE),
        (Opcode::SubdocArrayPushLast, "l", "1,2", NONE),
        (Opcode::SubdocArrayAddUnique, "l", "3", NONE),
        (
            Opcode::SubdocDictAdd,
            "d.e.f",
            "true",
            PathFlags::CREATE_PARENTS,
        ),
    ];
    let answer = mutate(&mut client, "k", &specs, DocFlags::empty()).await;
    assert_eq!(answer.status(), Status::Success);
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
        (Opcode::SubdocDelete, "x", "", NONE),
        (Opcode::SubdocReplace, "none", "1", NONE),
    ];
    let answer = mutate(&mut client, "k", &specs, DocFlags::empty()).await;
    assert_eq!(answer.status(), Status::SubdocMultiPathFailure);
    assert_eq!(
        answer.value(),
        MutationOutcome::failure_body(1, Status::SubdocPathNotFound)
    );
    assert_eq!(body(&mut client, "k").await, expected);
}

#[tokio::test]
async fn documents_are_created_added_and_refused_as_the_flags_say() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    let add = [(Opcode::SubdocDictAdd, "a", "1", NONE)];
    let missing = mutate(&mut client, "k", &add, DocFlags::empty()).await;
    assert_eq!(missing.status(), Status::KeyNotFound);
    let created = mutate(&mut client, "k", &add, DocFlags::UPSERT).await;
    assert_eq!(created.status(), Status::Success);
    let exists = mutate(&mut client, "k", &add, DocFlags::INSERT).await;
    assert_eq!(exists.status(), Status::KeyExists);
    let both = mutate(&mut client, "k", &add, DocFlags::UPSERT | DocFlags::INSERT).await;
    assert_eq!(both.status(), Status::InvalidArguments);
    let twice = mutate(&mut client, "k", &add, DocFlags::UPSERT).await;
    assert_eq!(
        twice.value(),
        MutationOutcome::failure_body(0, Status::SubdocPathExists)
    );
    let array = [(Opcode::SubdocArrayPushLast, "", "1", NONE)];
    mutate(&mut client, "l", &array, DocFlags::INSERT).await;
    assert_eq!(body(&mut client, "l").await, json!([1]));
}

#[tokio::test]
async fn xattrs_live_beside_the_body_and_macros_are_filled_in() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", "{}").await;
    let specs = [
        (
            Opcode::SubdocDictUpsert,
            "meta.by",
            "\"me\"",
            XATTR | PathFlags::CREATE_PARENTS,
        ),
        (
            Opcode::SubdocDictUpsert,
            "_sys",
            "\"${Mutation.CAS}\"",
            XATTR | PathFlags::EXPAND_MACROS,
        ),
        (Opcode::SubdocDictUpsert, "a", "1", NONE),
    ];
    let answer = mutate(&mut client, "k", &specs, DocFlags::empty()).await;
    assert_eq!(answer.status(), Status::Success);
    assert_eq!(body(&mut client, "k").await, json!({"a": 1}));
    let read = [
        (Opcode::SubdocGet, "meta.by", XATTR),
        (Opcode::SubdocGet, "_sys", XATTR),
    ];
    let found = results(&lookup(&mut client, "k", &read, DocFlags::empty()).await);
    assert_eq!(found[0].1, "\"me\"");
    assert_eq!(
        found[1].1,
        format!("\"{:#018x}\"", answer.header().cas.swap_bytes())
    );

    client.set("k", "{\"new\":true}").await;
    let kept = lookup(&mut client, "k", &read, DocFlags::empty()).await;
    assert_eq!(kept.status(), Status::Success, "a store keeps the xattrs");

    client.remove("k", 0).await;
    let gone = lookup(&mut client, "k", &read, DocFlags::empty()).await;
    assert_eq!(gone.status(), Status::KeyNotFound);
    let tombstone = lookup(&mut client, "k", &read, DocFlags::ACCESS_DELETED).await;
    assert_eq!(tombstone.status(), Status::SubdocMultiPathFailureDeleted);
    let statuses: Vec<Status> = results(&tombstone)
        .into_iter()
        .map(|(status, _)| status)
        .collect();
    assert_eq!(statuses, [Status::SubdocPathNotFound, Status::Success]);

    let read_only = [(Opcode::SubdocDictUpsert, "$document.x", "1", XATTR)];
    client.set("k", "{}").await;
    let refused = mutate(&mut client, "k", &read_only, DocFlags::empty()).await;
    assert_eq!(
        refused.value(),
        MutationOutcome::failure_body(0, Status::SubdocXattrCannotModifyVattr)
    );
    let order = [
        (Opcode::SubdocDictUpsert, "a", "1", NONE),
        (Opcode::SubdocDictUpsert, "x", "1", XATTR),
    ];
    let refused = mutate(&mut client, "k", &order, DocFlags::empty()).await;
    assert_eq!(refused.status(), Status::SubdocInvalidXattrOrder);
}

#[tokio::test]
async fn tombstones_are_created_and_revived() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    let staged = [(Opcode::SubdocDictUpsert, "_txn", "1", XATTR)];
    let flags = DocFlags::INSERT | DocFlags::ACCESS_DELETED | DocFlags::CREATE_AS_DELETED;
    assert!(
        mutate(&mut client, "k", &staged, flags)
            .await
            .status()
            .is_success()
    );
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let revive = [
        (Opcode::SubdocDelete, "_txn", "", XATTR),
        (Opcode::Set, "", "{\"v\":1}", NONE),
    ];
    let flags = DocFlags::ACCESS_DELETED | DocFlags::REVIVE;
    assert!(
        mutate(&mut client, "k", &revive, flags)
            .await
            .status()
            .is_success()
    );
    assert_eq!(body(&mut client, "k").await, json!({"v": 1}));
    let again = mutate(&mut client, "k", &revive, flags).await;
    assert_eq!(again.status(), Status::SubdocCanOnlyReviveDeletedDocuments);
}

#[tokio::test]
async fn single_paths_answer_with_the_status_of_their_path() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", r#"{"n":1,"l":[2],"s":"x"}"#).await;
    let cases = [
        (Opcode::SubdocGet, "l[0]", "", Status::Success, "2"),
        (
            Opcode::SubdocGet,
            "none",
            "",
            Status::SubdocPathNotFound,
            "",
        ),
        (Opcode::SubdocExists, "n", "", Status::Success, ""),
        (
            Opcode::SubdocExists,
            "n.x",
            "",
            Status::SubdocPathMismatch,
            "",
        ),
        (Opcode::SubdocGetCount, "l", "", Status::Success, "1"),
        (
            Opcode::SubdocGetCount,
            "n",
            "",
            Status::SubdocPathMismatch,
            "",
        ),
        (
            Opcode::SubdocDictAdd,
            "n",
            "2",
            Status::SubdocPathExists,
            "",
        ),
        (Opcode::SubdocDictAdd, "m", "2", Status::Success, ""),
        (
            Opcode::SubdocDictUpsert,
            "m",
            "no json",
            Status::SubdocValueCannotInsert,
            "",
        ),
        (Opcode::SubdocDictUpsert, "m", "3", Status::Success, ""),
        (Opcode::SubdocDelete, "m", "", Status::Success, ""),
        (
            Opcode::SubdocDelete,
            "m",
            "",
            Status::SubdocPathNotFound,
            "",
        ),
        (Opcode::SubdocReplace, "n", "5", Status::Success, ""),
        (
            Opcode::SubdocReplace,
            "",
            "5",
            Status::SubdocPathInvalid,
            "",
        ),
        (Opcode::SubdocArrayPushLast, "l", "3", Status::Success, ""),
        (Opcode::SubdocArrayPushFirst, "l", "1", Status::Success, ""),
        (
            Opcode::SubdocArrayPushFirst,
            "n",
            "1",
            Status::SubdocPathMismatch,
            "",
        ),
        (Opcode::SubdocArrayInsert, "l[1]", "9", Status::Success, ""),
        (
            Opcode::SubdocArrayInsert,
            "l[9]",
            "9",
            Status::SubdocPathNotFound,
            "",
        ),
        (
            Opcode::SubdocArrayAddUnique,
            "l",
            "9",
            Status::SubdocPathExists,
            "",
        ),
        (Opcode::SubdocArrayAddUnique, "l", "10", Status::Success, ""),
        (Opcode::SubdocCounter, "n", "-1", Status::Success, "4"),
        (
            Opcode::SubdocCounter,
            "n",
            "0",
            Status::SubdocDeltaInvalid,
            "",
        ),
        (
            Opcode::SubdocCounter,
            "s",
            "1",
            Status::SubdocPathMismatch,
            "",
        ),
    ];
    for (opcode, path, value, status, answered) in cases {
        let single = SinglePath::mutation(path.as_bytes(), value.as_bytes());
        let request = client
            .on(opcode, "k")
            .extras(single.extras())
            .value(single.body());
        let answer = client.call(request).await;
        assert_eq!(answer.status(), status, "{opcode} {path} {value}");
        assert_eq!(
            answer.value(),
            answered.as_bytes(),
            "{opcode} {path} {value}"
        );
    }
    let expected = json!({"n": 4, "l": [1, 9, 2, 3, 10], "s": "x"});
    assert_eq!(body(&mut client, "k").await, expected);
    let malformed = client
        .on(Opcode::SubdocGet, "k")
        .extras([0, 9, 0])
        .value("short");
    assert_eq!(
        client.call(malformed).await.status(),
        Status::InvalidArguments
    );
}
