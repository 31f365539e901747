//! The requests of later attempts, and what a request leaves behind, with and without a time
//! limit. Nothing here has a socket.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};
use http_body_util::{BodyExt, Full};
use steadfast::{Backoff, Standard};
use steadfast_http::tower::{HttpRetryLayer, ReplayBody};
use steadfast_http::{AttemptMark, HttpRetry};
use tokio::sync::Semaphore;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

type Body = Full<Bytes>;

const LIMIT: Duration = Duration::from_secs(60);

fn strategy(delay: Duration) -> Standard {
    let builder = Standard::builder().backoff(Backoff::constant(delay));
    builder.build().unwrap()
}

/// Without a time limit, with one for the request, and with one for each attempt.
fn settings(delay: Duration) -> [HttpRetry; 3] {
    let retry = || HttpRetry::new(strategy(delay)).unwrap();
    [
        retry(),
        retry().timeout(LIMIT),
        retry().attempt_timeout(LIMIT),
    ]
}

/// An extension of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag(u32);

/// All that a service can see of a request.
#[derive(Debug, PartialEq)]
struct Sent {
    method: Method,
    uri: Uri,
    version: Version,
    headers: Vec<(String, HeaderValue, bool)>,
    tag: Option<Tag>,
    extensions: usize,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

impl Sent {
    async fn of<B>(request: Request<B>) -> (Self, Option<u32>)
    where
        B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
    {
        let (mut parts, body) = request.into_parts();
        let collected = body.collect().await.unwrap();
        let mark = parts.extensions.remove::<AttemptMark>();
        let header = |(name, value): (&http::HeaderName, &HeaderValue)| {
            (name.to_string(), value.clone(), value.is_sensitive())
        };
        let sent = Self {
            headers: parts.headers.iter().map(header).collect(),
            tag: parts.extensions.get().copied(),
            extensions: parts.extensions.len(),
            method: parts.method,
            uri: parts.uri,
            version: parts.version,
            trailers: collected.trailers().cloned(),
            body: collected.to_bytes(),
        };
        (sent, mark.map(|mark| mark.number()))
    }
}

fn put(headers: u32, body: &'static str) -> Request<Body> {
    let mut request = Request::put("http://user:secret@example.com:81/a/b?c=d")
        .version(Version::HTTP_2)
        .extension(Tag(7))
        .body(Body::from(body))
        .unwrap();
    for number in 0..headers {
        let mut value = HeaderValue::from(number);
        value.set_sensitive(number == 1);
        let name = ["x-one", "x-two", "x-one"][number as usize % 3];
        request.headers_mut().append(name, value);
    }
    request
}

#[tokio::test]
async fn every_attempt_sends_the_request_of_the_caller() {
    for retry in settings(Duration::ZERO) {
        for (headers, body) in [(0, ""), (0, "body"), (3, "body"), (9, "body"), (9, "")] {
            let sent = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&sent);
            let service = service_fn(move |request: Request<ReplayBody<Body>>| {
                let log = Arc::clone(&log);
                async move {
                    let request = Sent::of(request).await;
                    let mut log = log.lock().unwrap();
                    log.push(request);
                    let status = if log.len() < 4 { 503 } else { 200 };
                    Ok::<_, std::io::Error>(Response::builder().status(status).body(()).unwrap())
                }
            });
            let client = HttpRetryLayer::new(retry.clone()).layer(service);
            let response = client.oneshot(put(headers, body)).await.unwrap();
            assert_eq!(response.status(), 200);
            let (expected, _) = Sent::of(put(headers, body)).await;
            let sent = std::mem::take(&mut *sent.lock().unwrap());
            assert_eq!(sent.len(), 4);
            for ((sent, number), attempt) in sent.into_iter().zip(1..) {
                assert_eq!(sent, expected, "attempt {attempt}");
                assert_eq!(number, (attempt > 1).then_some(attempt));
            }
        }
    }
}

/// A service with one permit, which answers by the path, under the layer.
fn limited(
    retry: HttpRetry,
    permits: Arc<Semaphore>,
) -> impl FnMut(&'static str) -> Pin<Box<dyn Future<Output = u16> + Send>> {
    let service = service_fn(|request: Request<ReplayBody<Body>>| async move {
        let status = match request.uri().path() {
            "/busy" => 503,
            "/hangs" => std::future::pending().await,
            _ => 200,
        };
        Ok::<_, std::io::Error>(Response::builder().status(status).body(()).unwrap())
    });
    let client = ServiceBuilder::new()
        .layer(HttpRetryLayer::new(retry))
        .layer(GlobalConcurrencyLimitLayer::with_semaphore(permits))
        .service(service);
    move |path| {
        let request = Request::get(path).body(Body::default()).unwrap();
        let sending = client.clone().oneshot(request);
        Box::pin(async move { sending.await.unwrap().status().as_u16() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_held_by_an_attempt_and_not_by_a_request_that_waits() {
    for retry in settings(Duration::from_secs(10)) {
        let permits = Arc::new(Semaphore::new(1));
        let mut send = limited(retry, Arc::clone(&permits));
        // Three waits of ten seconds, in which others can be sent.
        let mut busy = send("/busy");
        for _ in 0..3 {
            let waiting = tokio::time::timeout(Duration::from_secs(9), &mut busy).await;
            assert!(waiting.is_err(), "it waits for ten seconds");
            assert_eq!(permits.available_permits(), 1);
            assert_eq!(send("/").await, 200);
        }
        assert_eq!(busy.await, 503);
        assert_eq!(permits.available_permits(), 1);
        // A request that is dropped, in an attempt or while it waits, gives its permit back.
        for (path, held) in [("/hangs", 1), ("/busy", 0)] {
            let mut dropped = send(path);
            let pending = tokio::time::timeout(Duration::from_secs(1), &mut dropped).await;
            assert!(pending.is_err());
            assert_eq!(permits.available_permits(), 1 - held, "{path}");
            drop(dropped);
            assert_eq!(permits.available_permits(), 1, "{path}");
        }
        // A request that waits for the permit in a retry does not take it when it is dropped.
        let (mut hangs, mut busy) = (send("/hangs"), send("/busy"));
        let pending = tokio::time::timeout(Duration::from_secs(1), &mut busy).await;
        assert!(pending.is_err());
        let pending = tokio::time::timeout(Duration::from_secs(30), &mut hangs).await;
        assert!(pending.is_err());
        let pending = tokio::time::timeout(Duration::from_secs(1), &mut busy).await;
        assert!(pending.is_err());
        drop(busy);
        drop(hangs);
        assert_eq!(permits.available_permits(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_cut_off_gives_its_permit_back_before_the_wait() {
    let [_, _, retry] = settings(Duration::from_secs(10));
    let permits = Arc::new(Semaphore::new(1));
    let mut send = limited(retry, Arc::clone(&permits));
    let mut hangs = send("/hangs");
    for (after, available) in [(59, 0), (2, 1), (10, 0)] {
        let pending = tokio::time::timeout(Duration::from_secs(after), &mut hangs).await;
        assert!(pending.is_err());
        assert_eq!(permits.available_permits(), available, "{after}");
    }
}

/// What an attempt of the service below does.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    FailAfter(u64),
    Hang,
}

/// Sends a request to a service that does this, and then succeeds. Returns whether it succeeded,
/// its attempts, its time in milliseconds, and the error.
async fn timed(
    retry: HttpRetry,
    method: Method,
    does: &'static [Does],
) -> (Option<u16>, usize, u128, String) {
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let service = service_fn(move |_: Request<ReplayBody<Body>>| {
        let attempt = count.fetch_add(1, Ordering::Relaxed);
        async move {
            let status = match does.get(attempt as usize) {
                Some(Does::FailAfter(millis)) => {
                    tokio::time::sleep(Duration::from_millis(*millis)).await;
                    503
                }
                Some(Does::Hang) => std::future::pending().await,
                None => 200,
            };
            Ok::<_, std::io::Error>(Response::builder().status(status).body(()).unwrap())
        }
    });
    let client = HttpRetryLayer::new(retry).layer(service);
    let request = Request::builder().method(method).uri("http://localhost/");
    let began = tokio::time::Instant::now();
    let result = client.oneshot(request.body(Body::default()).unwrap()).await;
    let millis = began.elapsed().as_millis();
    let attempts = sent.load(Ordering::Relaxed) as usize;
    match result {
        Ok(response) => (
            Some(response.status().as_u16()),
            attempts,
            millis,
            String::new(),
        ),
        Err(error) => {
            assert!(error.is_timeout(), "{error:#}");
            assert_eq!(
                error.is_ambiguous(),
                error.to_string().contains("may have been")
            );
            (None, attempts, millis, error.to_string())
        }
    }
}

/// tokio's clock stands still, so all times are exact. The engine's clock is the same one.
#[tokio::test(start_paused = true)]
async fn a_time_limit_counts_from_the_first_attempt_on() {
    use Does::{FailAfter, Hang};
    let retry = || HttpRetry::new(strategy(Duration::from_millis(10))).unwrap();
    let limited = || retry().timeout(Duration::from_millis(100));
    // A first attempt that hangs.
    let (status, attempts, millis, text) = timed(limited(), Method::POST, &[Hang]).await;
    assert_eq!((status, attempts, millis), (None, 1, 100), "{text}");
    assert!(
        text.contains("timed out after 100 ms, may have been applied"),
        "{text}"
    );
    // A second one that hangs has what the first one left.
    let ended = timed(limited(), Method::GET, &[FailAfter(60), Hang]).await;
    assert_eq!((ended.0, ended.1, ended.2), (None, 2, 100), "{}", ended.3);
    assert!(ended.3.contains("after 100 ms"), "{}", ended.3);
    // A wait that would end too late is not begun.
    let ended = timed(limited(), Method::GET, &[FailAfter(95), Hang]).await;
    assert_eq!((ended.0, ended.1, ended.2), (Some(503), 1, 95));
    // The limit of each attempt.
    let each = || retry().attempt_timeout(Duration::from_millis(50));
    let ended = timed(each(), Method::GET, &[Hang, Hang]).await;
    assert_eq!((ended.0, ended.1, ended.2), (Some(200), 3, 120));
    let both = each().timeout(Duration::from_millis(100));
    let ended = timed(both, Method::GET, &[Hang, Hang]).await;
    assert_eq!((ended.0, ended.1, ended.2), (None, 2, 100), "{}", ended.3);
    let both = each().timeout(Duration::from_millis(30));
    let ended = timed(both, Method::GET, &[Hang]).await;
    assert_eq!((ended.0, ended.1, ended.2), (None, 1, 30), "{}", ended.3);
}
