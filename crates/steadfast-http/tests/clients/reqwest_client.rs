//! reqwest, plain and with middleware, over real sockets.
use crate::common::clients::{MiddlewareClient, ReqwestClient, answered};
use crate::common::promises::quick;
use crate::common::server::{Server, ServerAction, answer, closed_port};
use crate::common::{Client, RowClient, TestOutcome, fresh, get, post, promises, rows};
use crate::integration::{RetryMiddleware, SendWithRetry};
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::strategy::Cause;
use steadfast_http::{AttemptCount, AttemptMark, HttpRetry};

#[tokio::test]
async fn the_token_bucket_is_right_row_by_row_without_middleware() {
    rows::hold::<RowClient<ReqwestClient>>().await;
}

#[tokio::test]
async fn what_every_integration_promises_holds_without_middleware() {
    promises::hold::<ReqwestClient>().await;
}

#[tokio::test]
async fn the_first_request_of_a_new_default_client_survives_a_fault() {
    fresh::hold::<ReqwestClient>().await;
}

#[tokio::test]
async fn what_every_integration_promises_holds_with_middleware() {
    promises::hold::<MiddlewareClient>().await;
}

#[tokio::test]
async fn a_streamed_body_is_not_sent_again_and_the_history_says_why() {
    let server = Server::start([answer(503)]).await;
    let retry = HttpRetry::new(quick()).unwrap();
    let stream = Stream::<io::Error>([Ok(http_body::Frame::data("abc".into()))].into());
    let request = reqwest::Client::new().put(server.uri());
    let request = request.body(reqwest::Body::wrap(http_body_util::StreamBody::new(stream)));
    let response = request.send_with_retry(&retry).await.unwrap();
    let ended = answered(response.status().as_u16(), response.extensions());
    assert_eq!(
        (ended.status, ended.cause),
        (Some(503), Some(Cause::NotRetryable))
    );
    let note = "HTTP 503; the body is a stream, so it cannot be sent again";
    assert_eq!(ended.notes, [note]);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_request_that_cannot_be_built_is_an_error_with_a_report() {
    let retry = HttpRetry::new(quick()).unwrap();
    let request = reqwest::Client::new().get("not a url");
    let error = request.send_with_retry(&retry).await.unwrap_err();
    assert!(error.last_error().unwrap().is_builder());
    assert!(
        format!("{error:#}").contains("could not be built"),
        "{error:#}"
    );
    assert_eq!(error.report().attempts(), 1);
}

/// Records the marks in the extensions, and adds an extension.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Option<AttemptMark>>>>);

#[derive(Clone, Debug, PartialEq)]
struct LeftBehind(u32);

#[async_trait::async_trait]
impl Middleware for Notes {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let attempt = extensions.get::<AttemptMark>().copied();
        self.0.lock().unwrap().push(attempt);
        extensions.insert(LeftBehind(attempt.map_or(1, |attempt| attempt.number())));
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn two_middlewares_do_not_multiply_attempts_and_extensions_are_kept() {
    let server = Server::start(vec![answer(503); 100]).await;
    let (notes, outer) = (Notes::default(), quick());
    let retry = |strategy| {
        HttpRetry::new(strategy)
            .unwrap()
            .timeout(Duration::from_secs(60))
    };
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(RetryMiddleware::new(retry(outer.clone())))
        .with(RetryMiddleware::new(retry(quick())))
        .with(notes.clone())
        .build();
    let mut extensions = Extensions::new();
    let request = client.get(server.uri()).build().unwrap();
    let response = client
        .execute_with_extensions(request, &mut extensions)
        .await
        .unwrap();
    assert_eq!(answered(503, response.extensions()).attempts, 1);
    assert_eq!(response.extensions().get(), Some(&AttemptCount(5)));
    assert_eq!(server.seen().len(), 5, "five attempts, not twenty-five");
    assert_eq!(outer.budget().level(), 500);
    let seen = notes.0.lock().unwrap();
    assert_eq!(seen.len(), 5);
    let left = |attempt: &Option<AttemptMark>| attempt.map(|attempt| attempt.remaining());
    let left: Vec<_> = seen.iter().map(left).collect();
    assert_eq!(left[0], None, "a first attempt has no mark");
    assert!(left[1..].iter().all(|left| left.unwrap().is_some()));
    assert_eq!(
        extensions.get(),
        Some(&LeftBehind(5)),
        "what the last attempt left"
    );
    assert!(extensions.get::<AttemptMark>().is_none());
}

/// Records the marks in the extensions, and leaves nothing.
#[derive(Clone, Default)]
struct Marks(Arc<Mutex<Vec<Option<u32>>>>);

#[async_trait::async_trait]
impl Middleware for Marks {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let attempt = extensions.get().map(AttemptMark::number);
        self.0.lock().unwrap().push(attempt);
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn every_retry_has_its_own_mark_and_none_is_left() {
    let server = Server::start([answer(503), answer(200), answer(200), answer(200)]).await;
    let marks = Marks::default();
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(RetryMiddleware::new(HttpRetry::new(quick()).unwrap()))
        .with(marks.clone())
        .build();
    let send = async |extensions: &mut Extensions| {
        let request = client.get(server.uri()).build().unwrap();
        let sent = client.execute_with_extensions(request, extensions);
        assert_eq!(sent.await.unwrap().status(), 200);
        std::mem::take(&mut *marks.0.lock().unwrap())
    };
    let mut extensions = Extensions::new();
    assert_eq!(send(&mut extensions).await, [None, Some(2)]);
    assert!(extensions.is_empty());
    assert_eq!(
        send(&mut extensions).await,
        [None],
        "not that of another request"
    );
    assert!(extensions.is_empty());
    extensions.insert("of the caller");
    assert_eq!(send(&mut extensions).await, [None]);
    assert_eq!(extensions.get(), Some(&"of the caller"));
    assert_eq!(extensions.len(), 1);
}

/// Some frames.
struct Stream<E>(VecDeque<Result<http_body::Frame<bytes::Bytes>, E>>);

impl<E> Unpin for Stream<E> {}

impl<E> futures_core::Stream for Stream<E> {
    type Item = Result<http_body::Frame<bytes::Bytes>, E>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

/// The body's source, another request, gets no connection; the request itself does.
#[tokio::test]
async fn a_body_that_fails_to_connect_does_not_prove_that_nothing_was_sent() {
    let (_held, closed) = closed_port();
    let refused = reqwest::get(&closed).await.unwrap_err();
    assert!(refused.is_connect());
    let server = Server::start([]).await;
    let frames = [Ok(http_body::Frame::data("pay 5".into())), Err(refused)];
    let body = reqwest::Body::wrap(http_body_util::StreamBody::new(Stream(frames.into())));
    let request = reqwest::Client::new().post(server.uri()).body(body);
    let retry = HttpRetry::new(quick()).unwrap().without_redirects();
    let error = request.send_with_retry(&retry).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error:#}");
}

/// The middleware's error hides reqwest's error from the chain of sources.
#[tokio::test]
async fn a_client_timeout_is_found_inside_the_middleware_error() {
    let server = Server::start([ServerAction::Hang]).await;
    let strategy = quick();
    let retry = HttpRetry::new(strategy.clone()).unwrap();
    let client = reqwest::Client::builder().timeout(Duration::from_millis(500));
    let builder = ClientBuilder::new(client.build().unwrap());
    let through = MiddlewareClient(builder.with(RetryMiddleware::new(retry)).build());
    assert_eq!(
        through.send(get(&server.uri())).await,
        TestOutcome::success(200, 2)
    );
    assert_eq!(strategy.budget().level(), 491);
}

/// No redirect is followed here, so only the timeout tells what may have been sent.
#[tokio::test]
async fn a_post_that_a_client_timeout_ends_is_not_sent_again() {
    let retry = || HttpRetry::new(quick()).unwrap().without_redirects();
    let client = || {
        let policy = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().redirect(policy);
        client.timeout(Duration::from_millis(500)).build().unwrap()
    };
    let middleware = ClientBuilder::new(client()).with(RetryMiddleware::new(retry()));
    let (plain, through) = (
        ReqwestClient(client(), retry()),
        MiddlewareClient(middleware.build()),
    );
    let server = Server::start(vec![ServerAction::Hang; 2]).await;
    let uri = server.uri();
    for ended in [
        plain.send(post(&uri, b"pay 5")).await,
        through.send(post(&uri, b"pay 5")).await,
    ] {
        assert!(ended.ambiguous, "{ended:?}");
        assert_eq!((ended.attempts, ended.cause), (1, Some(Cause::Unsafe)));
    }
}
