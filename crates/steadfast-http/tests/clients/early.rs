//! Responses that come before the request was sent, and connections during the backoff.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use steadfast::strategy::Cause;
use steadfast::{Backoff, Standard, world};
use steadfast_http::tower::HttpRetryLayer;
use steadfast_http::{AttemptCount, HttpRetry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tower::{Layer, ServiceExt};

use crate::common::clients::answered;
use crate::common::promises::{all, quick};
use crate::common::server::{Server, answer};
use crate::common::{Client, TestRequest, clients, post};

const CHUNK: usize = 16 * 1024;
const CHUNKS: usize = 4096;

/// A body of 64 MiB, which counts the chunks that were read.
struct Endless(Arc<AtomicUsize>);

impl Body for Endless {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.0.fetch_add(1, Ordering::Relaxed) >= CHUNKS {
            return Poll::Ready(None);
        }
        // Lets the response be read in between.
        cx.waker().wake_by_ref();
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; CHUNK])))))
    }
}

/// Reads this much of a request, responds with 429 and then reads whatever comes.
async fn early_server(read: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let total = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&total);
    tokio::spawn(async move {
        let mut answers = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            answers += 1;
            let (mut buffer, mut seen) = (vec![0; CHUNK], 0);
            while seen < read {
                seen += stream.read(&mut buffer).await.unwrap();
            }
            let status = if answers == 1 { "429 Busy" } else { "200 OK" };
            let response = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nno");
            stream.write_all(response.as_bytes()).await.unwrap();
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                while let Ok(more @ 1..) = stream.read(&mut buffer).await {
                    counted.fetch_add(more, Ordering::Relaxed);
                }
            });
        }
    });
    (uri, total)
}

#[tokio::test]
async fn an_early_response_to_a_streamed_body_is_returned_and_the_upload_stops() {
    let (uri, _) = early_server(CHUNK * 8).await;
    let (strategy, read) = (quick(), Arc::new(AtomicUsize::new(0)));
    let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
    let client = HttpRetryLayer::new(HttpRetry::new(strategy.clone()).unwrap()).layer(hyper);
    let request = Request::put(uri).body(Endless(Arc::clone(&read))).unwrap();
    let response = client.oneshot(request).await.unwrap();
    let ended = answered(response.status().as_u16(), response.extensions());
    assert_eq!((ended.status, ended.attempts), (Some(429), 1), "{ended:?}");
    assert_eq!(ended.cause, Some(Cause::NotRetryable));
    assert_eq!(strategy.budget().level(), 500, "nothing was retried");
    // The response can be read, and the body is not read any further.
    let then = read.load(Ordering::Relaxed);
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "no"
    );
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(read.load(Ordering::Relaxed), then);
    assert!(then < CHUNKS, "{then}");
}

#[tokio::test]
async fn a_small_streamed_body_is_sent_again_after_an_early_response() {
    let (uri, _) = early_server(1).await;
    let retry = HttpRetry::new(quick()).unwrap().body_limit(CHUNK * CHUNKS);
    let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
    let client = HttpRetryLayer::new(retry).layer(hyper);
    let request = Request::put(uri).body(Endless(Arc::default())).unwrap();
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.extensions().get(), Some(&AttemptCount(2)));
}

/// A server whose responses have a body that never ends, and its open connections.
async fn endless_responses() -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let (open, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&open), Arc::clone(&answered));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (open, answered) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
            open.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let _request = stream.read(&mut [0; 4096]).await;
                let head = b"HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\npart";
                let _ = stream.write_all(head).await;
                answered.fetch_add(1, Ordering::Relaxed);
                let _end = stream.read(&mut [0; 1]).await;
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    (uri, open, answered)
}

async fn no_connection_is_held<C: Client + Sync>() {
    let (uri, open, answered) = endless_responses().await;
    let backoff = Backoff::constant(Duration::from_secs(3600));
    let strategy = Standard::builder().backoff(backoff).build().unwrap();
    let client = C::new(HttpRetry::new(strategy).unwrap());
    let waiting = all((0..20).map(|_| client.send(clients_get(&uri))).collect());
    let closed = async {
        while answered.load(Ordering::Relaxed) < 20 || open.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        ended = waiting => panic!("they wait for an hour: {ended:?}"),
        done = tokio::time::timeout(Duration::from_secs(20), closed) => {
            done.unwrap_or_else(|_| panic!("{open:?} connections are open"));
        }
    }
}

fn clients_get(uri: &str) -> TestRequest {
    crate::common::get(uri)
}

#[tokio::test]
async fn requests_that_wait_hold_no_connections() {
    no_connection_is_held::<clients::TowerClient>().await;
    no_connection_is_held::<clients::ReqwestClient>().await;
    no_connection_is_held::<clients::MiddlewareClient>().await;
}

async fn generated_keys<C: Client>() {
    let server = Server::start([answer(503), answer(503)]).await;
    let retry = HttpRetry::new(quick()).unwrap().generate_idempotency_keys();
    let client = C::new(retry);
    for sent in [3, 4] {
        let ended = client.send(post(&server.uri(), b"pay 5")).await;
        assert_eq!(ended.status, Some(200));
        assert_eq!(server.seen().len(), sent);
    }
    let key = |seen: &crate::common::server::Seen| {
        let mut lines = seen.head.lines();
        let line = lines.find(|line| line.starts_with("idempotency-key: "));
        line.unwrap().to_owned()
    };
    let keys: Vec<_> = server.seen().iter().map(key).collect();
    assert!(
        keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3],
        "{keys:?}"
    );
    // The caller's own key is kept.
    let own = TestRequest {
        headers: vec![("idempotency-key", "mine")],
        ..post(&server.uri(), b"pay 5")
    };
    client.send(own).await;
    assert_eq!(key(&server.seen()[4]), "idempotency-key: mine");
}

#[tokio::test]
async fn a_generated_key_is_the_same_in_all_attempts_of_a_request() {
    generated_keys::<clients::TowerClient>().await;
    generated_keys::<clients::ReqwestClient>().await;
    generated_keys::<clients::MiddlewareClient>().await;
}

/// A body whose source says no more after the first chunk.
struct Stalled(Option<Bytes>);

impl Body for Stalled {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            None => Poll::Pending,
        }
    }
}

/// Some servers respond and then read the rest of the request, however long that takes.
#[tokio::test]
async fn an_upload_that_is_not_needed_does_not_hold_its_connection_forever() {
    let (uri, open, answered) = endless_responses().await;
    let (asked, slept) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
    let timer = (Arc::clone(&asked), Arc::clone(&slept));
    let timer = world::from_sleep(move |delay| {
        timer.0.lock().unwrap().push(delay);
        let slept = Arc::clone(&timer.1);
        async move { slept.notified().await }
    });
    let retry = HttpRetry::new_in(timer, quick()).unwrap();
    let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
    let client = HttpRetryLayer::new(retry).layer(hyper);
    let body = Stalled(Some(Bytes::from_static(b"part")));
    let request = Request::post(uri).body(body).unwrap();
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 503);
    // The response can still be read.
    let mut body = response.into_body();
    let part = body.frame().await.unwrap().unwrap();
    assert_eq!(part.into_data().unwrap(), "part");
    assert_eq!(*asked.lock().unwrap(), [Duration::from_secs(30)]);
    assert_eq!(answered.load(Ordering::Relaxed), 1);
    assert_eq!(open.load(Ordering::Relaxed), 1);

    slept.notify_one();
    let closed = async {
        while open.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(10), closed).await;
    closed.expect("the connection is closed");
}
