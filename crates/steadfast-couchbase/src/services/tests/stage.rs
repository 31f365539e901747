//! Stages of attempts: which are retried, and which are ambiguous.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::{BestEffort, Stage};
use steadfast_cluster::Service;
use steadfast_cluster::fault::{Fault, FaultCondition};
use steadfast_cluster::script::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::support::{TestClient, builder, cluster, config, eventually, pair, patiently, reasons};
use crate::error::{Error, ErrorKind};
use crate::reason::{AUTHENTICATION_ERROR, SERVER_NOT_PROVEN, TLS_ERROR};
use crate::{Cluster, Query};

/// A statement that writes, so that the journal counts how often it was applied.
const WRITE: &str = "UPSERT INTO b VALUES ('k', 1) RETURNING META().id";

fn write(client: &Cluster) -> Query {
    client.query(WRITE)
}

fn read(client: &Cluster) -> Query {
    client.query("SELECT RAW 1").readonly(true)
}

fn on_query() -> FaultCondition {
    Fault::on_service(Service::Query)
}

fn stages(error: &Error) -> Vec<Stage> {
    let report = error.context().report().unwrap();
    let history = report.request().history();
    history
        .records()
        .map(|record| record.failure.stage)
        .collect()
}

/// An address without a listener.
fn unused_address() -> std::net::SocketAddr {
    (std::net::Ipv4Addr::LOCALHOST, 1).into()
}

#[tokio::test]
async fn a_refused_connection_is_not_sent_and_any_request_may_retry() {
    let cluster = cluster(1).await;
    let client = TestClient::at(&[unused_address()]);
    let strict = write(&client).retry(steadfast::FailFast::new());
    let error = strict.await.unwrap_err();
    assert_eq!(stages(&error), [Stage::NotSent]);
    assert_eq!(reasons(&error), ["SOCKET_NOT_AVAILABLE"]);
    assert!(!error.is_ambiguous());
    let timeout = Duration::from_millis(40);
    let error = write(&client).timeout(timeout).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error}");
    // The write waits, and goes at once to the node of the new config.
    let writing = tokio::spawn(write(&client).into_future());
    client.set_config(config(&cluster));
    writing.await.unwrap().unwrap();
    assert_eq!(cluster.journal().applied(), 1);
}

#[tokio::test]
async fn a_request_to_an_unknown_host_is_not_sent() {
    let client = TestClient::at(&[unused_address()]);
    let mut unknown = (*client.core().config().unwrap()).clone();
    unknown.nodes[0].hostname = "no-such-host.invalid".to_owned();
    client.set_config(unknown);
    let strict = write(&client).retry(steadfast::FailFast::new());
    let error = strict.await.unwrap_err();
    assert_eq!(stages(&error), [Stage::NotSent], "{error:#}");
}

#[tokio::test]
async fn a_retry_goes_to_a_node_that_works() {
    let (_cluster, client) = pair().await;
    let mut nodes = (*client.core().config().unwrap()).clone();
    let dead = (*TestClient::at(&[unused_address()]).core().config().unwrap()).clone();
    nodes.nodes.extend(dead.nodes);
    client.set_config(nodes);
    for _ in 0..6 {
        let mut rows = read(&client).timeout(Duration::from_secs(5)).await.unwrap();
        assert_eq!(rows.all::<u8>().await.unwrap(), [1]);
    }
}

#[tokio::test]
async fn a_cut_connection_is_retried_for_reads() {
    let (cluster, client) = pair().await;
    let guard = cluster.fault(on_query().times(2).cut_before_applying());
    let mut rows = read(&client).await.unwrap();
    assert_eq!(rows.all::<u8>().await.unwrap(), [1]);
    assert_eq!(guard.fired(), 2);
    drop(guard);
    let guard = cluster.fault(on_query().times(2).cut_mid_response());
    assert!(read(&client).await.is_ok());
    assert_eq!(guard.fired(), 2);
    drop(guard);
    let guard = cluster.fault(
        Fault::on_service(Service::Search)
            .times(1)
            .cut_after_applying(),
    );
    cluster.create_search_index("i");
    let found = client.search("i", &json!({})).unwrap();
    assert!(found.await.is_ok());
    assert_eq!(guard.fired(), 1);
}

#[tokio::test]
async fn a_write_that_may_have_been_applied_is_not_sent_again() {
    let (cluster, client) = pair().await;
    let applied = |after: bool| {
        let (cluster, client) = (cluster.clone(), client.clone());
        async move {
            let before = cluster.journal().applied();
            let fault = if after {
                on_query().cut_after_applying()
            } else {
                on_query().cut_before_applying()
            };
            let guard = cluster.fault(fault);
            let error = write(&client).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error}");
            assert!(error.is_ambiguous(), "{error}");
            assert_eq!(stages(&error), [Stage::InFlight]);
            assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"]);
            assert_eq!(guard.fired(), 1);
            cluster.journal().applied() - before
        }
    };
    assert_eq!(applied(true).await, 1);
    assert_eq!(applied(false).await, 0);
}

#[tokio::test]
async fn requests_counted_as_not_sent_never_reached_the_server() {
    // Every connection is closed right behind its first answer, which the pool
    // may notice before, while or after it hands out the connection.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TestClient::at(&[listener.local_addr().unwrap()]);
    let received = Arc::new(AtomicUsize::new(0));
    let count = received.clone();
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"}") {
                    if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                        return;
                    }
                }
                count.fetch_add(1, Ordering::Relaxed);
                let body = r#"{"results":[1]}"#;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    let (mut succeeded, mut ambiguous) = (0, 0);
    for _ in 0..300 {
        match write(&client).await {
            Ok(mut rows) => {
                rows.all::<u8>().await.unwrap();
                succeeded += 1;
            }
            Err(error) => {
                assert!(error.is_ambiguous(), "{error:#}");
                ambiguous += 1;
            }
        }
    }
    let received = received.load(Ordering::Relaxed);
    assert!(succeeded <= received && received <= succeeded + ambiguous);
    assert!(succeeded > 0);
    server.abort();
}

#[tokio::test]
async fn silence_until_the_deadline_is_ambiguous_for_writes_only() {
    let (cluster, client) = pair().await;
    let silent = cluster.fault(on_query().silent());
    // An attempt is in progress once the server has received it.
    let in_progress = async |asked: fn(&Cluster) -> Query| {
        patiently(async |time| {
            let before = silent.fired();
            let error = asked(&client).timeout(time).await.unwrap_err();
            (silent.fired() > before).then_some(error)
        })
        .await
    };
    let error = in_progress(write).await;
    assert_eq!(error.kind(), ErrorKind::AmbiguousTimeout, "{error}");
    assert!(error.is_ambiguous() && error.is_timeout());
    assert!(
        error.to_string().contains("may have been applied"),
        "{error}"
    );
    let error = in_progress(read).await;
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error}");
    assert!(!error.is_ambiguous());
}

#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_not_sent() {
    // A listener whose queue is full: connecting hangs.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..64 {
        let connecting = tokio::net::TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(20), connecting).await {
            Ok(Ok(stream)) => held.push(stream),
            _ => break,
        }
    }
    let client = TestClient::at(&[address]);
    let error = write(&client)
        .timeout(Duration::from_millis(50))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}");
    assert_eq!(stages(&error), [Stage::NotSent], "{error:#}");
}

#[tokio::test]
async fn without_a_config_operations_wait_and_wake_when_it_comes() {
    let cluster = cluster(1).await;
    let client = TestClient::unconnected();
    let timeout = Duration::from_millis(30);
    let error = write(&client).timeout(timeout).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout);
    assert_eq!(reasons(&error), ["SERVICE_NOT_AVAILABLE"]);
    let hour = steadfast::Backoff::constant(Duration::from_secs(3600));
    let slow = steadfast::BestEffort::new(hour);
    let waiting = tokio::spawn(write(&client).retry(slow).into_future());
    tokio::task::yield_now().await;
    client.set_config(config(&cluster));
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn only_new_destinations_wake_a_request_that_was_not_sent() {
    let cluster = cluster(1).await;
    let client = TestClient::at(&[unused_address()]);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let counting = steadfast::from_fn(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        steadfast::strategy::RetryAction::with_duration(Duration::from_secs(3600))
    });
    // Longer than the delay: a wait that its deadline cuts asks again when it is woken.
    let asked_for = write(&client).timeout(Duration::from_secs(2 * 3600));
    let waiting = tokio::spawn(asked_for.retry(counting).into_future());
    eventually("it waits", || asked.load(Ordering::Relaxed) == 1).await;
    for _ in 0..5 {
        client.core().changed();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    client.set_terminal(&TLS_ERROR);
    eventually("it failed again", || asked.load(Ordering::Relaxed) == 2).await;
    client.set_config(config(&cluster));
    waiting.await.unwrap().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_retry_after_a_response_keeps_its_full_delay() {
    let (cluster, client) = pair().await;
    let body = json!({"errors": [{"code": 4040, "msg": "gone"}]}).to_string();
    let guard = cluster.script(Script::on(Service::Query).answer(404, body));
    let hour = steadfast::Backoff::constant(Duration::from_secs(3600));
    let asked = write(&client).retry(steadfast::BestEffort::new(hour));
    let waiting = tokio::spawn(asked.timeout(Duration::from_secs(1)).into_future());
    eventually("it was answered", || guard.answered() == 1).await;
    let mut config = config(&cluster);
    config.nodes.extend(config.nodes.clone());
    client.set_config(config);
    assert!(waiting.await.unwrap().unwrap_err().is_timeout());
    assert_eq!(guard.answered(), 1);
}

#[tokio::test]
async fn a_service_without_nodes_is_not_available() {
    let (cluster, client) = pair().await;
    let mut config = config(&cluster);
    config.nodes[0].ports = Default::default();
    client.set_config(config);
    let strict = write(&client).retry(steadfast::FailFast::new());
    let error = strict.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ServiceNotAvailable);
    assert_eq!(reasons(&error), ["SERVICE_NOT_AVAILABLE"]);
}

#[tokio::test]
async fn terminal_reasons_are_reported_only_if_nothing_can_be_dispatched() {
    let cluster = cluster(1).await;
    for (reason, kind) in [
        (&AUTHENTICATION_ERROR, ErrorKind::AuthenticationFailure),
        (&SERVER_NOT_PROVEN, ErrorKind::AuthenticationFailure),
        (&TLS_ERROR, ErrorKind::Couchbase),
    ] {
        let client = TestClient::unconnected();
        client.set_terminal(reason);
        let error = write(&client).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (kind, 1), "{error}");
        let managed = client.management().delete("/x").await;
        assert_eq!(managed.unwrap_err().kind(), kind);
        let timeout = Duration::from_millis(20);
        let error = write(&client)
            .retry(BestEffort::default())
            .timeout(timeout)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout);
        assert_eq!(reasons(&error), [reason.name()]);
        client.set_config(config(&cluster));
        assert!(write(&client).await.is_ok(), "it can be dispatched");
    }
}

#[tokio::test]
async fn closing_the_client_ends_running_and_waiting_requests() {
    let (cluster, client) = pair().await;
    let silent = cluster.fault(on_query().silent());
    let in_progress = tokio::spawn(write(&client).into_future());
    let reading = tokio::spawn(read(&client).into_future());
    eventually("both are in progress", || silent.fired() == 2).await;
    let waits = TestClient::unconnected();
    let waiting = tokio::spawn(write(&waits).into_future());
    tokio::task::yield_now().await;
    client.close().await;
    waits.close().await;
    for (task, ambiguous) in [(in_progress, true), (reading, false), (waiting, false)] {
        let error = task.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error}");
        assert!(error.to_string().contains("closed"), "{error}");
        assert_eq!(error.is_ambiguous(), ambiguous, "{error}");
    }
    let late = write(&client).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::RequestCanceled);
}

#[tokio::test]
async fn closing_the_client_ends_rows() {
    let (cluster, client) = pair().await;
    let script = Script::on(Service::Query).rows((0..100).map(|at| json!(at)));
    let _script = cluster.script(script.pause(Duration::from_millis(50)));
    let mut rows = read(&client).await.unwrap();
    assert_eq!(rows.next::<u8>().await.unwrap(), Some(0));
    client.close().await;
    let error = rows.all::<u8>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RequestCanceled);
    assert!(error.to_string().contains("closed"), "{error}");
}

#[tokio::test]
async fn the_timeout_includes_rows() {
    let (cluster, client) = pair().await;
    let script = Script::on(Service::Query).rows((0..100).map(|at| json!(at)));
    let _script = cluster.script(script.pause(Duration::from_millis(500)));
    for (readonly, kind) in [
        (true, ErrorKind::UnambiguousTimeout),
        (false, ErrorKind::AmbiguousTimeout),
    ] {
        let mut rows = patiently(async |time| {
            let asked = client.query(WRITE).readonly(readonly);
            asked.timeout(time).await.ok()
        })
        .await;
        let error = rows.all::<u8>().await.unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (kind, !readonly));
    }
}

#[tokio::test]
async fn a_response_cut_after_the_first_row_is_an_error() {
    let (cluster, client) = pair().await;
    // A number alone could go on; an object has an end.
    let script = Script::on(Service::Query).rows([json!({"at": 1})]);
    let guard = cluster.script(script.then_cut());
    for readonly in [true, false] {
        let asked = client.query(WRITE).readonly(readonly);
        let mut rows = asked.await.unwrap();
        assert!(rows.next::<Value>().await.unwrap().is_some());
        let error = rows.next::<Value>().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error}");
        assert_eq!(error.is_ambiguous(), !readonly);
        assert!(rows.meta().is_none());
    }
    assert_eq!(
        guard.answered(),
        2,
        "what was handed out is not asked for again"
    );
}

#[tokio::test]
async fn an_error_after_the_first_row_has_the_reasons_of_earlier_retries() {
    let (cluster, client) = pair().await;
    for readonly in [true, false] {
        let error = json!({"errors": [{"code": 5000, "msg": "queryport.indexNotFound"}]});
        let gone = Script::on(Service::Query).answer(200, error.to_string());
        let gone = cluster.script(gone.times(2));
        let rows = Script::on(Service::Query).rows([json!({"at": 1})]);
        let _cut = cluster.script(rows.then_cut());
        let asked = client.query(WRITE).readonly(readonly);
        let mut rows = asked.await.unwrap();
        assert_eq!(gone.answered(), 2);
        assert!(rows.next::<Value>().await.unwrap().is_some());
        let error = rows.next::<Value>().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
        assert_eq!(reasons(&error), ["QUERY_INDEX_NOT_FOUND"], "{error:#}");
        let last = error.context().http().unwrap();
        assert_eq!((last.status, last.code), (Some(200), None), "{error:#}");
        assert_eq!(last.message, None, "not that of the response before");
        assert_eq!(error.attempts(), 3, "{error:#}");
        assert_eq!(error.is_ambiguous(), !readonly, "{error:#}");
    }
}

#[tokio::test]
async fn requests_carry_the_remaining_time() {
    let cluster = builder(1).start().await.unwrap();
    let client = TestClient::of(&cluster);
    let script = Script::on(Service::Query).matching(r#""timeout":"1"#);
    let guard = cluster.script(script.rows([json!(1)]));
    read(&client)
        .timeout(Duration::from_millis(1999))
        .await
        .unwrap();
    assert_eq!(guard.answered(), 1);
}

#[tokio::test]
async fn a_dropped_query_leaves_a_client_that_works() {
    let (cluster, client) = pair().await;
    let silent = cluster.fault(on_query().silent());
    for round in 1..=10 {
        let task = tokio::spawn(write(&client).into_future());
        eventually("it is in progress", || silent.fired() == round).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    drop(silent);
    let mut rows = read(&client).await.unwrap();
    assert_eq!(rows.all::<u8>().await.unwrap(), [1]);
    let half = Script::on(Service::Query).rows((0..1000).map(|at| json!({"at": at})));
    let script = cluster.script(half);
    for _ in 0..10 {
        drop(read(&client).await.unwrap());
    }
    drop(script);
    assert!(read(&client).await.is_ok());
}
