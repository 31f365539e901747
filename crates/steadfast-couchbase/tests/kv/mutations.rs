//! Changing parts of documents.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_couchbase::collection::{MutateInSpec as Spec, StoreSemantics};
use steadfast_couchbase::{DurabilityLevel, ErrorKind};

use crate::fixture::{Setup, fails_with};

async fn setup() -> Setup {
    let setup = Setup::simple().await;
    let ada = json!({"name": "Ada", "tags": ["b"], "n": 1, "old": true});
    setup.users.upsert("ada", &ada).await.unwrap();
    setup
}

async fn content(setup: &Setup, id: &str) -> Value {
    setup.users.get(id).await.unwrap().content().unwrap()
}

#[tokio::test]
async fn every_kind_of_change_is_made() {
    let setup = setup().await;
    let specs = [
        Spec::insert("first", &1),
        Spec::upsert("name", &"Ada L."),
        Spec::replace("n", &10),
        Spec::remove("old"),
        Spec::array_append("tags", ["c", "d"]),
        Spec::array_prepend("tags", ["a"]),
        Spec::array_insert("tags[1]", ["aa", "ab"]),
        Spec::array_add_unique("tags", "z"),
        Spec::increment("n", 5),
        Spec::decrement("n", 2),
        Spec::upsert("deep.er.still", &Value::Null).create_path(),
    ];
    let changed = setup.users.mutate_in("ada", &specs).await.unwrap();
    assert_eq!(changed.content_as::<i64>(8).unwrap(), 15);
    assert_eq!(changed.content_as::<i64>(9).unwrap(), 13);
    fails_with(changed.content_as::<Value>(0), ErrorKind::InvalidArgument);
    assert_eq!(changed.cas(), setup.users.get("ada").await.unwrap().cas());
    assert_eq!(&*changed.token().unwrap().bucket, "travel");
    let expected = json!({
        "name": "Ada L.", "n": 13, "first": 1, "deep": {"er": {"still": null}},
        "tags": ["a", "aa", "ab", "b", "c", "d", "z"],
    });
    assert_eq!(content(&setup, "ada").await, expected);
}

#[tokio::test]
async fn one_path_that_fails_undoes_all_and_is_named() {
    let setup = setup().await;
    let before = content(&setup, "ada").await;
    for (spec, kind) in [
        (Spec::insert("name", &1), ErrorKind::PathExists),
        (Spec::replace("nope", &1), ErrorKind::PathNotFound),
        (Spec::upsert("name.x", &1), ErrorKind::PathMismatch),
        (Spec::upsert("a..b", &1), ErrorKind::PathInvalid),
        (Spec::increment("name", 1), ErrorKind::PathMismatch),
        (Spec::array_add_unique("tags", "b"), ErrorKind::PathExists),
    ] {
        let specs = [Spec::upsert("first", &1), Spec::remove("old"), spec];
        let error = fails_with(setup.users.mutate_in("ada", &specs).await, kind);
        let kv = error.context().kv().unwrap();
        assert_eq!(kv.path_index, Some(2));
        assert!(error.to_string().contains("path 2 was answered"), "{error}");
        assert_eq!(error.to_json()["index"], 2);
        assert_eq!(error.attempts(), 1);
        assert_eq!(content(&setup, "ada").await, before);
    }
}

#[tokio::test]
async fn the_path_that_failed_is_counted_as_it_was_named() {
    let setup = setup().await;
    // The attribute is sent first, although it was named last.
    let specs = [
        Spec::upsert("first", &1),
        Spec::replace("nope", &1),
        Spec::upsert("stamp", &1).xattr(),
    ];
    let outcome = setup.users.mutate_in("ada", &specs).await;
    let error = fails_with(outcome, ErrorKind::PathNotFound);
    assert_eq!(error.context().kv().unwrap().path_index, Some(1));

    let specs = [
        Spec::increment("n", 1),
        Spec::increment("visits", 3).xattr().create_path(),
    ];
    let changed = setup.users.mutate_in("ada", &specs).await.unwrap();
    assert_eq!(changed.content_as::<i64>(0).unwrap(), 2);
    assert_eq!(changed.content_as::<i64>(1).unwrap(), 3);
}

#[tokio::test]
async fn an_error_never_contains_a_value() {
    let setup = setup().await;
    let specs = [Spec::insert("name", &"a secret")];
    let outcome = setup.users.mutate_in("ada", &specs).await;
    let error = fails_with(outcome, ErrorKind::PathExists);
    for text in [
        format!("{error}"),
        format!("{error:#}"),
        format!("{error:?}"),
        error.to_json().to_string(),
    ] {
        assert!(!text.contains("secret"), "{text}");
        assert!(!text.contains("ada"), "keys are redacted: {text}");
    }
}

#[tokio::test]
async fn store_semantics_decide_whether_the_document_must_exist() {
    let setup = setup().await;
    let users = &setup.users;
    let specs = [Spec::upsert("a", &1)];
    let with = |id, semantics| users.mutate_in(id, &specs).store_semantics(semantics);
    let outcome = users.mutate_in("new", &specs).await;
    fails_with(outcome, ErrorKind::DocumentNotFound);
    with("new", StoreSemantics::Upsert).await.unwrap();
    with("new", StoreSemantics::Upsert).await.unwrap();
    let outcome = with("new", StoreSemantics::Insert).await;
    fails_with(outcome, ErrorKind::DocumentExists);
    with("newer", StoreSemantics::Insert).await.unwrap();
    assert_eq!(content(&setup, "newer").await, json!({"a": 1}));
}

#[tokio::test]
async fn a_cas_allows_one_version_only() {
    let setup = setup().await;
    let specs = [Spec::upsert("a", &1)];
    let cas = setup.users.get("ada").await.unwrap().cas();
    setup.users.mutate_in("ada", &specs).cas(cas).await.unwrap();
    let outcome = setup.users.mutate_in("ada", &specs).cas(cas).await;
    fails_with(outcome, ErrorKind::CasMismatch);
}

#[tokio::test]
async fn an_expiry_is_set_or_kept() {
    let setup = setup().await;
    let hour = Duration::from_secs(3600);
    let specs = [Spec::upsert("a", &1)];
    let users = &setup.users;
    users.mutate_in("ada", &specs).expiry(hour).await.unwrap();
    let expiry = setup.stored("ada").expiry;
    assert_ne!(expiry, 0);
    let kept = users.mutate_in("ada", &specs).preserve_expiry();
    kept.durability(DurabilityLevel::Majority).await.unwrap();
    assert_eq!(setup.stored("ada").expiry, expiry);
}

#[tokio::test]
async fn virtual_attributes_cannot_be_changed() {
    let setup = setup().await;
    let vattr = [Spec::upsert("$document.exptime", &1).xattr()];
    let outcome = setup.users.mutate_in("ada", &vattr).await;
    fails_with(outcome, ErrorKind::XattrCannotModifyVirtualAttribute);
}

#[tokio::test]
async fn the_empty_path_is_the_whole_document() {
    let setup = setup().await;
    let users = &setup.users;
    let whole = [
        Spec::upsert("stamp", &1).xattr(),
        Spec::replace("", &json!({"new": 1})),
    ];
    users.mutate_in("ada", &whole).await.unwrap();
    assert_eq!(content(&setup, "ada").await, json!({"new": 1}));
    users.mutate_in("ada", &[Spec::remove("")]).await.unwrap();
    fails_with(users.get("ada").await, ErrorKind::DocumentNotFound);
}
