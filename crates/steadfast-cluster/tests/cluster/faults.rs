//! A test for every effect, each seen from the client's side and in the journal.

use std::time::Duration;

use crate::support::{Client, USUAL, cluster, eventually, one_node};
use bytes::BytesMut;
use steadfast_cluster::NodeId;
use steadfast_cluster::fault::{Fault, Garble};
use steadfast_wire::{ErrorBody, Feature, FrameDecoder, FrameError, HEADER_LEN, Opcode, Status};
use tokio::time::Instant;

async fn send_set(client: &mut Client, key: &str) -> u32 {
    client.send(client.storing(Opcode::Set, key, "1")).await
}

#[tokio::test]
async fn pass_exempts_from_the_rules_behind_it() {
    let (cluster, mut client) = one_node().await;
    let spared = cluster.fault(Fault::on(Opcode::Set).key("spared").pass());
    let _rest = cluster.fault(Fault::on(Opcode::Set).answer(Status::Busy));
    assert_eq!(client.set("spared", "1").await.status(), Status::Success);
    assert_eq!(client.set("other", "1").await.status(), Status::Busy);
    assert_eq!(spared.fired(), 1);
}

#[tokio::test]
async fn delay_makes_a_request_wait_before_it_is_applied() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).delay(Duration::from_millis(50)));
    let start = Instant::now();
    send_set(&mut client, "k").await;
    assert_eq!(client.receive().await.unwrap().status(), Status::Success);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(client.get("k").await.status(), Status::Success);
}

#[tokio::test]
async fn a_connection_without_unordered_execution_keeps_its_order() {
    let cluster = cluster(1, 0).await;
    let ordered: Vec<Feature> = USUAL
        .iter()
        .copied()
        .filter(|feature| *feature != Feature::UnorderedExecution)
        .collect();
    let mut client = Client::ready(&cluster, NodeId::new(0), &ordered).await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).delay(Duration::from_millis(20)));
    let first = send_set(&mut client, "k").await;
    let second = client.send(client.on(Opcode::Get, "k")).await;
    let answers = [
        client.receive().await.unwrap(),
        client.receive().await.unwrap(),
    ];
    assert_eq!(
        answers.each_ref().map(|answer| answer.opaque()),
        [first, second]
    );
    assert_eq!(answers[1].status(), Status::Success);
}

#[tokio::test]
async fn delay_answer_applies_at_once_and_answers_later() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).delay_answer(Duration::from_millis(50)));
    let start = Instant::now();
    send_set(&mut client, "k").await;
    eventually("it is applied", || cluster.journal().applied() == 1).await;
    assert_eq!(client.receive().await.unwrap().status(), Status::Success);
    assert!(start.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn answer_refuses_with_status_and_body_and_applies_nothing() {
    let (cluster, mut client) = one_node().await;
    let guard = cluster.fault(Fault::on(Opcode::Set).times(1).answer_with_context(
        Status::Busy,
        "too much",
        "r-1",
    ));
    let refused = client.set("k", "1").await;
    assert_eq!(refused.status(), Status::Busy);
    let body = ErrorBody::of(&refused).unwrap().unwrap();
    assert_eq!(
        (body.context.as_deref(), body.reference.as_deref()),
        (Some("too much"), Some("r-1"))
    );
    assert_eq!(cluster.journal().applied(), 0);
    assert_eq!(
        client.set("k", "1").await.status(),
        Status::Success,
        "it ran out"
    );
    assert_eq!(guard.fired(), 1);
    let made_up = cluster.fault(Fault::on(Opcode::Get).answer(Status::from_code(0xfff0)));
    assert_eq!(client.get("k").await.status(), Status::from_code(0xfff0));
    drop(made_up);
    assert_eq!(client.get("k").await.status(), Status::Success);
}

#[tokio::test]
async fn hold_delays_a_request_until_the_rule_is_removed() {
    let (cluster, mut client) = one_node().await;
    let guard = cluster.fault(Fault::on(Opcode::Set).hold());
    send_set(&mut client, "k").await;
    assert!(client.is_quiet(Duration::from_millis(30)).await);
    assert_eq!(cluster.journal().applied(), 0);
    // Without an order to keep, others overtake it.
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    drop(guard);
    assert_eq!(client.receive().await.unwrap().status(), Status::Success);
    assert_eq!(cluster.journal().applied(), 1);
}

#[tokio::test]
async fn cut_before_reading_resets_the_connection_and_applies_nothing() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).cut_before_reading());
    send_set(&mut client, "k").await;
    let (bytes, end) = client.receive_to_end().await;
    assert!(bytes.is_empty());
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(cluster.journal().applied(), 0);
}

#[tokio::test]
async fn cut_before_applying_closes_in_order_and_applies_nothing() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).cut_before_applying());
    client.send(client.on(Opcode::Get, "k")).await;
    send_set(&mut client, "k").await;
    assert_eq!(
        client.receive().await.unwrap().status(),
        Status::KeyNotFound
    );
    let (bytes, end) = client.receive_to_end().await;
    assert!(bytes.is_empty() && end.is_ok());
    assert_eq!(cluster.journal().applied(), 0);
}

#[tokio::test]
async fn cut_after_applying_closes_without_an_answer() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).cut_after_applying());
    send_set(&mut client, "k").await;
    let (bytes, end) = client.receive_to_end().await;
    assert!(bytes.is_empty() && end.is_ok());
    assert_eq!(cluster.journal().applied(), 1);
}

#[tokio::test]
async fn cut_mid_response_sends_half_an_answer() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).cut_mid_response());
    send_set(&mut client, "k").await;
    let (bytes, end) = client.receive_to_end().await;
    assert!(end.is_ok());
    assert_eq!(bytes.len(), (HEADER_LEN + 16) / 2);
    assert_eq!(cluster.journal().applied(), 1);
}

#[tokio::test]
async fn garble_damages_the_selected_part() {
    let (cluster, mut client) = one_node().await;
    client.set("k", "value").await;
    let garbled = async |client: &mut Client, garble: Garble| {
        let _fault = cluster.fault(Fault::on(Opcode::Get).times(1).garble(garble));
        client.send(client.on(Opcode::Get, "k")).await;
        BytesMut::from(&client.receive_bytes(HEADER_LEN + 4 + 5).await[..])
    };
    let mut magic = garbled(&mut client, Garble::Magic).await;
    let error = FrameDecoder::from_server().decode(&mut magic).unwrap_err();
    assert_eq!(error, FrameError::UnknownMagic(!0x81));
    let opaque = garbled(&mut client, Garble::Opaque).await;
    let sent = client.last_opaque();
    assert_eq!(opaque[12..16], (!sent).to_be_bytes());
    let length = garbled(&mut client, Garble::Length).await;
    assert_eq!(length[8..12], [0, 0, 0xff, 9]);
    let body = garbled(&mut client, Garble::Body).await;
    assert_eq!(body[HEADER_LEN + 4..], b"value".map(|byte| !byte));
}

#[tokio::test]
async fn silent_stops_all_answers_on_one_connection_only() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).times(1).silent());
    send_set(&mut client, "k").await;
    client.send(client.on(Opcode::Get, "k")).await;
    assert!(client.is_quiet(Duration::from_millis(30)).await);
    assert_eq!(cluster.journal().applied(), 0);
    let mut other = Client::for_key(&cluster, "k").await;
    assert_eq!(other.set("k", "1").await.status(), Status::Success);
}

#[tokio::test]
async fn mute_applies_everything_and_stops_all_answers_on_one_connection_only() {
    let (cluster, mut client) = one_node().await;
    let _fault = cluster.fault(Fault::on(Opcode::Set).times(1).mute());
    send_set(&mut client, "k").await;
    send_set(&mut client, "l").await;
    while cluster.journal().applied() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(client.is_quiet(Duration::from_millis(30)).await);
    let mut other = Client::for_key(&cluster, "k").await;
    assert_eq!(other.set("k", "1").await.status(), Status::Success);
    assert_eq!(cluster.documents_of(NodeId::new(0)), 2);
    assert_eq!(cluster.silent_connections_closed(), 0);
    drop((client, other));
    while cluster.silent_connections_closed() < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn rules_match_by_node_bucket_and_key() {
    let (cluster, mut client) = one_node().await;
    let when = || Fault::on(Opcode::Set);
    let _elsewhere = cluster.fault(when().node(NodeId::new(9)).answer(Status::Busy));
    let _other_bucket = cluster.fault(when().bucket("other").answer(Status::Busy));
    let _prefix = cluster.fault(when().key_prefix("p:").answer(Status::TemporaryFailure));
    let _here = cluster.fault(
        when()
            .node(NodeId::new(0))
            .bucket("b")
            .key("k")
            .answer(Status::Locked),
    );
    assert_eq!(client.set("x", "1").await.status(), Status::Success);
    assert_eq!(
        client.set("p:1", "1").await.status(),
        Status::TemporaryFailure
    );
    assert_eq!(client.set("k", "1").await.status(), Status::Locked);
}

#[tokio::test]
async fn a_seed_replays_a_run() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let (cluster, mut client) = one_node().await;
        let fault = Fault::on(Opcode::Set)
            .probability(0.5)
            .seed(4711)
            .answer(Status::Busy);
        let _guard = cluster.fault(fault);
        let mut statuses = Vec::new();
        for _ in 0..32 {
            statuses.push(client.set("k", "1").await.status());
        }
        runs.push(statuses);
    }
    assert_eq!(runs[0], runs[1], "seed 4711");
    assert!(runs[0].contains(&Status::Busy) && runs[0].contains(&Status::Success));
}

#[tokio::test]
async fn a_malformed_frame_closes_its_connection_and_no_other() {
    let (cluster, mut client) = one_node().await;
    let mut bad = Client::for_key(&cluster, "k").await;
    bad.send_bytes(&[0x42; 24]).await;
    let (bytes, _) = bad.receive_to_end().await;
    assert!(bytes.is_empty());
    let mut huge = Client::for_key(&cluster, "k").await;
    let mut header = [0; 24];
    header[0] = 0x80;
    header[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    huge.send_bytes(&header).await;
    assert!(huge.receive_to_end().await.0.is_empty());
    assert_eq!(client.set("k", "1").await.status(), Status::Success);
}

#[tokio::test]
async fn the_server_stops_reading_from_a_slow_reader_and_loses_nothing() {
    let (_cluster, mut client) = one_node().await;
    client
        .set("k", &format!("\"{}\"", "x".repeat(1_000_000)))
        .await;
    // Answers of 200 MB. The server takes a few megabytes of them before it stops reading, so
    // requests pile up in the sockets, and none is lost.
    let requests = 200;
    for _ in 0..requests {
        client.send(client.on(Opcode::Get, "k")).await;
    }
    for _ in 0..requests {
        assert_eq!(client.receive().await.unwrap().value().len(), 1_000_002);
    }
}
