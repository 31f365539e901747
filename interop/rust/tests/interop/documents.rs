//! Operations on whole documents.

use std::time::Duration;

use couchbase::durability_level::DurabilityLevel;
use couchbase::error::ErrorKind;
use couchbase::get_replica_strategy::{GetReplicaStrategy, ReplicaIndex};
use couchbase::options::kv_binary_options::{AppendOptions, DecrementOptions, IncrementOptions};
use couchbase::options::kv_options::{GetOptions, RemoveOptions, ReplaceOptions, UpsertOptions};
use serde_json::{Value, json};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{BucketSettings, TestCluster};

use super::{BUCKET, default_collection, kind, within};

/// The keys of all applied mutations, in order.
fn applied(cluster: &TestCluster) -> Vec<String> {
    let key = |entry: &steadfast_cluster::journal::JournalEntry| {
        String::from_utf8_lossy(entry.key()).into_owned()
    };
    cluster.journal().since(0).iter().map(key).collect()
}

#[tokio::test]
async fn upsert_and_get_agree_on_content_cas_and_token() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let stored = within(collection.upsert("k", json!({"a": 1}), None))
        .await
        .unwrap();
    let found = within(collection.get("k", None)).await.unwrap();
    assert_eq!(found.content_as::<Value>().unwrap(), json!({"a": 1}));
    assert_eq!(found.cas(), stored.cas());
    assert_eq!(stored.mutation_token().unwrap().bucket_name(), BUCKET);
}

#[tokio::test]
async fn insert_replace_and_remove_want_the_document_as_it_is() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let old = within(collection.insert("k", 1, None)).await.unwrap().cas();
    assert_eq!(
        kind(within(collection.insert("k", 2, None)).await),
        ErrorKind::DocumentExists
    );
    let with = |cas| ReplaceOptions::new().cas(cas);
    let new = within(collection.replace("k", 2, with(old)))
        .await
        .unwrap()
        .cas();
    assert_eq!(
        kind(within(collection.replace("k", 3, with(old))).await),
        ErrorKind::CasMismatch
    );
    let remove = |cas| collection.remove("k", RemoveOptions::new().cas(cas));
    assert_eq!(kind(within(remove(old)).await), ErrorKind::CasMismatch);
    within(remove(new)).await.unwrap();

    let second = Duration::from_secs(1);
    let missing = [
        kind(within(collection.get("k", None)).await),
        kind(within(collection.replace("k", 1, None)).await),
        kind(within(collection.remove("k", None)).await),
        kind(within(collection.touch("k", second, None)).await),
        kind(within(collection.get_and_touch("k", second, None)).await),
        kind(within(collection.get_and_lock("k", second, None)).await),
        kind(within(collection.unlock("k", new, None)).await),
    ];
    assert!(
        missing
            .iter()
            .all(|kind| *kind == ErrorKind::DocumentNotFound),
        "{missing:?}"
    );
}

#[tokio::test]
async fn exists_says_whether() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let stored = within(collection.upsert("k", 1, None)).await.unwrap();
    let found = within(collection.exists("k", None)).await.unwrap();
    assert!(found.exists());
    assert_eq!(found.cas(), stored.cas());
    within(collection.remove("k", None)).await.unwrap();
    assert!(!within(collection.exists("k", None)).await.unwrap().exists());
    // This SDK answers for a document that never was with an error.
    let never = kind(within(collection.exists("never", None)).await);
    assert_eq!(never, ErrorKind::DocumentNotFound);
}

#[tokio::test]
async fn a_document_expires_and_touching_it_gives_it_time() {
    let (cluster, _sdk, collection) = default_collection().await;
    let minute = Duration::from_secs(60);
    within(collection.upsert("k", 1, UpsertOptions::new().expiry(minute)))
        .await
        .unwrap();
    within(collection.upsert("k", 2, UpsertOptions::new().preserve_expiry(true)))
        .await
        .unwrap();
    let found = within(collection.get("k", GetOptions::new().expiry(true)))
        .await
        .unwrap();
    assert!(found.expiry_time().is_some());
    cluster.advance_clock(minute / 2);
    within(collection.touch("k", minute, None)).await.unwrap();
    cluster.advance_clock(minute * 3 / 4);
    let found = within(collection.get_and_touch("k", minute, None))
        .await
        .unwrap();
    assert_eq!(found.content_as::<u64>().unwrap(), 2);
    cluster.advance_clock(minute + Duration::from_secs(1));
    assert_eq!(
        kind(within(collection.get("k", None)).await),
        ErrorKind::DocumentNotFound
    );
}

#[tokio::test]
async fn a_lock_keeps_writers_waiting_until_it_is_unlocked() {
    let (_cluster, _sdk, collection) = default_collection().await;
    within(collection.upsert("k", 1, None)).await.unwrap();
    let locked = within(collection.get_and_lock("k", Duration::from_secs(30), None))
        .await
        .unwrap();
    let writer = collection.clone();
    let mut waiting = tokio::spawn(async move { writer.upsert("k", 2, None).await });
    let early = tokio::time::timeout(Duration::from_millis(200), &mut waiting).await;
    assert!(early.is_err(), "a locked document was written: {early:?}");
    within(collection.unlock("k", locked.cas(), None))
        .await
        .unwrap();
    within(waiting).await.unwrap().unwrap();
    assert_eq!(
        kind(within(collection.unlock("k", locked.cas(), None)).await),
        ErrorKind::DocumentNotLocked
    );
}

#[tokio::test]
async fn counters_start_where_they_are_told_and_stop_at_zero() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let binary = collection.binary();
    let add = |delta| IncrementOptions::new().delta(delta);
    assert_eq!(
        kind(within(binary.increment("k", add(1))).await),
        ErrorKind::DocumentNotFound
    );
    let first = within(binary.increment("k", add(1).initial(10)))
        .await
        .unwrap();
    assert_eq!(first.content(), 10);
    assert_eq!(
        within(binary.increment("k", add(5)))
            .await
            .unwrap()
            .content(),
        15
    );
    let less = DecrementOptions::new().delta(20);
    assert_eq!(
        within(binary.decrement("k", less)).await.unwrap().content(),
        0
    );
    within(collection.upsert("k", json!({}), None))
        .await
        .unwrap();
    assert_eq!(
        kind(within(binary.increment("k", add(1))).await),
        ErrorKind::DeltaInvalid
    );
}

#[tokio::test]
async fn append_and_prepend_add_to_the_ends() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let flags = 0x0400_0000;
    within(collection.upsert_raw("k", b"b", flags, None))
        .await
        .unwrap();
    let binary = collection.binary();
    within(binary.append("k", b"c", None)).await.unwrap();
    let cas = within(binary.prepend("k", b"a", None)).await.unwrap().cas();
    let found = within(collection.get("k", None)).await.unwrap();
    assert_eq!(found.content_as_raw(), (&b"abc"[..], flags));
    let with = || AppendOptions::new().cas(cas);
    within(binary.append("k", b"d", with())).await.unwrap();
    assert_eq!(
        kind(within(binary.append("k", b"e", with())).await),
        ErrorKind::CasMismatch
    );
}

#[tokio::test]
async fn large_values_survive_compression() {
    let (_cluster, _sdk, collection) = default_collection().await;
    let value = "x".repeat(1_000_000);
    within(collection.upsert("k", &value, None)).await.unwrap();
    let found = within(collection.get("k", None)).await.unwrap();
    assert_eq!(found.content_as::<String>().unwrap(), value);
}

#[tokio::test]
async fn every_durability_level_is_kept() {
    let (_cluster, _sdk, collection) = default_collection().await;
    for level in [
        DurabilityLevel::MAJORITY,
        DurabilityLevel::MAJORITY_AND_PERSIST_ACTIVE,
        DurabilityLevel::PERSIST_TO_MAJORITY,
    ] {
        let options = UpsertOptions::new().durability_level(level);
        within(collection.upsert("k", 1, options)).await.unwrap();
    }
}

#[tokio::test]
async fn durability_that_the_bucket_cannot_give_is_impossible() {
    let (cluster, sdk, _) = default_collection().await;
    let three = BucketSettings::new("three").replicas(3).vbuckets(16);
    cluster.create_bucket(three).await.unwrap();
    let collection = sdk.bucket("three").default_collection();
    let options = UpsertOptions::new().durability_level(DurabilityLevel::MAJORITY);
    let refused = kind(within(collection.upsert("k", 1, options)).await);
    assert_eq!(refused, ErrorKind::DurabilityImpossible);
}

#[tokio::test]
async fn a_replica_has_the_document_too() {
    let (_cluster, _sdk, collection) = default_collection().await;
    within(collection.upsert("k", 1, None)).await.unwrap();
    let first = || GetReplicaStrategy::from_index(ReplicaIndex::First, None);
    let found = within(collection.get_replica("k", first(), None))
        .await
        .unwrap();
    assert!(found.is_replica());
    assert_eq!(found.content_as::<u64>().unwrap(), 1);
    let missing = kind(within(collection.get_replica("none", first(), None)).await);
    assert_eq!(missing, ErrorKind::DocumentNotFoundOnReplica);
}

#[tokio::test]
async fn the_same_key_in_two_collections_is_two_documents() {
    let (cluster, sdk, outside) = default_collection().await;
    cluster.create_scope(BUCKET, "s").unwrap();
    cluster.create_collection(BUCKET, "s", "c", 0).unwrap();
    let inside = sdk.bucket(BUCKET).scope("s").collection("c");
    within(outside.upsert("k", "outside", None)).await.unwrap();
    within(inside.upsert("k", "inside", None)).await.unwrap();
    let found = within(inside.get("k", None)).await.unwrap();
    assert_eq!(found.content_as::<String>().unwrap(), "inside");

    // The SDK asks again for what may come yet, so a missing collection is waited for.
    let later = sdk.bucket(BUCKET).scope("s").collection("later");
    let waiting = tokio::spawn(async move { later.upsert("k", 1, None).await });
    cluster.create_collection(BUCKET, "s", "later", 0).unwrap();
    within(waiting).await.unwrap().unwrap();

    cluster.drop_collection(BUCKET, "s", "c").unwrap();
    cluster.create_collection(BUCKET, "s", "c", 0).unwrap();
    assert_eq!(
        kind(within(inside.get("k", None)).await),
        ErrorKind::DocumentNotFound
    );
}

#[tokio::test]
async fn a_temporary_failure_is_retried_and_applied_once() {
    let (cluster, _sdk, collection) = default_collection().await;
    let status = steadfast_wire::Status::TemporaryFailure;
    let refusing = Fault::on(steadfast_wire::Opcode::Set).key("k").times(3);
    let guard = cluster.fault(refusing.answer(status));
    within(collection.upsert("k", 1, None)).await.unwrap();
    assert_eq!(guard.fired(), 3);
    assert_eq!(applied(&cluster), ["k"]);
}

#[tokio::test]
async fn a_write_that_was_cut_off_after_it_was_applied_is_not_sent_again() {
    let (cluster, _sdk, collection) = default_collection().await;
    within(collection.get("k", None)).await.unwrap_err();
    let cut = Fault::on(steadfast_wire::Opcode::Set).key("k").times(1);
    let guard = cluster.fault(cut.cut_after_applying());
    kind(within(collection.upsert("k", 1, None)).await);
    assert_eq!(guard.fired(), 1);
    assert_eq!(applied(&cluster), ["k"]);
    // The SDK may write to the connection that was cut once more, and never hear of it.
    let found = within(async {
        loop {
            let getting = collection.get("k", None);
            if let Ok(found) = tokio::time::timeout(Duration::from_secs(1), getting).await {
                break found.unwrap();
            }
        }
    })
    .await;
    assert_eq!(found.content_as::<u64>().unwrap(), 1);
}
