//! Integrations inside other retries. Where the layers see each other, attempts do not
//! multiply: retries carry a mark, and an error or a response says that it was retried.

use std::error::Error as StdError;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::integration::{RetryMiddleware, SendWithRetry};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::ClientBuilder;
use steadfast::classify::{Classifier, any_error};
use steadfast::strategy::Cause;
use steadfast::{Backoff, Failure, Standard, reason, retry};
use steadfast_http::tower::{HttpRetryLayer, ReplayBody, RetryLayer};
use steadfast_http::{AttemptCount, AttemptMark, HttpClassifier, HttpRetry, ResponseReport};
use tower::{Layer, Service, ServiceExt, service_fn};

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

/// Sends three attempts in each of the attempts that the classifier allows, and returns how
/// many the server saw.
async fn attempts_in_a_retry<E>(
    wrap: impl Fn(Wrapped) -> E,
    classifier: impl Classifier<E>,
) -> usize {
    let (http_retry, client, strategy) = (http_retry(), plain_client(), three_attempts());
    let server = closing_server().await;
    let call = retry(&strategy).idempotent(true).classify(classifier);
    let send = async |_| {
        let sent = client.get(server.uri()).send_with_retry(&http_retry).await;
        sent.map(drop).map_err(&wrap)
    };
    assert!(call.run(send).await.is_err());
    server.seen().len()
}

type Wrapped = steadfast::Error<reqwest::Error>;

#[tokio::test]
async fn an_error_says_that_it_was_retried_however_it_is_wrapped() {
    let seen = attempts_in_a_retry(|error| error, steadfast::classify::ByInfo).await;
    assert_eq!(seen, 3, "by what the error says");
    assert_eq!(attempts_in_a_retry(|error| error, any_error).await, 3);
    let boxed = |error: Wrapped| -> Box<dyn StdError + Send + Sync> { error.into() };
    assert_eq!(attempts_in_a_retry(boxed, any_error).await, 3, "in a box");
    assert_eq!(
        attempts_in_a_retry(io::Error::other, any_error).await,
        3,
        "in an io::Error"
    );
    let source = |error: Wrapped| reqwest_middleware::Error::middleware(error);
    assert_eq!(
        attempts_in_a_retry(source, any_error).await,
        3,
        "as a source"
    );
}

#[tokio::test]
async fn a_classifier_of_the_users_is_obeyed() {
    let retried = |_: &Wrapped| Failure::in_flight(&reason::OPERATION_FAILED);
    let seen = attempts_in_a_retry(|error| error, retried).await;
    assert_eq!(seen, 9, "an outer loop on purpose");
}

#[tokio::test]
async fn two_middlewares_do_not_multiply_attempts() {
    let (server, strategy) = (closing_server().await, three_attempts());
    let once = ClientBuilder::new(plain_client()).with(RetryMiddleware::new(http_retry()));
    let twice = once.with(RetryMiddleware::new(http_retry())).build();
    twice.get(server.uri()).send().await.unwrap_err();
    assert_eq!(server.seen().len(), 3, "in itself");

    let once = ClientBuilder::new(plain_client()).with(RetryMiddleware::new(http_retry()));
    let once = once.build();
    let call = retry(&strategy).idempotent(true).classify(any_error);
    let sent = call.run(|_| once.get(server.uri()).send()).await;
    assert!(sent.unwrap_err().was_refused_for(Cause::NotRetryable));
    assert_eq!(server.seen().len(), 3 + 3, "in a retry");
}

fn hyper_client() -> legacy::Client<legacy::connect::HttpConnector, ReplayBody<Body>> {
    legacy::Client::builder(TokioExecutor::new()).build_http()
}

fn get(uri: &str) -> http::Request<Body> {
    let request = http::Request::get(uri);
    request.body(Body::new(bytes::Bytes::new())).unwrap()
}

/// Lets a layer be inside another one, whose bodies have another type.
fn without_body<S>(
    inner: S,
) -> impl Service<
    http::Request<ReplayBody<Body>>,
    Response = S::Response,
    Error = S::Error,
    Future: Send,
> + Clone
+ Send
where
    S: Service<http::Request<Body>, Future: Send> + Clone + Send,
{
    inner.map_request(|request: http::Request<ReplayBody<Body>>| request.map(|_| Body::default()))
}

#[tokio::test]
async fn tower_layers_inside_each_other_do_not_multiply_attempts() {
    let server = closing_server().await;
    let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
    let inner = HttpRetryLayer::new(http_retry()).layer(hyper);
    let outer = HttpRetryLayer::new(http_retry()).layer(inner);
    let error = outer.oneshot(get(&server.uri())).await.unwrap_err();
    assert_eq!(server.seen().len(), 3, "of HTTP");
    assert_eq!(error.report().attempts(), 1);
    let history = format!("{error:#}");
    assert!(history.contains("an inner call gave up"), "{history}");

    let inner = HttpRetryLayer::new(http_retry()).layer(hyper_client());
    let strategy = three_attempts();
    let call = retry(&strategy).idempotent(true).classify(any_error);
    let sent = call
        .run(|_| inner.clone().oneshot(get(&server.uri())))
        .await;
    assert!(sent.is_err());
    assert_eq!(server.seen().len(), 3 + 3, "in a retry");
}

/// The outer layer sees the response of the inner one, which says how many attempts it took.
#[tokio::test]
async fn a_response_says_that_it_was_retried() {
    let server = Server::start(vec![answer(503); 20]).await;
    let inner = HttpRetryLayer::new(http_retry()).layer(hyper_client());
    let inner = without_body(inner);
    // Its rules would retry any response.
    let all = HttpClassifier::default().retry_response(|_| true);
    let outer = HttpRetryLayer::new(http_retry().classify(all)).layer(inner);
    let response = outer.oneshot(get(&server.uri())).await.unwrap();
    assert_eq!(server.seen().len(), 3);
    let extensions = response.extensions();
    assert_eq!(extensions.get(), Some(&AttemptCount(3)));
    let report = extensions.get::<ResponseReport>().unwrap();
    let note = report.history().last().unwrap().failure.note().unwrap();
    assert!(note.contains("an inner layer has sent it again"), "{note}");
}

/// If the first attempt of the inner layer is cut off, the outer layer cannot know that it was
/// retried. Then the attempts add up, and do not multiply.
#[tokio::test(start_paused = true)]
async fn attempts_after_one_that_was_cut_off_carry_a_mark() {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let service = service_fn(|_: http::Request<ReplayBody<ReplayBody<Body>>>| async {
        if SENT.fetch_add(1, Ordering::Relaxed) > 0 {
            std::future::pending::<()>().await;
        }
        let response = http::Response::builder().status(503);
        Ok::<_, io::Error>(response.body(()).unwrap())
    });
    let inner = HttpRetryLayer::new(http_retry()).layer(service);
    let retry = http_retry().attempt_timeout(Duration::from_secs(1));
    let outer = HttpRetryLayer::new(retry).layer(inner);
    let error = outer.oneshot(get("http://localhost/")).await.unwrap_err();
    assert_eq!(SENT.load(Ordering::Relaxed), 2 + 1 + 1, "{error:#}");
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

#[tokio::test]
async fn a_mark_leaves_the_retries_to_the_code_that_set_it() {
    let server = closing_server().await;
    let inner = HttpRetryLayer::new(http_retry()).layer(hyper_client());
    let strategy = three_attempts();
    let call = retry(&strategy).idempotent(true).classify(any_error);
    let sent = call.run(|attempt| {
        let mut request = get(&server.uri());
        request.extensions_mut().insert(AttemptMark::from(attempt));
        inner.clone().oneshot(request)
    });
    let error = sent.await.unwrap_err();
    assert_eq!(error.report().attempts(), 3, "{error:#}");
    assert_eq!(server.seen().len(), 3);

    let inner = ClientBuilder::new(plain_client()).with(RetryMiddleware::new(http_retry()));
    let inner = inner.build();
    let call = retry(&strategy).idempotent(true).classify(any_error);
    let sent = call.run(|attempt| {
        let request = inner.get(server.uri());
        request.with_extension(AttemptMark::from(attempt)).send()
    });
    let error = sent.await.unwrap_err();
    assert_eq!(error.report().attempts(), 3, "middleware: {error:#}");
    assert_eq!(server.seen().len(), 3 + 3);
}

/// A call of something else inside an attempt, which gives up, has nothing to do with the
/// request.
#[tokio::test]
async fn an_unrelated_call_inside_an_attempt_does_not_stop_retries() {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let service = service_fn(|_: http::Request<ReplayBody<Body>>| async {
        let strategy = three_attempts();
        let unrelated = retry(&strategy).idempotent(true).classify(any_error);
        let reset = async |_| Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset));
        unrelated.run(reset).await.unwrap_err();
        SENT.fetch_add(1, Ordering::Relaxed);
        Err::<http::Response<()>, _>(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    let layer = HttpRetryLayer::new(http_retry()).layer(service);
    layer.oneshot(get("http://localhost/")).await.unwrap_err();
    assert_eq!(SENT.load(Ordering::Relaxed), 3);
}
