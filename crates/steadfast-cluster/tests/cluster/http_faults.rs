//! A test for every effect on the services that speak HTTP, and for the limits of requests.

use std::time::Duration;

use crate::support::http::{self, Call, HttpReply};
use crate::support::{cluster, eventually};
use serde_json::json;
use steadfast_cluster::fault::{Fault, FaultCondition, Garble};
use steadfast_cluster::script::Script;
use steadfast_cluster::{Service, TestCluster};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

fn write() -> Call<'static> {
    Call::new("POST", "/query/service")
        .json(&json!({"statement": "UPSERT INTO b VALUES ('k', 1) RETURNING META().id"}))
}

async fn send(cluster: &TestCluster) -> Option<HttpReply> {
    write().try_send(cluster, Service::Query).await
}

fn on() -> FaultCondition {
    Fault::on_service(Service::Query).key("/query/service")
}

#[tokio::test]
async fn pass_exempts_from_the_rules_behind_it() {
    let cluster = cluster(1, 0).await;
    let spared = cluster.fault(on().pass());
    let _rest = cluster.fault(Fault::on_anything().answer_http(503, ""));
    assert_eq!(send(&cluster).await.unwrap().status, 200);
    assert_eq!(spared.fired(), 1);
    let ping = Call::new("GET", "/admin/ping")
        .send(&cluster, Service::Query)
        .await;
    assert_eq!(ping.status, 503);
}

#[tokio::test]
async fn delay_waits_before_applying_and_delay_answer_after() {
    let cluster = cluster(1, 0).await;
    let by = Duration::from_millis(50);
    let fault = cluster.fault(on().delay(by));
    let start = Instant::now();
    assert_eq!(send(&cluster).await.unwrap().status, 200);
    assert!(start.elapsed() >= by);
    drop(fault);
    let _fault = cluster.fault(on().delay_answer(by));
    let start = Instant::now();
    let (answer, ()) = tokio::join!(
        send(&cluster),
        eventually("it is applied", || { cluster.journal().applied() == 2 })
    );
    assert_eq!(answer.unwrap().status, 200);
    assert!(start.elapsed() >= by);
}

#[tokio::test]
async fn answer_refuses_and_applies_nothing() {
    let cluster = cluster(1, 0).await;
    let guard = cluster.fault(on().times(1).answer_http(503, r#"{"busy":true}"#));
    let refused = send(&cluster).await.unwrap();
    assert_eq!(
        (refused.status, refused.json()),
        (503, json!({"busy": true}))
    );
    assert_eq!(cluster.journal().applied(), 0);
    assert_eq!(send(&cluster).await.unwrap().status, 200, "it ran out");
    assert_eq!(guard.fired(), 1);
    // A status that cannot end an exchange becomes a 500.
    let _fault = cluster.fault(on().answer_http(100, ""));
    assert_eq!(send(&cluster).await.unwrap().status, 500);
}

#[tokio::test]
async fn hold_delays_a_request_until_the_rule_is_removed() {
    let cluster = cluster(1, 0).await;
    let guard = cluster.fault(on().hold());
    let mut stream = write().start(&cluster, Service::Query).await;
    eventually("it is held", || guard.fired() == 1).await;
    let mut bytes = Vec::new();
    let quiet = timeout(Duration::from_millis(30), stream.read_buf(&mut bytes)).await;
    assert!(quiet.is_err());
    assert_eq!(cluster.journal().applied(), 0);
    drop(guard);
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(http::parse(&bytes).unwrap().status, 200);
    assert_eq!(cluster.journal().applied(), 1);
}

#[tokio::test]
async fn each_cut_applies_and_closes_as_documented() {
    let cluster = cluster(1, 0).await;
    let reset = cluster.fault(on().cut_before_reading());
    let mut stream = write().start(&cluster, Service::Query).await;
    let error = stream.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    drop(reset);
    let before = cluster.fault(on().cut_before_applying());
    assert!(send(&cluster).await.is_none());
    assert_eq!(cluster.journal().applied(), 0);
    drop(before);
    let after = cluster.fault(on().cut_after_applying());
    assert!(send(&cluster).await.is_none());
    assert_eq!(cluster.journal().applied(), 1);
    drop(after);
    let _middle = cluster.fault(on().cut_mid_response());
    let half = send(&cluster).await.unwrap();
    assert_eq!(half.status, 200);
    assert!(
        !half.whole && half.body.contains("requestID"),
        "{}",
        half.body
    );
    assert_eq!(cluster.journal().applied(), 2);
}

#[tokio::test]
async fn a_cut_body_declares_its_full_length() {
    let cluster = cluster(1, 0).await;
    let _fault = cluster.fault(Fault::on_service(Service::Management).cut_mid_response());
    let call = Call::new("GET", "/pools/default/b/b");
    let half = call.send(&cluster, Service::Management).await;
    assert!(half.head.contains("content-length: ") && !half.whole);
    assert!(
        half.body.starts_with('{')
            && serde_json::from_str::<serde_json::Value>(&half.body).is_err()
    );
}

#[tokio::test]
async fn garble_damages_whole_bodies_and_streams() {
    let cluster = cluster(1, 0).await;
    let _fault = cluster.fault(Fault::on_anything().garble(Garble::Body));
    let whole = Call::new("GET", "/pools/default/nodeServices")
        .send(&cluster, Service::Management)
        .await;
    let stream = send(&cluster).await.unwrap();
    for answer in [whole, stream] {
        assert_eq!(answer.status, 200);
        assert!(serde_json::from_str::<serde_json::Value>(&answer.body).is_err());
    }
    assert_eq!(cluster.journal().applied(), 1);
}

#[tokio::test]
async fn silent_never_answers() {
    let cluster = cluster(1, 0).await;
    let guard = cluster.fault(on().silent());
    let mut stream = write().start(&cluster, Service::Query).await;
    eventually("it is heard", || guard.fired() == 1).await;
    drop(guard);
    let quiet = timeout(Duration::from_millis(50), stream.read_u8()).await;
    assert!(quiet.is_err(), "the connection stays a black hole");
    assert_eq!(cluster.journal().applied(), 0);
    assert_eq!(
        send(&cluster).await.unwrap().status,
        200,
        "others are served"
    );
}

#[tokio::test]
async fn faults_hit_every_service() {
    let cluster = cluster(1, 0).await;
    for service in [
        Service::Management,
        Service::Query,
        Service::Analytics,
        Service::Search,
        Service::Views,
    ] {
        let guard = cluster.fault(Fault::on_service(service).answer_http(418, "tea"));
        let answer = Call::new("GET", "/any").send(&cluster, service).await;
        assert_eq!((answer.status, answer.body.as_str()), (418, "tea"));
        assert_eq!(guard.fired(), 1);
    }
}

#[tokio::test]
async fn scripted_rows_stream_one_by_one() {
    let cluster = cluster(1, 0).await;
    let pause = Duration::from_millis(30);
    let script = Script::on(Service::Query)
        .rows((0..3).map(|at| json!(at)))
        .pause(pause);
    let _script = cluster.script(script);
    let start = Instant::now();
    let mut stream = write().start(&cluster, Service::Query).await;
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("results") {
        stream.read_buf(&mut bytes).await.unwrap();
    }
    assert!(
        !String::from_utf8_lossy(&bytes).contains("status"),
        "the end is not there yet"
    );
    stream.read_to_end(&mut bytes).await.unwrap();
    assert!(start.elapsed() >= pause * 3);
    assert_eq!(http::parse(&bytes).unwrap().results(), json!([0, 1, 2]));
}

/// The header of the user `app` with the password `secret`.
const LOGIN: &str = "authorization: Basic YXBwOnNlY3JldA==\r\n";

#[tokio::test]
async fn requests_that_are_too_large_get_an_error_message() {
    let cluster = cluster(1, 0).await;
    let address = &cluster.addresses(Service::Query)[0];
    let ask = async |head: String| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        http::parse(&bytes).unwrap()
    };
    let head = format!("POST /query/service HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{LOGIN}");
    let long = ask(format!("{head}content-length: 99999999999\r\n\r\n")).await;
    assert_eq!(long.status, 413);
    assert!(
        long.body.contains("more than 20971520 bytes"),
        "{}",
        long.body
    );
    let wide = ask(format!("{head}x: {}\r\n\r\n", "y".repeat(40_000))).await;
    assert_eq!(wide.status, 431);
    assert!(wide.body.contains("more than 32768"), "{}", wide.body);
    let nonsense = ask("\u{1}\u{2}\u{3}\r\n\r\n".to_owned()).await;
    assert_eq!(nonsense.status, 400);
}

#[tokio::test]
async fn a_body_without_a_declared_length_is_bounded_too() {
    let cluster = cluster(1, 0).await;
    let mut stream = TcpStream::connect(&cluster.addresses(Service::Query)[0])
        .await
        .unwrap();
    let head = format!(
        "POST /query/service HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n{LOGIN}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let piece = format!("100000\r\n{}\r\n", "x".repeat(0x10_0000));
    let writing = tokio::spawn(async move {
        // One mebibyte more than is read; the end may be refused before it is written.
        for _ in 0..21 {
            if writer.write_all(piece.as_bytes()).await.is_err() {
                break;
            }
        }
        writer
    });
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        assert_ne!(
            reader.read_buf(&mut bytes).await.unwrap(),
            0,
            "it ended without an answer"
        );
    }
    assert_eq!(http::parse(&bytes).unwrap().status, 413);
    drop(writing.await.unwrap());
}
