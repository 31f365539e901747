//! Operations on parts of documents.

use couchbase::error::ErrorKind;
use couchbase::options::kv_options::{MutateInOptions, StoreSemantics};
use couchbase::subdoc::lookup_in_specs::{GetSpecOptions, LookupInSpec};
use couchbase::subdoc::mutate_in_specs::{MutateInSpec, UpsertSpecOptions};
use serde_json::{Value, json};

use super::{default_collection, kind, within};

#[tokio::test]
async fn lookups_get_count_and_check_each_with_its_own_end() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let document = json!({"a": {"b": [1, 2, 3]}, "dotted.key": 4});
    within(collection.upsert("k", &document, None))
        .await
        .unwrap();
    let specs = [
        LookupInSpec::get("a.b[-1]", None),
        LookupInSpec::exists("a.c", None),
        LookupInSpec::count("a.b", None),
        LookupInSpec::get("`dotted.key`", None),
        LookupInSpec::get("missing", None),
        LookupInSpec::get("a.b.c", None),
        LookupInSpec::get("$document.exptime", GetSpecOptions::new().xattr(true)),
    ];
    let found = within(collection.lookup_in("k", &specs, None))
        .await
        .unwrap();
    assert_eq!(found.content_as::<u64>(0).unwrap(), 3);
    assert!(!found.exists(1).unwrap());
    assert_eq!(found.content_as::<u64>(2).unwrap(), 3);
    assert_eq!(found.content_as::<u64>(3).unwrap(), 4);
    assert_eq!(kind(found.content_as::<u64>(4)), ErrorKind::PathNotFound);
    assert_eq!(kind(found.content_as::<u64>(5)), ErrorKind::PathMismatch);
    assert_eq!(found.content_as::<u64>(6).unwrap(), 0);
    let missing = within(collection.lookup_in("none", &specs, None)).await;
    assert_eq!(kind(missing), ErrorKind::DocumentNotFound);
}

#[tokio::test]
async fn mutations_change_all_their_paths_or_none() {
    let (_cluster, _sdk, collection) = default_collection().await;
    within(collection.upsert("k", json!({"n": 1, "l": [2]}), None))
        .await
        .unwrap();
    let parents = || UpsertSpecOptions::new().create_path(true);
    let specs = [
        MutateInSpec::upsert("meta.by", "me", parents().xattr(true)).unwrap(),
        MutateInSpec::upsert("a.b", 1, parents()).unwrap(),
        MutateInSpec::insert("c", 2, None).unwrap(),
        MutateInSpec::replace("n", 10, None).unwrap(),
        MutateInSpec::increment("n", 5, None).unwrap(),
        MutateInSpec::array_append("l", &[3, 4], None).unwrap(),
        MutateInSpec::array_prepend("l", &[1], None).unwrap(),
        MutateInSpec::array_insert("l[0]", &[0], None).unwrap(),
        MutateInSpec::array_add_unique("l", 9, None).unwrap(),
        MutateInSpec::remove("c", None),
    ];
    let changed = within(collection.mutate_in("k", &specs, None))
        .await
        .unwrap();
    assert_eq!(changed.content_as::<u64>(4).unwrap(), 15);
    let expected = json!({"n": 15, "l": [0, 1, 2, 3, 4, 9], "a": {"b": 1}});
    let found = within(collection.get("k", None)).await.unwrap();
    assert_eq!(found.content_as::<Value>().unwrap(), expected);

    let fine = || MutateInSpec::upsert("z", 1, None).unwrap();
    for (spec, error) in [
        (
            MutateInSpec::replace("x", 1, None).unwrap(),
            ErrorKind::PathNotFound,
        ),
        (
            MutateInSpec::insert("n", 1, None).unwrap(),
            ErrorKind::PathExists,
        ),
        (
            MutateInSpec::array_append("n", &[1], None).unwrap(),
            ErrorKind::PathMismatch,
        ),
    ] {
        let refused = within(collection.mutate_in("k", &[fine(), spec], None)).await;
        assert_eq!(kind(refused), error);
    }
    let found = within(collection.get("k", None)).await.unwrap();
    assert_eq!(found.content_as::<Value>().unwrap(), expected);
}

#[tokio::test]
async fn a_mutation_can_make_its_document_and_want_its_cas() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let set = |n: u64| [MutateInSpec::upsert("n", n, None).unwrap()];
    assert_eq!(
        kind(within(collection.mutate_in("k", &set(1), None)).await),
        ErrorKind::DocumentNotFound
    );
    let insert = || MutateInOptions::new().store_semantics(StoreSemantics::Insert);
    let made = within(collection.mutate_in("k", &set(1), insert()))
        .await
        .unwrap();
    // 0x02 on the wire, which this SDK calls a CAS mismatch whatever was asked for.
    assert_eq!(
        kind(within(collection.mutate_in("k", &set(2), insert())).await),
        ErrorKind::CasMismatch
    );
    let with = || MutateInOptions::new().cas(made.cas());
    within(collection.mutate_in("k", &set(2), with()))
        .await
        .unwrap();
    assert_eq!(
        kind(within(collection.mutate_in("k", &set(3), with())).await),
        ErrorKind::CasMismatch
    );
}
