//! Invalid arguments are rejected before anything is sent.

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::collection::{LookupInSpec, MutateInSpec as Spec, Raw, StoreSemantics};
use steadfast_couchbase::{Collection, Error, ErrorKind};
use steadfast_wire::Opcode;

use crate::fixture::{Setup, fails_with};

const HOUR: Duration = Duration::from_secs(3600);

/// Every operation on this key.
async fn on_key(users: &Collection, id: &str) -> Vec<Error> {
    let outcomes = vec![
        users.get(id).await.err(),
        users.get(id).with_expiry().await.err(),
        users.get_and_touch(id, HOUR).await.err(),
        users.get_and_lock(id, HOUR).await.err(),
        users.get_replica(id, 1).await.err(),
        users.get_any_replica(id).await.err(),
        users.get_all_replicas(id).await.err(),
        users.unlock(id, 1).await.err(),
        users.touch(id, HOUR).await.err(),
        users.exists(id).await.err(),
        users.insert(id, &1).await.err(),
        users.upsert(id, &1).await.err(),
        users.replace(id, &1).await.err(),
        users.remove(id).await.err(),
        users.append(id, "x").await.err(),
        users.prepend(id, "x").await.err(),
        users.increment(id).await.err(),
        users.decrement(id).await.err(),
        users.lookup_in(id, &[LookupInSpec::get("a")]).await.err(),
        users.mutate_in(id, &[Spec::remove("a")]).await.err(),
    ];
    let count = outcomes.len();
    let errors: Vec<_> = outcomes.into_iter().flatten().collect();
    assert_eq!(errors.len(), count, "one of them was taken");
    errors
}

#[tokio::test]
async fn an_invalid_name_is_rejected_by_every_operation_and_the_error_says_what_is_allowed() {
    let setup = Setup::simple().await;
    let bucket = setup.cluster.bucket("travel");
    let asked = Fault::on(Opcode::GetCollectionId).pass();
    let asked = setup.server.fault(asked);
    let (longest, too_long) = ("n".repeat(251), "n".repeat(252));
    for (scope, name, what) in [
        ("inv!entory", "hotels", "scope"),
        ("inventory", "hot els", "collection"),
        ("inventory", &*too_long, "collection"),
        ("inventory", "hôtels", "collection"),
    ] {
        for error in on_key(&bucket.collection(scope, name), "k").await {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            let text = error.to_string();
            assert!(text.contains(&format!("the name of a {what}")), "{text}");
            assert!(text.contains("at most 251 bytes"), "{text}");
        }
    }
    assert_eq!(asked.fired(), 0);
    let error = bucket.collection("_default", &longest).get("k").await;
    fails_with(error, ErrorKind::CollectionNotFound);
}

#[tokio::test]
async fn an_invalid_key_is_rejected_by_every_operation() {
    let setup = Setup::simple().await;
    // Connections live in the background; what is about a document has a key.
    let seen = setup
        .server
        .fault(Fault::on_anything().key_prefix("k").pass());
    let hotels = setup
        .cluster
        .bucket("travel")
        .collection("inventory", "hotels");
    let too_long = "k".repeat(251);
    for error in on_key(&setup.users, "").await {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("the key is empty"), "{error}");
    }
    for error in on_key(&setup.users, &too_long).await {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("251 bytes"), "{error}");
    }
    for error in on_key(&hotels, &too_long[..247]).await {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("the limit is 246"), "{error}");
    }
    assert_eq!(seen.fired(), 0);
    setup.users.upsert(&too_long[..250], &1).await.unwrap();
    assert_eq!(seen.fired(), 1);
}

#[tokio::test]
async fn invalid_options_are_named() {
    let setup = Setup::simple().await;
    let users = &setup.users;
    let long_ago = UNIX_EPOCH + Duration::from_secs(60);
    let far = Duration::from_secs(200 * 365 * 24 * 3600);
    let no_values: [u8; 0] = [];
    let a = || Spec::upsert("a", &1);
    let spec = LookupInSpec::get("a");
    let insert_in = |it| {
        users
            .mutate_in("k", it)
            .store_semantics(StoreSemantics::Insert)
    };
    for (outcome, named) in [
        (users.replace("k", &1).cas(0).await.err(), "CAS of 0"),
        (users.remove("k").cas(0).await.err(), "CAS of 0"),
        (users.append("k", "x").cas(0).await.err(), "CAS of 0"),
        (users.unlock("k", 0).await.err(), "CAS of 0"),
        (users.mutate_in("k", &[a()]).cas(0).await.err(), "CAS of 0"),
        (users.insert("k", &1).cas(1).await.err(), "no CAS"),
        (
            users.insert("k", &1).preserve_expiry().await.err(),
            "no expiry to preserve",
        ),
        (
            users
                .replace("k", &1)
                .preserve_expiry()
                .expiry(HOUR)
                .await
                .err(),
            "both preserved and set",
        ),
        (users.upsert("k", &1).expiry(far).await.err(), "2105"),
        (users.upsert("k", &1).expiry(long_ago).await.err(), "1970"),
        (users.touch("k", far).await.err(), "2105"),
        (users.get_and_touch("k", far).await.err(), "2105"),
        (
            users.increment("k").initial(1).expiry(far).await.err(),
            "2105",
        ),
        (
            users.increment("k").expiry(HOUR).await.err(),
            "initial value",
        ),
        (
            users.get_and_lock("k", Duration::ZERO).await.err(),
            "lock time is zero",
        ),
        (
            users.get_and_lock("k", Duration::MAX).await.err(),
            "does not fit",
        ),
        (users.get_replica("k", 0).await.err(), "no replica 0"),
        (users.get_replica("k", 4).await.err(), "no replica 4"),
        (users.lookup_in("k", &[]).await.err(), "no path"),
        (users.lookup_in("k", &[spec; 17]).await.err(), "17 paths"),
        (users.mutate_in("k", &[]).await.err(), "no path"),
        (users.mutate_in("k", &vec![a(); 17]).await.err(), "17 paths"),
        (
            users
                .mutate_in("k", &[a(), Spec::increment("n", 0)])
                .await
                .err(),
            "path 1: the delta",
        ),
        (
            users
                .mutate_in("k", &[Spec::decrement("n", u64::MAX)])
                .await
                .err(),
            "path 0: the delta",
        ),
        (
            users
                .mutate_in("k", &[Spec::array_append("a", no_values)])
                .await
                .err(),
            "no value to add",
        ),
        (insert_in(&[a()]).cas(1).await.err(), "no CAS"),
        (
            insert_in(&[a()]).preserve_expiry().await.err(),
            "no expiry to preserve",
        ),
        (
            users
                .mutate_in("k", &[a()])
                .preserve_expiry()
                .expiry(HOUR)
                .await
                .err(),
            "both preserved and set",
        ),
        (users.mutate_in("k", &[a()]).expiry(far).await.err(), "2105"),
    ] {
        let error = outcome.expect(named);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(named), "{named}: {error}");
        assert_eq!(error.attempts(), 0);
    }
    assert_eq!(setup.server.journal().applied(), 0);
}

#[tokio::test]
async fn a_value_that_is_too_large_is_not_sent() {
    let users = &Setup::simple().await.users;
    let huge = vec![b'x'; (20 << 20) + 1];
    let raw = || Raw::binary(huge.clone());
    let text = std::str::from_utf8(&huge).unwrap();
    for outcome in [
        users.upsert_raw("k", raw()).await.err(),
        users.insert_raw("k", raw()).await.err(),
        users.replace_raw("k", raw()).await.err(),
        users.append("k", huge.clone()).await.err(),
        users.prepend("k", huge.clone()).await.err(),
        users.mutate_in("k", &[Spec::upsert("a", text)]).await.err(),
    ] {
        let error = outcome.expect("it is too large");
        assert_eq!(error.kind(), ErrorKind::ValueTooLarge);
        assert_eq!(error.attempts(), 0);
        assert!(error.to_string().contains("20971520"), "{error}");
    }
    let largest = Raw::binary(huge[1..].to_vec());
    users.upsert_raw("k", largest).await.unwrap();
    assert_eq!(users.get("k").await.unwrap().bytes().len(), 20 << 20);
}

#[tokio::test]
async fn an_unencodable_value_is_an_encoding_failure() {
    let setup = Setup::simple().await;
    let unencodable = HashMap::from([(vec![1_u8], 2)]);
    let outcome = setup.users.upsert("k", &unencodable).await;
    let error = fails_with(outcome, ErrorKind::EncodingFailure);
    assert_eq!(error.attempts(), 0);
    let specs = [Spec::upsert("a", &unencodable)];
    let outcome = setup.users.mutate_in("k", &specs).await;
    fails_with(outcome, ErrorKind::EncodingFailure);
}
