//! Integrations inside other retries: attempts never multiply.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::integration::{RetryMiddleware, SendWithRetry};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use steadfast::classify::any_error;
use steadfast::strategy::Cause;
use steadfast::{Backoff, Failure, Standard, reason, retry};
use steadfast_http::HttpRetry;
use steadfast_http::tower::{HttpRetryLayer, ReplayBody, RetryLayer};
use tower::{Layer, ServiceExt, service_fn};

use crate::common::clients::Body;
use crate::common::server::{Server, ServerAction, answer};

fn three_attempts() -> Standard {
    let builder = Standard::builder().max_attempts(3);
    builder.backoff(Backoff::none()).build().unwrap()
}

fn http_retry() -> HttpRetry {
    HttpRetry::new(three_attempts()).unwrap()
}

fn plain_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn closing_server() -> Server {
    Server::start(vec![ServerAction::CloseRead; 20]).await
}

#[tokio::test]
async fn send_with_retry_inside_a_retry_does_not_multiply_attempts() {
    let (http_retry, client, strategy) = (http_retry(), plain_client(), three_attempts());
    let server = closing_server().await;
    let send = || client.get(server.uri()).send_with_retry(&http_retry);

    let call = retry(&strategy).idempotent(true);
    call.run(|_| send()).await.unwrap_err();
    assert_eq!(server.seen().len(), 3, "by what the error says");

    let call = retry(&strategy).idempotent(true).classify(any_error);
    let error = call.run(|_| send()).await.unwrap_err();
    assert_eq!(server.seen().len(), 3 + 3, "any error");
    assert!(error.was_refused_for(Cause::Nested), "{error:#}");

    let call = retry(&strategy).idempotent(true);
    let call = call.classify(|_: &io::Error| Failure::not_sent(&reason::OPERATION_FAILED));
    let opaque = async |_| send().await.map_err(io::Error::other);
    call.run(opaque).await.unwrap_err();
    assert_eq!(server.seen().len(), 3 + 3 + 3, "a classifier of the user's");

    // A response that the caller turns into an error.
    let server = Server::start(vec![answer(503); 20]).await;
    let send = async || {
        let response = client.get(server.uri()).send_with_retry(&http_retry).await;
        response.unwrap().error_for_status()
    };
    let call = retry(&strategy).idempotent(true).classify(any_error);
    call.run(|_| send()).await.unwrap_err();
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn the_middleware_inside_itself_and_inside_a_retry_does_not_multiply_attempts() {
    let (server, strategy) = (closing_server().await, three_attempts());
    let once = ClientBuilder::new(plain_client()).with(RetryMiddleware::new(http_retry()));
    let twice = once.with(RetryMiddleware::new(http_retry())).build();
    twice.get(server.uri()).send().await.unwrap_err();
    assert_eq!(server.seen().len(), 3, "in itself");

    let once = ClientBuilder::new(plain_client()).with(RetryMiddleware::new(http_retry()));
    let once = once.build();
    let call = retry(&strategy).idempotent(true).classify(any_error);
    let sent = call.run(|_| once.get(server.uri()).send()).await;
    assert!(sent.unwrap_err().was_refused_for(Cause::Nested));
    assert_eq!(server.seen().len(), 3 + 3, "in a retry");
}

#[tokio::test]
async fn tower_layers_inside_each_other_do_not_multiply_attempts() {
    let server = closing_server().await;
    let request = || {
        let request = http::Request::get(server.uri());
        request.body(Body::new(bytes::Bytes::new())).unwrap()
    };
    let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
    let inner = HttpRetryLayer::new(http_retry()).layer(hyper);
    let outer = HttpRetryLayer::new(http_retry()).layer(inner);
    outer.oneshot(request()).await.unwrap_err();
    assert_eq!(server.seen().len(), 3, "of HTTP");

    let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
    let inner = HttpRetryLayer::new(http_retry()).layer(hyper);
    let strategy = three_attempts();
    let call = retry(&strategy).idempotent(true).classify(any_error);
    let sent = call.run(|_| inner.clone().oneshot(request())).await;
    assert!(sent.unwrap_err().was_refused_for(Cause::Nested));
    assert_eq!(server.seen().len(), 3 + 3, "in a retry");
}

#[tokio::test]
async fn general_tower_layers_inside_each_other_do_not_multiply_attempts() {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let service = service_fn(|()| async {
        SENT.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    let layer = || {
        let layer = RetryLayer::new(three_attempts()).unwrap();
        layer.idempotent(|()| true)
    };
    let inner = layer().classify(any_error).layer(service);
    let twice = layer().classify(any_error).layer(inner);
    let error = twice.oneshot(()).await.unwrap_err();
    assert_eq!(SENT.load(Ordering::Relaxed), 3, "{error:#}");
}

/// Makes three attempts that fail, and counts them. The error does not tell that it was retried.
async fn fail_three_times(sent: &AtomicUsize) -> io::Error {
    let strategy = three_attempts();
    let inner = retry(&strategy).idempotent(true).classify(any_error);
    let failed = inner.run(async |_| {
        sent.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    failed.await.unwrap_err();
    // So that the failure is seen in a later poll than the inner call.
    tokio::task::yield_now().await;
    io::Error::from(io::ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn a_retry_inside_a_first_attempt_of_the_http_layer_does_not_multiply_attempts() {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let service = service_fn(|_: http::Request<ReplayBody<Body>>| async {
        Err::<http::Response<()>, _>(fail_three_times(&SENT).await)
    });
    let layer = HttpRetryLayer::new(http_retry()).layer(service);
    let request = http::Request::get("http://localhost/").body(Body::default());
    let error = layer.oneshot(request.unwrap()).await.unwrap_err();
    assert!(error.was_refused_for(Cause::Nested), "{error:#}");
    assert_eq!(SENT.load(Ordering::Relaxed), 3, "{error:#}");
}

struct RetriesInside;

static INSIDE: AtomicUsize = AtomicUsize::new(0);

#[async_trait::async_trait]
impl Middleware for RetriesInside {
    async fn handle(
        &self,
        _: reqwest::Request,
        _: &mut http::Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let error = fail_three_times(&INSIDE).await;
        Err(reqwest_middleware::Error::middleware(error))
    }
}

#[tokio::test]
async fn a_retry_inside_a_first_attempt_of_the_middleware_does_not_multiply_attempts() {
    let client = ClientBuilder::new(plain_client()).with(RetryMiddleware::new(http_retry()));
    let client = client.with(RetriesInside).build();
    let error = client.get("http://localhost/").send().await.unwrap_err();
    assert_eq!(INSIDE.load(Ordering::Relaxed), 3, "{error:#}");
}

/// Fails once, and hangs in its retry.
async fn hang_in_a_retry(sent: &AtomicUsize) {
    let strategy = three_attempts();
    let inner = retry(&strategy).idempotent(true).classify(any_error);
    let hanging = inner.run(async |attempt| {
        sent.fetch_add(1, Ordering::Relaxed);
        if attempt.number() > 1 {
            std::future::pending::<()>().await;
        }
        Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    hanging.await.unwrap_err();
}

struct HangsInside;

static HANGING: AtomicUsize = AtomicUsize::new(0);

#[async_trait::async_trait]
impl Middleware for HangsInside {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        hang_in_a_retry(&HANGING).await;
        next.run(request, extensions).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_that_is_cut_off_in_the_retry_of_an_inner_call_is_the_last() {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let http_retry = || http_retry().attempt_timeout(Duration::from_secs(1));
    let service = service_fn(|_: http::Request<ReplayBody<Body>>| async {
        hang_in_a_retry(&SENT).await;
        Ok::<http::Response<()>, io::Error>(http::Response::new(()))
    });
    let layer = HttpRetryLayer::new(http_retry()).layer(service);
    let request = http::Request::get("http://localhost/").body(Body::default());
    let error = layer.oneshot(request.unwrap()).await.unwrap_err();
    assert!(error.was_refused_for(Cause::Nested), "{error:#}");
    assert_eq!(SENT.load(Ordering::Relaxed), 2, "{error:#}");

    let client = ClientBuilder::new(plain_client()).with(RetryMiddleware::new(http_retry()));
    let client = client.with(HangsInside).build();
    let error = client.get("http://localhost/").send().await.unwrap_err();
    assert_eq!(HANGING.load(Ordering::Relaxed), 2, "{error:#}");
}
