//! Clients behind nginx, with a server that records every request.
//!
//! nginx sends 502 if the server is unreachable, and also if it died after it
//! applied the request. It limits rates with a configurable status. The tests check
//! that idempotent requests succeed and that no other request is applied twice.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests may panic, read the clock and print results"
)]

#[path = "../common/mod.rs"]
mod common;
mod nginx;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use steadfast_http::reqwest as integration;

use crate::integration::SendWithRetry;
use bytes::Bytes;
use common::clients::{MiddlewareClient, ReqwestClient, TowerClient};
use common::server::{Seen, Server, ServerAction};
use common::{Client, TestOutcome, get, post};
use http::Request;
use http_body_util::{BodyExt, Full};
use nginx::Nginx;
use steadfast::reason::THROTTLED;
use steadfast::strategy::Cause;
use steadfast::{Backoff, Budget, Failure, Standard};
use steadfast_http::{HttpClassifier, HttpRetry};
use tower::ServiceExt;

/// The number of readers, and of writers.
const WORKERS: usize = 2;
const EACH: usize = 50;

/// Settings that retry for a long time.
fn patient() -> HttpRetry {
    let second = Duration::from_secs(1);
    let backoff = Backoff::exponential(second / 100, second / 5).unwrap();
    let budget = Budget::builder().capacity(100_000).build().unwrap();
    let builder = Standard::builder().backoff(backoff).budget(budget);
    let builder =
        builder.throttling_backoff(Backoff::exponential(second / 100, second / 5).unwrap());
    HttpRetry::new(builder.max_attempts(1000).build().unwrap())
        .unwrap()
        .timeout(Duration::from_secs(60))
}

/// Returns how often the server applied each body.
fn times(seen: &[Seen]) -> HashMap<Vec<u8>, usize> {
    let mut times = HashMap::new();
    for request in seen.iter().filter(|request| request.method == "POST") {
        *times.entry(request.body.clone()).or_default() += 1;
    }
    times
}

/// Checks that every `POST` that succeeded was applied once, and any other at most
/// once. Returns the number of failures.
fn nothing_lost_and_nothing_twice(ended: &[(Vec<u8>, TestOutcome)], seen: &[Seen]) -> usize {
    let times = times(seen);
    let mut failed = 0;
    for (body, ended) in ended {
        let (times, id) = (
            times.get(body).copied().unwrap_or(0),
            String::from_utf8_lossy(body),
        );
        match ended.status {
            Some(200) => assert_eq!(times, 1, "{id} succeeded"),
            _ => {
                failed += 1;
                assert!(times <= 1, "{id} was done {times} times");
                assert_eq!(ended.cause, Some(Cause::Unsafe), "{id}: {ended:?}");
                assert!(ended.ambiguous, "{id}: {ended:?}");
            }
        }
    }
    failed
}

/// Runs readers and writers, and returns the outcomes of the writes.
async fn work<C: Client + Sync>(
    retry: HttpRetry,
    uri: String,
    path: &'static str,
) -> Vec<(Vec<u8>, TestOutcome)> {
    let (client, uri) = (Arc::new(C::new(retry)), format!("{uri}{path}"));
    let (mut readers, mut writers) = (Vec::new(), Vec::new());
    for worker in 0..WORKERS {
        readers.push(tokio::spawn(read(Arc::clone(&client), uri.clone())));
        writers.push(tokio::spawn(write(
            Arc::clone(&client),
            uri.clone(),
            worker,
        )));
    }
    for reader in readers {
        reader.await.unwrap();
    }
    let mut writes = Vec::new();
    for writer in writers {
        writes.extend(writer.await.unwrap());
    }
    writes
}

/// Reads, and checks that every read succeeds.
async fn read<C: Client>(client: Arc<C>, uri: String) {
    for _ in 0..EACH {
        let read = client.send(get(&uri)).await;
        assert_eq!(read.status, Some(200), "{read:?}");
    }
}

async fn write<C: Client>(
    client: Arc<C>,
    uri: String,
    worker: usize,
) -> Vec<(Vec<u8>, TestOutcome)> {
    let mut writes = Vec::new();
    for turn in 0..EACH {
        let body = format!("{worker}-{turn}").into_bytes();
        let write = client.send(post(&uri, &body)).await;
        if write.status != Some(200) {
            // Waits until the server is back.
            assert_eq!(client.send(get(&uri)).await.status, Some(200));
        }
        writes.push((body, write));
    }
    writes
}

/// Counts retries and refusals.
#[derive(Default)]
struct DecisionCounts {
    retries: AtomicUsize,
    refusals: AtomicUsize,
}

impl DecisionCounts {
    fn watch(retry: HttpRetry) -> (HttpRetry, Arc<Self>) {
        let told = Arc::new(Self::default());
        let retry = retry.observe({
            let told = Arc::clone(&told);
            move |event| {
                let count = match event.refusal() {
                    None => &told.retries,
                    Some(_) => &told.refusals,
                };
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        (retry, told)
    }

    fn retries(&self) -> usize {
        self.retries.load(Ordering::Relaxed)
    }

    fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    assert!(waited.is_ok(), "waited a minute for {what}");
}

async fn a_server_goes_away_and_comes_back<C: Client + Sync>() {
    let mut server = Server::start([]).await;
    let (address, mut seen) = (server.address, Vec::new());
    let nginx = Nginx::start(address).await;
    let (retry, told) = DecisionCounts::watch(patient());
    let working = tokio::spawn(work::<C>(retry, nginx.uri(), "plain"));
    for _ in 0..3 {
        until("work to be under way", || server.seen().len() >= 20).await;
        let (retries, refusals) = (told.retries(), told.refusals());
        seen.extend(server.stop().await);
        let noticed = || told.retries() > retries && told.refusals() > refusals;
        until("readers and writers to notice", noticed).await;
        server = Server::start_at(address, []).await;
    }
    let writes = working.await.unwrap();
    seen.extend(server.stop().await);
    let failed = nothing_lost_and_nothing_twice(&writes, &seen);
    assert_eq!(failed, told.refusals());
    println!(
        "three outages: {} reads, all answered, {} writes, {failed} in doubt, {} retries",
        WORKERS * EACH,
        writes.len(),
        told.retries()
    );
}

/// The clients know that nothing was sent, so nothing fails.
async fn nginx_is_late<C: Client + Sync>() {
    let server = Server::start([]).await;
    let nginx = Nginx::prepare(server.address).await;
    let (retry, told) = DecisionCounts::watch(patient());
    let working = tokio::spawn(work::<C>(retry, nginx.uri(), "plain"));
    until("all to notice", || told.retries() >= 2 * WORKERS).await;
    let _nginx = nginx.run().await;
    let writes = working.await.unwrap();
    let failed = nothing_lost_and_nothing_twice(&writes, &server.stop().await);
    assert_eq!((failed, told.refusals()), (0, 0));
}

/// A 429 means "not applied", so every write is applied once.
async fn a_rate_limit_with_429<C: Client + Sync>() {
    let server = Server::start([]).await;
    let nginx = Nginx::start(server.address).await;
    let (retry, told) = DecisionCounts::watch(patient());
    let writes = work::<C>(retry, nginx.uri(), "limited-429").await;
    let failed = nothing_lost_and_nothing_twice(&writes, &server.stop().await);
    assert_eq!((failed, told.refusals()), (0, 0));
    assert!(told.retries() > 0, "the limit was felt");
    println!(
        "limited with 429: {} writes, all done, {} retries",
        writes.len(),
        told.retries()
    );
}

/// After a 503 reads are retried and writes fail. With a rule for the header that
/// nginx adds to such responses, writes are retried too.
async fn a_rate_limit_with_503<C: Client + Sync>() {
    let server = Server::start([]).await;
    let nginx = Nginx::start(server.address).await;
    let writes = work::<C>(patient(), nginx.uri(), "limited-503").await;
    let failed = nothing_lost_and_nothing_twice(&writes, &server.seen());
    assert!(failed > 0, "the limit was felt");
    let done = times(&server.stop().await).len();
    assert_eq!(done + failed, writes.len(), "what failed was not forwarded");

    let server = Server::start_at(nginx.server(), []).await;
    let classifier = HttpClassifier::default().also(|outcome| {
        let shed = outcome.status()?.as_u16() == 503 && outcome.header("x-shed") == Some("1");
        shed.then(|| Err(Failure::responded(&THROTTLED).throttling()))
    });
    let (retry, told) = DecisionCounts::watch(patient().classify(classifier));
    let writes = work::<C>(retry, nginx.uri(), "limited-503").await;
    let again = nothing_lost_and_nothing_twice(&writes, &server.stop().await);
    assert_eq!((again, told.refusals()), (0, 0));
    assert!(told.retries() > 0, "the limit was felt");
    println!(
        "limited with 503: {failed} of {} writes refused, none if told more",
        writes.len()
    );
}

/// nginx sends 502. A read is sent again, a write is not.
async fn a_connection_that_is_cut_before_the_answer<C: Client + Sync>() {
    for act in [ServerAction::CloseRead, ServerAction::CloseUnread] {
        let server = Server::start([act.clone(), act.clone()]).await;
        let nginx = Nginx::start(server.address).await;
        let client = C::new(patient());
        let read = client.send(get(&format!("{}plain", nginx.uri()))).await;
        assert_eq!(read, TestOutcome::success(200, 3), "{act:?}");
        drop((server, nginx));

        let server = Server::start([act.clone()]).await;
        let nginx = Nginx::start(server.address).await;
        let write = client
            .send(post(&format!("{}plain", nginx.uri()), b"pay 5"))
            .await;
        assert_eq!(
            (write.status, write.cause),
            (Some(502), Some(Cause::Unsafe)),
            "{act:?}"
        );
        let done = usize::from(matches!(act, ServerAction::CloseRead));
        assert_eq!(server.stop().await.len(), done, "{act:?}");
    }
}

async fn holds<C: Client + Sync>() {
    a_server_goes_away_and_comes_back::<C>().await;
    nginx_is_late::<C>().await;
    a_rate_limit_with_429::<C>().await;
    a_rate_limit_with_503::<C>().await;
    a_connection_that_is_cut_before_the_answer::<C>().await;
}

#[tokio::test]
#[ignore = "needs nginx"]
async fn no_request_is_lost_and_no_post_repeated_with_tower() {
    holds::<TowerClient>().await;
}

#[tokio::test]
#[ignore = "needs nginx"]
async fn no_request_is_lost_and_no_post_repeated_with_reqwest() {
    holds::<ReqwestClient>().await;
}

#[tokio::test]
#[ignore = "needs nginx"]
async fn no_request_is_lost_and_no_post_repeated_with_middleware() {
    holds::<MiddlewareClient>().await;
}

/// Retries end with the head. The reader of the body gets an error, and the write
/// was applied once.
#[tokio::test]
#[ignore = "needs nginx"]
async fn a_cut_response_is_an_error_for_its_reader_and_no_second_write() {
    let server = Server::start([ServerAction::CloseAnswering, ServerAction::CloseAnswering]).await;
    let nginx = Nginx::start(server.address).await;
    let uri = format!("{}plain", nginx.uri());
    for read in [
        read_with_hyper(patient(), &uri).await,
        read_with_reqwest(patient(), &uri).await,
    ] {
        assert!(read.is_err(), "{read:?}");
    }
    let bodies: Vec<_> = server
        .stop()
        .await
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    assert_eq!(bodies, [b"hyper".to_vec(), b"reqwest".to_vec()]);
}

/// Writes, and reads the whole response.
async fn read_with_hyper(retry: HttpRetry, uri: &str) -> Result<Bytes, String> {
    let request = Request::post(uri).body(Full::from("hyper")).unwrap();
    let response = TowerClient::new(retry).0.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await;
    body.map(|body| body.to_bytes())
        .map_err(|error| error.to_string())
}

/// Writes, and reads the whole response.
async fn read_with_reqwest(retry: HttpRetry, uri: &str) -> Result<Bytes, String> {
    let request = reqwest::Client::new().post(uri).body("reqwest");
    let response = request.send_with_retry(&retry).await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.map_err(|error| error.to_string())
}
