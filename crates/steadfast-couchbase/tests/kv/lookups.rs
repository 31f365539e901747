//! Reading parts of documents.

use serde_json::{Value, json};
use steadfast_couchbase::ErrorKind;
use steadfast_couchbase::collection::{LookupInSpec as Spec, MutateInSpec, Raw};

use crate::fixture::{Setup, fails_with};

async fn setup() -> Setup {
    let setup = Setup::simple().await;
    let ada = json!({"name": "Ada", "friends": ["bob", "eve"], "age": 36});
    setup.users.upsert("ada", &ada).await.unwrap();
    setup
}

#[tokio::test]
async fn each_path_has_its_own_outcome() {
    let setup = setup().await;
    let specs = [
        Spec::get("name"),
        Spec::exists("age"),
        Spec::exists("street"),
        Spec::count("friends"),
        Spec::get("friends[1]"),
        Spec::get("street"),
        Spec::get("name.first"),
        Spec::get("friends["),
        Spec::get(""),
    ];
    let found = setup.users.lookup_in("ada", &specs).await.unwrap();
    assert_eq!(found.len(), specs.len());
    assert_eq!(found.cas(), setup.users.get("ada").await.unwrap().cas());
    assert_eq!(found.content_as::<String>(0).unwrap(), "Ada");
    assert!(found.exists(0).unwrap());
    assert!(found.exists(1).unwrap() && found.content_as::<bool>(1).unwrap());
    assert!(!found.exists(2).unwrap() && !found.content_as::<bool>(2).unwrap());
    assert_eq!(found.content_as::<usize>(3).unwrap(), 2);
    assert_eq!(found.content_as::<String>(4).unwrap(), "eve");
    assert!(!found.exists(5).unwrap());
    assert_eq!(found.content_as::<Value>(8).unwrap()["age"], 36);

    let error = fails_with(found.content_as::<Value>(5), ErrorKind::PathNotFound);
    assert_eq!(error.context().kv().unwrap().path_index, Some(5));
    assert!(error.to_string().contains("path 5"), "{error}");
    fails_with(found.content_as::<Value>(6), ErrorKind::PathMismatch);
    fails_with(found.exists(6), ErrorKind::PathMismatch);
    fails_with(found.bytes(7), ErrorKind::PathInvalid);
    fails_with(found.content_as::<u8>(0), ErrorKind::DecodingFailure);
    fails_with(found.content_as::<u8>(9), ErrorKind::InvalidArgument);
    fails_with(found.exists(9), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn attributes_may_be_named_anywhere_among_the_paths() {
    let setup = setup().await;
    let stamp = MutateInSpec::upsert("stamp", &"2026").xattr();
    setup.users.mutate_in("ada", &[stamp]).await.unwrap();
    let specs = [
        Spec::get("name"),
        Spec::get("stamp").xattr(),
        Spec::exists("age"),
        Spec::get("$document.exptime").xattr(),
    ];
    let found = setup.users.lookup_in("ada", &specs).await.unwrap();
    assert_eq!(found.content_as::<String>(0).unwrap(), "Ada");
    assert_eq!(found.content_as::<String>(1).unwrap(), "2026");
    assert!(found.content_as::<bool>(2).unwrap());
    assert_eq!(found.content_as::<u64>(3).unwrap(), 0);
}

#[tokio::test]
async fn invalid_attributes_have_error_kinds_of_their_own() {
    let setup = setup().await;
    let specs = [Spec::get("$nonsense").xattr()];
    let found = setup.users.lookup_in("ada", &specs).await.unwrap();
    let outcome = found.content_as::<Value>(0);
    fails_with(outcome, ErrorKind::XattrUnknownVirtualAttribute);
}

#[tokio::test]
async fn lookups_fail_on_missing_and_non_json_documents() {
    let setup = setup().await;
    let specs = [Spec::get("name")];
    let outcome = setup.users.lookup_in("nobody", &specs).await;
    fails_with(outcome, ErrorKind::DocumentNotFound);
    let users = &setup.users;
    users.upsert_raw("text", Raw::text("{")).await.unwrap();
    let found = users.lookup_in("text", &specs).await.unwrap();
    fails_with(found.content_as::<Value>(0), ErrorKind::DocumentNotJson);
}
