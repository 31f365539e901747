//! Data commands: their effect, and each status that they can return.

use std::time::Duration;

use crate::support::{
    BUCKET, Client, USUAL, VBUCKETS, active_and_other, cluster, eventually, one_node,
};
use bytes::BytesMut;
use steadfast_cluster::journal::Argument;
use steadfast_cluster::topology::Hold;
use steadfast_cluster::users::Rights;
use steadfast_cluster::{BucketSettings, NodeId};
use steadfast_wire::extras::{
    CounterExtras, DocumentFlags, DocumentMeta, GetMetaVersion, MutationTokenExtras,
};
use steadfast_wire::frame_info::{
    Durability, DurabilityLevel, DurabilityTimeout, RequestFrameInfo,
};
use steadfast_wire::observe::{
    KeyState, ObserveKey, ObserveResult, ObserveSeqnoRequest, ObserveSeqnoResponse,
};
use steadfast_wire::{
    Datatype, Encode, Entries, ErrorBody, Feature, Frame, FrameBuilder, Opcode, Status, vbucket,
};

fn cas(frame: &Frame) -> u64 {
    frame.header().cas
}

#[tokio::test]
async fn get_returns_value_flags_and_cas_or_not_found() {
    let (_cluster, mut client) = one_node().await;
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let stored = client.set("k", "{\"a\":1}").await;
    assert_eq!(stored.status(), Status::Success);
    let found = client.get("k").await;
    assert_eq!(found.status(), Status::Success);
    assert_eq!(found.value(), b"{\"a\":1}");
    assert_eq!(DocumentFlags::decode(found.extras()).unwrap().flags, 7);
    assert_eq!(found.header().datatype, Datatype::JSON);
    assert_eq!(cas(&found), cas(&stored));
}

/// Responses are sent in parts of 8, 16, 32 and so on.
#[tokio::test]
async fn each_request_of_a_batch_of_any_length_is_answered_in_order() {
    let (_cluster, mut client) = one_node().await;
    for length in [1, 7, 8, 9, 23, 24, 25, 56, 57, 120, 1000] {
        let mut batch = BytesMut::new();
        for opaque in 0..length {
            let noop = FrameBuilder::request(Opcode::Noop).opaque(opaque);
            noop.encode(&mut batch).unwrap();
        }
        client.send_bytes(&batch).await;
        for opaque in 0..length {
            let answer = client.receive().await.expect("the connection stays");
            assert_eq!(answer.opaque(), opaque, "in a batch of {length}");
        }
        assert!(client.is_quiet(Duration::from_millis(5)).await);
    }
}

#[tokio::test]
async fn a_store_answers_with_a_mutation_token_that_counts_up() {
    let (_cluster, mut client) = one_node().await;
    let first = MutationTokenExtras::decode(client.set("k", "1").await.extras()).unwrap();
    let second = MutationTokenExtras::decode(client.set("k", "2").await.extras()).unwrap();
    assert_eq!(first.vbucket_uuid, second.vbucket_uuid);
    assert_eq!((first.seqno, second.seqno), (1, 2));
}

#[tokio::test]
async fn set_add_and_replace_check_the_stored_document() {
    let (_cluster, mut client) = one_node().await;
    for (opcode, cas) in [(Opcode::Replace, 0), (Opcode::Set, 99)] {
        let missing = client.store(opcode, "k", "1", cas).await;
        assert_eq!(missing.status(), Status::KeyNotFound, "{opcode}");
    }
    let added = client.store(Opcode::Add, "k", "1", 0).await;
    assert_eq!(added.status(), Status::Success);
    for (opcode, cas) in [(Opcode::Add, 0), (Opcode::Set, 99), (Opcode::Replace, 99)] {
        let refused = client.store(opcode, "k", "1", cas).await;
        assert_eq!(refused.status(), Status::KeyExists, "{opcode}");
    }
    let replaced = client.store(Opcode::Replace, "k", "2", cas(&added)).await;
    assert_eq!(replaced.status(), Status::Success);
    assert!(cas(&replaced) > cas(&added));
}

#[tokio::test]
async fn a_value_that_is_too_large_is_rejected_and_the_connection_stays_open() {
    let (_cluster, mut client) = one_node().await;
    let large = "x".repeat(20 * 1024 * 1024 + 1);
    assert_eq!(client.set("k", &large).await.status(), Status::TooBig);
    assert_eq!(client.set("k", "1").await.status(), Status::Success);
}

#[tokio::test]
async fn remove_leaves_a_tombstone_that_only_metadata_shows() {
    let (_cluster, mut client) = one_node().await;
    assert_eq!(client.remove("k", 0).await.status(), Status::KeyNotFound);
    let stored = client.set("k", "1").await;
    assert_eq!(client.remove("k", 99).await.status(), Status::KeyExists);
    let removed = client.remove("k", cas(&stored)).await;
    assert_eq!(removed.status(), Status::Success);
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let get_meta = client.on(Opcode::GetMeta, "k");
    let get_meta = get_meta.extras(GetMetaVersion::WithDatatype);
    let meta = client.call(get_meta).await;
    assert_eq!(meta.status(), Status::Success);
    assert!(DocumentMeta::decode(meta.extras()).unwrap().deleted);
    let meta = client.call(client.on(Opcode::GetMeta, "never")).await;
    assert_eq!(meta.status(), Status::KeyNotFound);
}

#[tokio::test]
async fn counters_start_count_stop_at_zero_and_reject_text() {
    let (_cluster, mut client) = one_node().await;
    let value = |frame: &Frame| u64::from_be_bytes(frame.value().try_into().unwrap());
    let counter = |delta, initial, expiry| CounterExtras {
        delta,
        initial,
        expiry,
    };
    let existing = counter(1, 5, CounterExtras::DO_NOT_CREATE);
    let missing = client.count(Opcode::Increment, "k", existing).await;
    assert_eq!(missing.status(), Status::KeyNotFound);
    for (opcode, delta, expected) in [
        (Opcode::Increment, 1, 5),
        (Opcode::Increment, 3, 8),
        (Opcode::Decrement, 10, 0),
    ] {
        let counted = client.count(opcode, "k", counter(delta, 5, 0)).await;
        assert_eq!(value(&counted), expected);
    }
    assert_eq!(client.get("k").await.value(), b"0");
    client.set("k", "\"text\"").await;
    let refused = client.count(Opcode::Increment, "k", counter(1, 0, 0)).await;
    assert_eq!(refused.status(), Status::DeltaBadValue);
}

#[tokio::test]
async fn append_and_prepend_need_an_existing_document() {
    let (_cluster, mut client) = one_node().await;
    let concat = async |client: &mut Client, opcode, cas| {
        let request = client.on(opcode, "k").cas(cas);
        client.status(request.value("x")).await
    };
    for opcode in [Opcode::Append, Opcode::Prepend] {
        let status = concat(&mut client, opcode, 0).await;
        assert_eq!(status, Status::NotStored, "{opcode}");
    }
    client.set("k", "-").await;
    for (opcode, cas, status) in [
        (Opcode::Append, 0, Status::Success),
        (Opcode::Prepend, 0, Status::Success),
        (Opcode::Append, 9, Status::KeyExists),
    ] {
        assert_eq!(concat(&mut client, opcode, cas).await, status, "{opcode}");
    }
    assert_eq!(client.get("k").await.value(), b"x-x");
}

#[tokio::test]
async fn a_touch_is_answered_with_a_cas_and_without_a_mutation_token() {
    let (_cluster, mut client) = one_node().await;
    let stored = client.set("k", "1").await;
    assert_eq!(stored.extras().len(), 16);
    let touched = client.touch(Opcode::Touch, "k", 10).await;
    assert_eq!(touched.status(), Status::Success);
    assert_ne!(touched.header().cas, stored.header().cas);
    assert!(touched.extras().is_empty());
}

#[tokio::test]
async fn a_document_expires_when_the_clock_passes_its_expiry() {
    let (cluster, mut client) = one_node().await;
    client.set_with_expiry("k", "1", 10).await;
    cluster.advance_clock(Duration::from_secs(8));
    assert_eq!(client.get("k").await.status(), Status::Success);
    let touched = client.touch(Opcode::Touch, "k", 10).await;
    assert_eq!(touched.status(), Status::Success);
    cluster.advance_clock(Duration::from_secs(8));
    let touched = client.touch(Opcode::GetAndTouch, "k", 10).await;
    assert_eq!(
        (touched.status(), touched.value()),
        (Status::Success, &b"1"[..])
    );
    cluster.advance_clock(Duration::from_secs(11));
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    for opcode in [Opcode::Touch, Opcode::GetAndTouch] {
        let expired = client.touch(opcode, "k", 10).await;
        assert_eq!(expired.status(), Status::KeyNotFound, "{opcode}");
    }
    let added = client.store(Opcode::Add, "k", "2", 0).await;
    assert_eq!(added.status(), Status::Success);
}

#[tokio::test]
async fn preserve_ttl_keeps_the_expiry_and_its_absence_clears_it() {
    let (cluster, mut client) = one_node().await;
    let expiry = || cluster.document(BUCKET, ".", b"k").unwrap().unwrap().expiry;
    client.set_with_expiry("k", "1", 100).await;
    let before = expiry();
    assert_ne!(before, 0);
    let keep = client.storing(Opcode::Set, "k", "2");
    let keep = keep.framing(RequestFrameInfo::PreserveTtl);
    assert_eq!(client.status(keep).await, Status::Success);
    assert_eq!(expiry(), before);
    client.set("k", "3").await;
    assert_eq!(expiry(), 0);
}

#[tokio::test]
async fn a_lock_hides_the_cas_rejects_other_writers_and_expires() {
    let (cluster, mut client) = one_node().await;
    assert_eq!(client.lock("k", 5).await.status(), Status::KeyNotFound);
    client.set("k", "1").await;
    assert_eq!(client.unlock("k", 1).await.status(), Status::NotLocked);
    let locked = client.lock("k", 5).await;
    assert_eq!(
        (locked.status(), locked.value()),
        (Status::Success, &b"1"[..])
    );
    assert_eq!(client.lock("k", 5).await.status(), Status::Locked);
    assert_eq!(client.set("k", "2").await.status(), Status::Locked);
    assert_eq!(client.remove("k", 0).await.status(), Status::Locked);
    let touched = client.touch(Opcode::Touch, "k", 1).await;
    assert_eq!(touched.status(), Status::Locked);
    assert_eq!(client.unlock("k", 1).await.status(), Status::Locked);
    assert_eq!(cas(&client.get("k").await), u64::MAX);
    let written = client.store(Opcode::Set, "k", "2", cas(&locked)).await;
    // The right CAS writes and unlocks.
    assert_eq!(written.status(), Status::Success);
    assert_eq!(client.set("k", "3").await.status(), Status::Success);

    let again = client.lock("k", 5).await;
    let unlocked = client.unlock("k", cas(&again)).await;
    assert_eq!(unlocked.status(), Status::Success);
    // A lock of zero seconds lasts fifteen.
    client.lock("k", 0).await;
    cluster.advance_clock(Duration::from_secs(14));
    assert_eq!(client.set("k", "4").await.status(), Status::Locked);
    cluster.advance_clock(Duration::from_secs(2));
    assert_eq!(client.set("k", "4").await.status(), Status::Success);
    assert_eq!(client.unlock("gone", 1).await.status(), Status::KeyNotFound);
}

#[tokio::test]
async fn without_extended_errors_a_lock_is_a_temporary_failure() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::ready(&cluster, NodeId::new(0), &[Feature::SelectBucket]).await;
    client.set("k", "1").await;
    client.lock("k", 5).await;
    let locked = client.set("k", "2").await;
    assert_eq!(locked.status(), Status::TemporaryFailure);
    assert_eq!(client.get("k").await.extras().len(), 4);
}

#[tokio::test]
async fn replica_reads_work_only_on_nodes_that_have_the_replica() {
    let cluster = cluster(2, 1).await;
    let (active, other) = active_and_other(&cluster, "k");
    let mut on_active = Client::ready(&cluster, active, USUAL).await;
    let mut on_replica = Client::ready(&cluster, other, USUAL).await;
    on_active.set("k", "1").await;
    let get = on_replica.on(Opcode::GetReplica, "k");
    let read = on_replica.call(get).await;
    assert_eq!((read.status(), read.value()), (Status::Success, &b"1"[..]));
    let missing = on_replica.on(Opcode::GetReplica, "none-x");
    let missing = on_replica.status(missing).await;
    assert!(matches!(
        missing,
        Status::KeyNotFound | Status::NotMyVbucket
    ));
    let get = on_active.on(Opcode::GetReplica, "k");
    assert_eq!(on_active.status(get).await, Status::NotMyVbucket);
    assert_eq!(on_replica.get("k").await.status(), Status::NotMyVbucket);
}

#[tokio::test]
async fn observe_reports_whether_a_document_is_persisted_or_deleted() {
    let cluster = cluster(1, 0).await;
    let node = NodeId::new(0);
    let mut client = Client::for_key(&cluster, "k").await;
    let hold = cluster.hold(Hold::Persistence, node).unwrap();
    client.set("k", "1").await;
    let mut value = BytesMut::new();
    for key in [b"\0k".as_slice(), b"\0none"] {
        let vbucket = vbucket::of_key(&key[1..], VBUCKETS);
        let entry = ObserveKey { vbucket, key };
        entry.append_to(&mut value).unwrap();
    }
    let check = async |client: &mut Client, state| {
        let observe = FrameBuilder::request(Opcode::Observe);
        let answer = client.call(observe.value(value.to_vec())).await;
        assert_eq!(answer.status(), Status::Success);
        let states: Vec<_> = Entries::<ObserveResult<'_>>::new(answer.value())
            .map(|entry| entry.unwrap().state)
            .collect();
        assert_eq!(states, [state, KeyState::NotFound]);
    };
    check(&mut client, KeyState::NotPersisted).await;
    drop(hold);
    check(&mut client, KeyState::Persisted).await;
    client.remove("k", 0).await;
    check(&mut client, KeyState::LogicallyDeleted).await;
    let bad = FrameBuilder::request(Opcode::Observe).value([0, 0, 0]);
    assert_eq!(client.status(bad).await, Status::InvalidArguments);
}

#[tokio::test]
async fn observe_seqno_notices_a_failover() {
    let cluster = cluster(2, 1).await;
    let active = cluster.active_node(BUCKET, b"k").unwrap().unwrap();
    let mut client = Client::for_key(&cluster, "k").await;
    let token = MutationTokenExtras::decode(client.set("k", "1").await.extras()).unwrap();
    let observe = |uuid| {
        FrameBuilder::request(Opcode::ObserveSeqno)
            .vbucket(vbucket::of_key(b"k", VBUCKETS))
            .value(ObserveSeqnoRequest { vbucket_uuid: uuid })
    };
    let answer = client.call(observe(token.vbucket_uuid)).await;
    let result = ObserveSeqnoResponse::decode(answer.value()).unwrap();
    assert_eq!((result.current_seqno, result.persisted_seqno), (1, 1));
    assert_eq!(result.failover, None);
    assert_eq!(client.status(observe(12345)).await, Status::KeyNotFound);

    cluster.fail_over(active).await.unwrap();
    let mut client = Client::for_key(&cluster, "k").await;
    let answer = client.call(observe(token.vbucket_uuid)).await;
    let result = ObserveSeqnoResponse::decode(answer.value()).unwrap();
    let failover = result.failover.expect("the history ended");
    assert_eq!(failover.old_vbucket_uuid, token.vbucket_uuid);
    assert_eq!(failover.last_seqno_received, 1);
    assert_ne!(result.vbucket_uuid, token.vbucket_uuid);
}

fn durably(level: u8, millis: u16) -> RequestFrameInfo<'static> {
    RequestFrameInfo::Durability(Durability {
        level: DurabilityLevel::from_code(level),
        timeout: DurabilityTimeout::from_millis(millis),
    })
}

#[tokio::test]
async fn durable_writes_are_invalid_impossible_or_done() {
    let lonely = cluster(1, 1).await;
    let mut client = Client::for_key(&lonely, "k").await;
    let write = |client: &Client, level| {
        let request = client.storing(Opcode::Set, "k", "1");
        request.framing(durably(level, 2000))
    };
    for (level, status) in [
        (9, Status::DurabilityInvalidLevel),
        (1, Status::DurabilityImpossible),
    ] {
        assert_eq!(client.status(write(&client, level)).await, status);
    }
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);

    let pair = cluster(2, 1).await;
    let mut client = Client::for_key(&pair, "k").await;
    for level in 1..=3 {
        let status = client.status(write(&client, level)).await;
        assert_eq!(status, Status::Success);
    }
}

#[tokio::test]
async fn a_pending_durable_write_shows_the_old_value_and_blocks_other_writes() {
    let cluster = cluster(2, 1).await;
    let (_, replica) = active_and_other(&cluster, "k");
    let mut writer = Client::for_key(&cluster, "k").await;
    let mut other = Client::for_key(&cluster, "k").await;
    writer.set("k", "\"old\"").await;
    let hold = cluster.hold(Hold::Replication, replica).unwrap();
    let durable = |value: &'static str, millis| {
        let request = writer.storing(Opcode::Set, "k", value);
        request.framing(durably(1, millis))
    };
    let (slow, hurried) = (durable("\"new\"", 60_000), durable("\"newer\"", 20));
    writer.send(slow).await;
    // The other connection cannot know when the write has begun, but soon it has.
    let status = loop {
        let status = other.set("k", "\"other\"").await.status();
        if status != Status::Success {
            break status;
        }
    };
    assert_eq!(status, Status::SyncWriteInProgress);
    let before = other.get("k").await;
    assert_ne!(before.value(), b"\"new\"");
    drop(hold);
    assert_eq!(writer.receive().await.unwrap().status(), Status::Success);
    assert_eq!(other.get("k").await.value(), b"\"new\"");

    let _hold = cluster.hold(Hold::Replication, replica).unwrap();
    assert_eq!(writer.status(hurried).await, Status::SyncWriteAmbiguous);
    assert_eq!(other.get("k").await.value(), b"\"new\"");
    assert_eq!(other.set("k", "\"other\"").await.status(), Status::Success);
}

#[tokio::test]
async fn collections_are_resolved_used_and_missed() {
    let cluster = cluster(1, 0).await;
    cluster.create_scope(BUCKET, "s").unwrap();
    cluster.create_collection(BUCKET, "s", "c", 0).unwrap();
    let mut client = Client::for_key(&cluster, "k").await;
    let resolve = |path: &'static str| FrameBuilder::request(Opcode::GetCollectionId).value(path);
    let found = client.call(resolve("s.c")).await;
    assert_eq!(found.status(), Status::Success);
    client.collection = u32::from_be_bytes(found.extras()[8..].try_into().unwrap());
    assert_eq!(client.set("k", "1").await.status(), Status::Success);
    for (path, status) in [
        ("s.none", Status::UnknownCollection),
        ("none.c", Status::UnknownScope),
        ("nodot", Status::InvalidArguments),
    ] {
        assert_eq!(client.status(resolve(path)).await, status, "{path}");
    }
    let scope = FrameBuilder::request(Opcode::GetScopeId).value("s");
    assert_eq!(client.status(scope).await, Status::Success);
    let manifest = FrameBuilder::request(Opcode::GetCollectionsManifest);
    let manifest = client.call(manifest).await;
    assert!(String::from_utf8_lossy(manifest.value()).contains("\"uid\":\"2\""));

    cluster.drop_collection(BUCKET, "s", "c").unwrap();
    let refused = client.get("k").await;
    assert_eq!(refused.status(), Status::UnknownCollection);
    let error = ErrorBody::of(&refused).unwrap().unwrap();
    assert_eq!(error.manifest_uid, Some(3));
    // Ids are not reused.
    cluster.create_collection(BUCKET, "s", "c", 0).unwrap();
    assert_eq!(client.get("k").await.status(), Status::UnknownCollection);
}

#[tokio::test]
async fn a_collection_limits_the_expiry_of_its_documents() {
    let cluster = cluster(1, 0).await;
    cluster
        .create_collection(BUCKET, "_default", "short", 60)
        .unwrap();
    let mut client = Client::for_key(&cluster, "k").await;
    let resolve = FrameBuilder::request(Opcode::GetCollectionId).value(".short");
    let found = client.call(resolve).await;
    client.collection = u32::from_be_bytes(found.extras()[8..].try_into().unwrap());
    client.set("k", "1").await;
    cluster.advance_clock(Duration::from_secs(61));
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
}

#[tokio::test]
async fn a_limit_keeps_an_earlier_expiry_whether_relative_or_absolute() {
    let cluster = cluster(1, 0).await;
    cluster
        .create_collection(BUCKET, "_default", "short", 60)
        .unwrap();
    let mut client = Client::for_key(&cluster, "k").await;
    let resolve = FrameBuilder::request(Opcode::GetCollectionId).value(".short");
    let found = client.call(resolve).await;
    client.collection = u32::from_be_bytes(found.extras()[8..].try_into().unwrap());
    let expiry = || {
        let document = cluster.document(BUCKET, ".short", b"k").unwrap();
        document.unwrap().expiry
    };
    client.set_with_expiry("k", "1", 10).await;
    let soon = expiry();
    client.set_with_expiry("k", "1", soon).await;
    assert_eq!(expiry(), soon);
    client.set_with_expiry("k", "1", soon + 1_000_000).await;
    assert!((soon + 40..soon + 60).contains(&expiry()));
}

#[tokio::test]
async fn a_touch_to_a_past_moment_succeeds_and_the_document_is_gone() {
    let (_cluster, mut client) = one_node().await;
    // Thirty days and a second: a date in 1970.
    let past = 30 * 24 * 60 * 60 + 1;
    for opcode in [Opcode::Touch, Opcode::GetAndTouch] {
        client.set("k", "1").await;
        let touched = client.touch(opcode, "k", past).await;
        assert_eq!(touched.status(), Status::Success, "{opcode}");
        assert_ne!(cas(&touched), 0);
        assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
        let again = client.touch(opcode, "k", past).await;
        assert_eq!(again.status(), Status::KeyNotFound);
    }
}

#[tokio::test]
async fn compressed_values_are_inflated_for_clients_without_snappy() {
    let cluster = cluster(1, 0).await;
    let plain_text = format!("\"{}\"", "x".repeat(500));
    let packed = snap::raw::Encoder::new()
        .compress_vec(plain_text.as_bytes())
        .unwrap();
    let mut features = USUAL.to_vec();
    features.push(Feature::Snappy);
    let mut modern = Client::ready(&cluster, NodeId::new(0), &features).await;
    let mut plain = Client::ready(&cluster, NodeId::new(0), USUAL).await;
    let packed_store = || {
        modern
            .storing(Opcode::Set, "k", "")
            .datatype(Datatype::SNAPPY)
    };
    let store = packed_store().value(&packed[..]);
    let broken = packed_store().value("\u{ff}\u{ff}\u{ff}");
    assert_eq!(modern.status(store).await, Status::Success);
    let read = modern.get("k").await;
    assert_eq!(read.header().datatype, Datatype::JSON | Datatype::SNAPPY);
    assert_eq!(read.value(), packed);
    let read = plain.get("k").await;
    assert_eq!(read.header().datatype, Datatype::JSON);
    assert_eq!(read.value(), plain_text.as_bytes());
    assert_eq!(modern.status(broken).await, Status::InvalidArguments);
}

#[tokio::test]
async fn a_full_bucket_frees_room_by_dropping_expired_documents() {
    let cluster = cluster(1, 0).await;
    let small = BucketSettings::new("small")
        .vbuckets(VBUCKETS)
        .quota_bytes(5_000);
    cluster.create_bucket(small).await.unwrap();
    let mut client = Client::for_key(&cluster, "k").await;
    client.select("small").await;
    let value = "x".repeat(6_000);
    let stored = client.set_with_expiry("k", &value, 10).await;
    assert_eq!(stored.status(), Status::Success);
    assert_eq!(client.set("l", "1").await.status(), Status::OutOfMemory);
    cluster.advance_clock(Duration::from_secs(11));
    assert_eq!(client.set("l", "1").await.status(), Status::Success);
}

#[tokio::test]
async fn a_full_bucket_rejects_writes_until_documents_are_removed() {
    let cluster = cluster(1, 0).await;
    let small = BucketSettings::new("small")
        .vbuckets(VBUCKETS)
        .quota_bytes(10_000);
    cluster.create_bucket(small).await.unwrap();
    let mut client = Client::for_key(&cluster, "k").await;
    assert_eq!(client.select("small").await, Status::Success);
    let value = "x".repeat(1000);
    let mut statuses = Vec::new();
    for number in 0..20 {
        statuses.push(client.set(&format!("k{number}"), &value).await.status());
    }
    assert_eq!(statuses[0], Status::Success);
    assert_eq!(statuses[19], Status::OutOfMemory);
    for number in 0..20 {
        client.remove(&format!("k{number}"), 0).await;
    }
    assert_eq!(client.set("k0", &value).await.status(), Status::Success);
}

#[tokio::test]
async fn a_random_key_names_an_existing_document() {
    let (_cluster, mut client) = one_node().await;
    let random = || FrameBuilder::request(Opcode::GetRandomKey);
    assert_eq!(client.status(random()).await, Status::KeyNotFound);
    client.set("k", "1").await;
    let found = client.call(random()).await;
    assert_eq!((found.key(), found.value()), (&b"\0k"[..], &b"1"[..]));
    let unknown = random().extras(77u32.to_be_bytes());
    assert_eq!(client.status(unknown).await, Status::UnknownCollection);
}

#[tokio::test]
async fn malformed_requests_are_invalid_and_unknown_commands_unknown() {
    let (_cluster, mut client) = one_node().await;
    let no_extras = client.on(Opcode::Set, "k").value("1");
    assert_eq!(client.status(no_extras).await, Status::InvalidArguments);
    for key in ["", &"k".repeat(251)] {
        assert_eq!(client.get(key).await.status(), Status::InvalidArguments);
    }
    let not_leb128 = FrameBuilder::request(Opcode::Get).key([0x80, 0x80]);
    assert_eq!(client.status(not_leb128).await, Status::InvalidArguments);
    let unknown = FrameBuilder::request(Opcode::from_code(0xf7));
    assert_eq!(client.status(unknown).await, Status::UnknownCommand);
    let info = steadfast_wire::frame_info::RawFrameInfo {
        id: 9,
        payload: &[],
    };
    let framed = client.on(Opcode::Delete, "k").framing(info);
    assert_eq!(client.status(framed).await, Status::UnknownFrameInfo);
    let noop = client.call(FrameBuilder::request(Opcode::Noop)).await;
    assert_eq!(noop.status(), Status::Success);
}

#[tokio::test]
async fn a_read_only_user_cannot_write_and_an_unknown_user_can_do_nothing() {
    let cluster = cluster(1, 0).await;
    cluster
        .users()
        .put("reader", "r", Rights::buckets([BUCKET]).read_only());
    let mut client = Client::connect(&cluster, NodeId::new(0)).await;
    client.hello(USUAL).await;
    assert_eq!(client.get("k").await.status(), Status::AccessError);
    assert_eq!(client.authenticate("reader", "r").await, Status::Success);
    assert_eq!(client.get("k").await.status(), Status::NoBucket);
    client.select(BUCKET).await;
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let refused = client.set("k", "1").await;
    assert_eq!(refused.status(), Status::AccessError);
    assert!(ErrorBody::of(&refused).unwrap().unwrap().context.is_some());
}

#[tokio::test]
async fn the_journal_records_every_applied_mutation_and_nothing_else() {
    let (cluster, mut client) = one_node().await;
    client.get("k").await;
    let stored = client.set("k", "1").await;
    client.store(Opcode::Add, "k", "1", 0).await;
    let removed = client.remove("k", 0).await;
    eventually("two entries", || cluster.journal().applied() == 2).await;
    let entries = cluster.journal().since(0);
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry.opcode, entry.key(), entry.receipt.cas, entry.opaque))
        .collect();
    assert_eq!(
        seen[0],
        (Opcode::Set, &b"k"[..], cas(&stored), stored.opaque())
    );
    assert_eq!(
        seen[1],
        (Opcode::Delete, &b"k"[..], cas(&removed), removed.opaque())
    );
    assert_eq!(cluster.journal().forgotten(), 0);
}

/// Two appends to one document have the same command and key; their values tell them apart.
#[tokio::test]
async fn the_journal_keeps_the_first_bytes_of_each_value() {
    let (cluster, mut client) = one_node().await;
    let long = "x".repeat(300);
    client.set("k", "first").await;
    let second = client.on(Opcode::Append, "k").value("second");
    client.call(second).await;
    client.set("k", &long).await;
    let counter = CounterExtras {
        delta: 7,
        initial: 1,
        expiry: 0,
    };
    client.count(Opcode::Increment, "c", counter).await;
    eventually("four entries", || cluster.journal().applied() == 4).await;
    let entries = cluster.journal().since(0);
    let arguments: Vec<_> = entries
        .iter()
        .map(|entry| entry.argument.as_bytes())
        .collect();
    let kept = &long.as_bytes()[..Argument::MAX];
    assert_eq!(arguments[..3], [b"first".as_slice(), b"second", kept]);
    assert_eq!(arguments[3][..8], 7u64.to_be_bytes());
}
