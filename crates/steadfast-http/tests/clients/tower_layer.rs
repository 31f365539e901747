//! The tower layer around hyper's client, over real sockets.

use crate::common::clients::{Body, TowerClient, ended, request};
use crate::common::promises::quick;
use crate::common::server::{Server, ServerAction, answer, closed_port};
use crate::common::{Client, RowClient, TestOutcome, fresh, get, post, promises, rows};
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use steadfast::strategy::{Cause, WhenTooLate};
use steadfast::{Backoff, BestEffort, StrategyExt};
use steadfast_http::tower::{HttpRetryLayer, ReplayBody, RetryLayer};
use steadfast_http::{AttemptMark, HttpRetry};
use tower::{Layer, Service, ServiceExt, service_fn};

#[tokio::test]
async fn the_token_bucket_is_right_row_by_row() {
    rows::hold::<RowClient<TowerClient>>().await;
}

#[tokio::test]
async fn what_every_integration_promises_holds() {
    promises::hold::<TowerClient>().await;
}

#[tokio::test]
async fn the_first_request_of_a_new_default_client_survives_a_fault() {
    fresh::hold::<TowerClient>().await;
}

/// Bytes that must be copied have the limit of streams.
#[tokio::test]
async fn a_body_beyond_the_limit_is_not_sent_again_and_the_history_says_why() {
    let put = async |body: &'static [u8]| {
        let server = Server::start([answer(503)]).await;
        let retry = HttpRetry::new(quick()).unwrap().body_limit(3);
        let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
        let client = HttpRetryLayer::new(retry).layer(hyper);
        let request = Request::put(server.uri()).body(Full::new(body)).unwrap();
        (ended(client.oneshot(request).await), server.seen().len())
    };
    let (over, sent) = put(b"four").await;
    assert_eq!(
        (over.status, over.cause),
        (Some(503), Some(Cause::NotRetryable))
    );
    assert_eq!(
        over.notes,
        ["HTTP 503; more than 3 bytes of the body were sent, so it cannot be sent again"]
    );
    assert_eq!(sent, 1);
    // One byte less, and it is.
    assert_eq!(put(b"thr").await, (TestOutcome::success(200, 2), 2));
}

/// The engine cuts off a retry, and does not know that its body is gone.
#[tokio::test(start_paused = true)]
async fn a_body_that_a_retry_has_lost_ends_the_request() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let service = service_fn(
        move |request: Request<ReplayBody<Full<io::Cursor<Vec<u8>>>>>| {
            let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if is_first {
                    let response = Response::builder().status(503);
                    return Ok::<_, io::Error>(response.body(()).unwrap());
                }
                request
                    .into_body()
                    .collect()
                    .await
                    .map_err(io::Error::other)?;
                std::future::pending().await
            }
        },
    );
    let retry = HttpRetry::new(quick()).unwrap().body_limit(3);
    let retry = retry.attempt_timeout(Duration::from_millis(100));
    let client = HttpRetryLayer::new(retry).layer(service);
    let body = Full::new(io::Cursor::new(b"four".to_vec()));
    let request = Request::put("http://localhost/").body(body);
    let error = client.oneshot(request.unwrap()).await.unwrap_err();
    assert!(error.was_refused_for(Cause::NotRetryable), "{error:#}");
    assert_eq!(calls.load(Ordering::Relaxed), 2, "{error:#}");
}

#[tokio::test]
async fn a_retry_that_would_miss_the_deadline_fails_at_once_under_any_strategy() {
    for (rule, timed_out) in [(None, false), (Some(WhenTooLate::Wait), true)] {
        let strategy = BestEffort::new(Backoff::constant(Duration::from_secs(60)));
        let mut layer = RetryLayer::within(Duration::from_millis(50), strategy)
            .idempotent(|_: &()| true)
            .classify(steadfast::classify::any_error);
        if let Some(rule) = rule {
            layer = layer.when_too_late(rule);
        }
        let failing = service_fn(async |()| Err::<(), _>("failed"));
        let error = layer.layer(failing).oneshot(()).await.unwrap_err();
        assert_eq!(error.is_timeout(), timed_out, "{error:#}");
    }
}

/// tower's layers have boxed errors.
#[tokio::test]
async fn a_boxed_error_still_says_that_nothing_was_sent() {
    let (_held, uri) = closed_port();
    let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
    let boxed = hyper.map_err(tower::BoxError::from);
    let retry = HttpRetry::new(quick()).unwrap().without_redirects();
    let client = HttpRetryLayer::new(retry).layer(boxed);
    let ended = ended(client.oneshot(request(post(&uri, b"x"))).await);
    assert_eq!(ended.cause, Some(Cause::AttemptsUsedUp { limit: 5 }));
    assert!(!ended.ambiguous);
    assert!(
        ended.text.contains("client error (Connect)"),
        "{}",
        ended.text
    );
}

#[tokio::test]
async fn a_retry_can_read_how_much_time_is_left() {
    let retry = HttpRetry::new(quick())
        .unwrap()
        .timeout(Duration::from_secs(60));
    let times = Arc::new(std::sync::Mutex::new(Vec::new()));
    let recorded = Arc::clone(&times);
    let service = service_fn(move |request: Request<ReplayBody<Body>>| {
        let attempt = request.extensions().get::<AttemptMark>();
        let number = attempt.map_or(1, AttemptMark::number);
        let left = attempt.map(|attempt| attempt.remaining().unwrap());
        recorded.lock().unwrap().push((number, left));
        let status = if number < 3 { 503 } else { 200 };
        let response = Response::builder().status(status).body(()).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    let client = HttpRetryLayer::new(retry).layer(service);
    client
        .oneshot(request(get("http://a.example/")))
        .await
        .unwrap();
    let times = times.lock().unwrap();
    assert_eq!(
        times.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(times[0].1, None, "the first attempt has all the time");
    assert!(times[2].1 < times[1].1, "{times:?}");
    assert!(times[1].1 < Some(Duration::from_secs(60)), "{times:?}");
}

/// Counts polls for readiness, and panics if it is called without one.
struct Picky {
    asked: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
    ready: bool,
}

impl Clone for Picky {
    fn clone(&self) -> Self {
        let (asked, calls) = (Arc::clone(&self.asked), Arc::clone(&self.calls));
        // A clone is not ready.
        Self {
            asked,
            calls,
            ready: false,
        }
    }
}

impl<R> Service<R> for Picky {
    type Response = Response<()>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<()>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ready = true;
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            2 => Poll::Ready(Err(io::Error::other("worn out"))),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: R) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called without being ready"
        );
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match call {
                0 | 1 => Err(io::ErrorKind::ConnectionReset.into()),
                _ => Ok(Response::new(())),
            }
        })
    }
}

fn picky() -> Picky {
    let (asked, calls) = Default::default();
    Picky {
        asked,
        calls,
        ready: false,
    }
}

#[tokio::test]
async fn readiness_is_polled_before_every_attempt_and_its_failure_means_nothing_was_sent() {
    let service = picky();
    let (asked, calls) = (Arc::clone(&service.asked), Arc::clone(&service.calls));
    let layer = HttpRetryLayer::new(HttpRetry::new(quick()).unwrap());
    let ended = ended(
        layer
            .layer(service)
            .oneshot(request(get("http://a.example/")))
            .await,
    );
    // Two calls fail, between the second and the third readiness fails once.
    assert_eq!(ended, TestOutcome::success(200, 4));
    assert_eq!(
        (asked.load(Ordering::Relaxed), calls.load(Ordering::Relaxed)),
        (4, 3)
    );
}

#[tokio::test]
async fn a_service_that_fails_to_get_ready_is_an_error_that_says_so() {
    let service = picky();
    service.asked.store(2, Ordering::Relaxed);
    let layer = HttpRetryLayer::new(HttpRetry::new(quick()).unwrap());
    let error = layer
        .layer(service)
        .oneshot(request(get("http://a.example/")))
        .await
        .unwrap_err();
    assert_eq!(error.last_error().unwrap().to_string(), "worn out");
    assert!(
        format!("{error:#}").contains("the service is not ready"),
        "{error:#}"
    );
}

#[tokio::test]
async fn any_service_is_retried_as_its_errors_allow() {
    let layer = RetryLayer::new(quick()).unwrap().operation("lookup");
    let error = layer.layer(picky()).oneshot(()).await.unwrap_err();
    assert!(error.was_refused_for(Cause::Unsafe), "{error}");
    assert!(error.is_ambiguous());

    let layer = layer.idempotent(|_: &()| true);
    let service = picky();
    let calls = Arc::clone(&service.calls);
    layer.layer(service).oneshot(()).await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 3);

    let unbounded = RetryLayer::<()>::new(BestEffort::default()).unwrap_err();
    assert!(unbounded.to_string().contains("timeout is missing"));
    let bounded = BestEffort::default().max_attempts(1).unwrap();
    assert!(RetryLayer::<()>::new(bounded).is_ok());
}

#[tokio::test]
async fn a_layer_inside_a_generic_one_leaves_the_retries_to_it_and_gets_its_time() {
    let server = Server::start(vec![answer(503); 100]).await;
    let (hyper, inner) = (
        legacy::Client::builder(TokioExecutor::new()).build_http(),
        quick(),
    );
    let http = HttpRetryLayer::new(HttpRetry::new(inner.clone()).unwrap()).layer(hyper);
    // Turns the response into an error for the outer layer.
    let asked = service_fn(move |request: Request<Body>| {
        let (http, left) = (
            http.clone(),
            request.extensions().get().and_then(AttemptMark::remaining),
        );
        assert!(left.is_some_and(|left| left <= Duration::from_secs(60)));
        async move {
            let status = http.oneshot(request).await.unwrap().status();
            Err::<(), _>(io::Error::other(status.to_string()))
        }
    });
    let outer = quick().to_builder().max_attempts(3).build().unwrap();
    let layer = RetryLayer::new(outer)
        .unwrap()
        .timeout(Duration::from_secs(60))
        .idempotent(|_: &Request<Body>| true)
        .prepare(|request: &mut Request<Body>, attempt| {
            request.extensions_mut().insert(attempt);
        });
    let error = layer
        .layer(asked)
        .oneshot(request(get(&server.uri())))
        .await
        .unwrap_err();
    assert!(
        error.was_refused_for(Cause::AttemptsUsedUp { limit: 3 }),
        "{error}"
    );
    assert_eq!(server.seen().len(), 3, "three attempts, not fifteen");
    assert_eq!(inner.budget().level(), 500);
}

#[tokio::test]
async fn a_dropped_request_leaves_the_bucket_right() {
    let server = Server::start([answer(500), ServerAction::Hang]).await;
    let strategy = quick();
    let client = TowerClient::new(HttpRetry::new(strategy.clone()).unwrap());
    let uri = server.uri();
    let running = tokio::spawn(async move { client.send(get(&uri)).await });
    while server.seen().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    // What was paid for the second attempt stays paid (D39).
    assert_eq!(strategy.budget().level(), 495);
}

/// The body belongs to a connection, which would wait for the rest of it forever.
#[tokio::test(start_paused = true)]
async fn an_upload_that_was_paused_ends_with_its_request() {
    let kept = Arc::new(Mutex::new(None));
    let keeping = kept.clone();
    let service = service_fn(move |request: Request<ReplayBody<Body>>| {
        *keeping.lock().unwrap() = Some(request.into_body());
        let response = Response::builder()
            .status(503)
            .header("retry-after", "3600");
        std::future::ready(Ok::<_, Infallible>(response.body(()).unwrap()))
    });
    let strategy = BestEffort::default().max_attempts(3).unwrap();
    let retry = HttpRetry::new(strategy).unwrap();
    let retry = retry.timeout(Duration::from_secs(60));
    let layer = HttpRetryLayer::new(retry.when_too_late(WhenTooLate::Wait)).layer(service);
    let put = Request::put("http://localhost/").body(Body::from("some bytes"));
    let mut waiting = Box::pin(layer.oneshot(put.unwrap()));
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    let mut body = kept.lock().unwrap().take().unwrap();
    assert!(Pin::new(&mut body).poll_frame(&mut context).is_pending());
    drop(waiting);
    let ended = Pin::new(&mut body).poll_frame(&mut context);
    assert!(matches!(ended, Poll::Ready(Some(Err(_)))), "{ended:?}");
}
