//! Range scans against a real socket.

use crate::support::{Client, VBUCKETS, one_node};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steadfast_wire::{Frame, FrameBuilder, Opcode, Status, vbucket};

const SHARD: u16 = 5;

/// Keys of one vbucket, with this prefix, in order.
fn keys(prefix: &str, count: usize) -> Vec<String> {
    let all = (0..).map(|number| format!("{prefix}{number:06}"));
    all.filter(|key| vbucket::of_key(key.as_bytes(), VBUCKETS) == SHARD)
        .take(count)
        .collect()
}

async fn create(client: &mut Client, request: &Value) -> Frame {
    let create = FrameBuilder::request(Opcode::RangeScanCreate).vbucket(SHARD);
    client.call(create.value(request.to_string())).await
}

fn continuing(id: &[u8], items: u32, bytes: u32) -> FrameBuilder<(), Vec<u8>> {
    let limits = [items, 0, bytes].map(u32::to_be_bytes).concat();
    FrameBuilder::request(Opcode::RangeScanContinue)
        .vbucket(SHARD)
        .extras([id, &limits].concat())
}

fn between(start: &str, end: &str) -> Value {
    json!({"start": STANDARD.encode(start), "end": STANDARD.encode(end)})
}

/// The keys of a response with keys only. They are shorter than 128 bytes.
fn read_keys(frame: &Frame) -> Vec<String> {
    assert_eq!(frame.extras(), 0u32.to_be_bytes());
    let (mut rest, mut found) = (frame.value(), Vec::new());
    while let Some((length, tail)) = rest.split_first() {
        let (key, tail) = tail.split_at(usize::from(*length));
        found.push(String::from_utf8(key.to_vec()).unwrap());
        rest = tail;
    }
    found
}

#[tokio::test]
async fn a_range_is_scanned_in_order_in_as_many_steps_as_the_client_wants() {
    let (_cluster, mut client) = one_node().await;
    let wanted = keys("a", 5);
    for key in wanted.iter().chain(&keys("b", 2)) {
        client.set(key, "1").await;
    }
    let request = json!({"key_only": true, "range": between("a", "a\u{ff}")});
    let created = create(&mut client, &request).await;
    assert_eq!(
        (created.status(), created.value().len()),
        (Status::Success, 16)
    );
    let id = created.value().to_vec();
    // The scan is a snapshot: later changes do not show.
    client.remove(&wanted[4], 0).await;
    let first = client.call(continuing(&id, 3, 0)).await;
    assert_eq!(first.status(), Status::RangeScanMore);
    assert_eq!(read_keys(&first), wanted[..3]);
    let one = client.call(continuing(&id, 0, 1)).await;
    assert_eq!(read_keys(&one), wanted[3..4]);
    let last = client.call(continuing(&id, 0, 0)).await;
    assert_eq!(last.status(), Status::RangeScanComplete);
    assert_eq!(read_keys(&last), wanted[4..]);
    let over = client.call(continuing(&id, 0, 0)).await;
    assert_eq!(over.status(), Status::KeyNotFound);
}

#[tokio::test]
async fn bounds_can_be_exclusive_and_documents_come_with_their_metadata() {
    let (_cluster, mut client) = one_node().await;
    let wanted = keys("a", 3);
    for key in &wanted {
        client.set(key, "{\"x\":1}").await;
    }
    let range = json!({
        "excl_start": STANDARD.encode(&wanted[0]),
        "excl_end": STANDARD.encode(&wanted[2]),
    });
    let created = create(&mut client, &json!({"collection": "0", "range": range})).await;
    let found = client.call(continuing(created.value(), 0, 0)).await;
    assert_eq!(found.status(), Status::RangeScanComplete);
    assert_eq!(found.extras(), 1u32.to_be_bytes());
    let cas = client.get(&wanted[1]).await.header().cas;
    let key = wanted[1].as_bytes();
    let expected = [
        &7u32.to_be_bytes()[..],
        &0u32.to_be_bytes(),
        &2u64.to_be_bytes(),
        &cas.to_be_bytes(),
        &[1, u8::try_from(key.len()).unwrap()],
        key,
        &[7],
        b"{\"x\":1}",
    ];
    assert_eq!(found.value(), expected.concat());
}

#[tokio::test]
async fn a_sample_has_so_many_documents_and_the_same_ones_for_a_seed() {
    let (_cluster, mut client) = one_node().await;
    for key in keys("a", 20) {
        client.set(&key, "1").await;
    }
    let mut samples = Vec::new();
    for seed in [1, 1, 2] {
        let request = json!({"key_only": true, "sampling": {"samples": 8, "seed": seed}});
        let created = create(&mut client, &request).await;
        let found = client.call(continuing(created.value(), 0, 0)).await;
        samples.push(read_keys(&found));
    }
    assert_eq!(samples[0].len(), 8);
    assert_eq!(samples[0], samples[1]);
    assert_ne!(samples[0], samples[2]);
}

#[tokio::test]
async fn a_large_scan_comes_in_several_responses() {
    let (_cluster, mut client) = one_node().await;
    let value = format!("\"{}\"", "x".repeat(900_000));
    let wanted = keys("a", 4);
    for key in &wanted {
        client.set(key, &value).await;
    }
    let created = create(&mut client, &json!({"range": between("a", "b")})).await;
    client.send(continuing(created.value(), 0, 0)).await;
    let mut statuses = Vec::new();
    let mut bytes = 0;
    while statuses.last() != Some(&Status::RangeScanComplete) {
        let frame = client.receive().await.unwrap();
        bytes += frame.value().len();
        statuses.push(frame.status());
    }
    assert_eq!(statuses[0], Status::Success);
    assert!(bytes > 4 * 900_000, "{bytes} bytes in {statuses:?}");
}

#[tokio::test]
async fn scans_that_cannot_be_are_refused() {
    let (_cluster, mut client) = one_node().await;
    let key = &keys("a", 1)[0];
    let stored = client.set(key, "1").await;
    let uuid = u64::from_be_bytes(stored.extras()[..8].try_into().unwrap());
    let all = between("a", "b");
    let after = |uuid: u64, seqno: u64| {
        json!({"range": all, "snapshot_requirements":
            {"vb_uuid": uuid.to_string(), "seqno": seqno, "timeout_ms": 10}})
    };
    for (request, status) in [
        (json!({"range": between("x", "y")}), Status::KeyNotFound),
        (
            json!({"collection": "77", "range": all}),
            Status::UnknownCollection,
        ),
        (json!({}), Status::InvalidArguments),
        (
            json!({"sampling": {"samples": 0}}),
            Status::InvalidArguments,
        ),
        (
            json!({"range": {"start": "!", "end": ""}}),
            Status::InvalidArguments,
        ),
        (after(uuid, 1), Status::Success),
        (after(uuid + 1, 1), Status::VbucketUuidNotEqual),
        (after(uuid, 99), Status::TemporaryFailure),
    ] {
        assert_eq!(
            create(&mut client, &request).await.status(),
            status,
            "{request}"
        );
    }
    let created = create(&mut client, &json!({"range": all})).await;
    let cancel = |id: &[u8]| {
        let cancel = FrameBuilder::request(Opcode::RangeScanCancel).vbucket(SHARD);
        cancel.extras(id.to_vec())
    };
    assert_eq!(
        client.status(cancel(created.value())).await,
        Status::Success
    );
    let twice = client.status(cancel(created.value())).await;
    assert_eq!(twice, Status::KeyNotFound);
    let short = client.status(continuing(&[1, 2], 0, 0)).await;
    assert_eq!(short, Status::InvalidArguments);
}
