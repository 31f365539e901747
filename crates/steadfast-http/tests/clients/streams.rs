//! Streamed bodies: a redirect after one, a time limit, and a source that fails.

use std::io;
use std::time::Duration;

use crate::integration::{RetryMiddleware, SendWithRetry, watch_redirects};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use steadfast::Adaptive;
use steadfast::strategy::{Cause, WhenLimited};
use steadfast_http::HttpRetry;
use steadfast_http::tower::{HttpRetryLayer, ReplayBody};
use tower::{Layer, ServiceExt, service_fn};

use crate::common::clients::{MiddlewareClient, answered, ended};
use crate::common::promises::quick;
use crate::common::server::{Server, ServerAction, answer, with};
use crate::common::{Client, TestOutcome, post};

fn retry() -> HttpRetry {
    HttpRetry::new(quick()).unwrap()
}

fn watched() -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy();
    watch_redirects(builder).build().unwrap()
}

/// A body that reqwest cannot copy, and so does not report to the retry policy.
fn stream() -> reqwest::Body {
    reqwest::Body::wrap(Full::new(Bytes::from_static(b"pay 5")))
}

/// Replaces the body of every request by a stream, as one that measures uploads does.
struct Streamed;

#[async_trait::async_trait]
impl Middleware for Streamed {
    async fn handle(
        &self,
        mut request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        if request.body().is_some() {
            *request.body_mut() = Some(stream());
        }
        next.run(request, extensions).await
    }
}

/// A server that applies the `POST` and redirects it to its own address, where it is busy.
async fn redirecting(status: u16) -> Server {
    let redirect = || with(303, "location", "/");
    let script = (0..6).flat_map(|_| [redirect(), answer(status)]);
    Server::start(script.collect::<Vec<_>>()).await
}

fn posts(server: &Server) -> usize {
    let seen = server.seen();
    seen.iter().filter(|seen| seen.method == "POST").count()
}

#[tokio::test]
async fn a_redirect_of_a_streamed_post_is_noticed() {
    for status in [425, 429] {
        let server = redirecting(status).await;
        let request = watched().post(server.uri()).body(stream());
        let response = request.send_with_retry(&retry()).await.unwrap();
        let ended = answered(response.status().as_u16(), response.extensions());
        assert_eq!(posts(&server), 1, "{ended:?}");
        assert!(ended.ambiguous, "{ended:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_noticed_if_an_inner_middleware_streams_the_body() {
    for status in [425, 429] {
        let server = redirecting(status).await;
        let client = ClientBuilder::new(watched()).with(RetryMiddleware::new(retry()));
        let client = MiddlewareClient(client.with(Streamed).build());
        let ended = client.send(post(&server.uri(), b"pay 5")).await;
        assert_eq!(posts(&server), 1, "{ended:?}");
        assert!(ended.ambiguous, "{ended:?}");
    }
}

#[tokio::test]
async fn a_streamed_body_is_not_sent_again_after_a_time_limit() {
    // The engine makes the first attempt if the strategy needs a token for it.
    let adaptive = Adaptive::new(quick(), WhenLimited::Wait);
    for retry in [retry(), HttpRetry::new(adaptive).unwrap()] {
        let server = Server::start([ServerAction::Hang]).await;
        let limited = retry.attempt_timeout(Duration::from_secs(1));
        let request = watched().put(server.uri()).body(stream());
        let error = request.send_with_retry(&limited).await.unwrap_err();
        let ended = TestOutcome::error(&error);
        assert_eq!(server.seen().len(), 1);
        assert_eq!(ended.cause, Some(Cause::NotRetryable), "{ended:?}");
        assert_eq!(ended.attempts, 1, "{ended:?}");
        let expected = "no response in time; the body is a stream, so it cannot be sent again";
        assert_eq!(ended.notes, [expected], "{ended:?}");
    }
}

/// The error is the one of the body's source. It tells nothing about this request.
#[tokio::test]
async fn a_source_that_got_no_connection_does_not_prove_that_nothing_was_sent() {
    let service = service_fn(|request: Request<ReplayBody<reqwest::Body>>| async {
        // What comes before the error was sent.
        match request.into_body().collect().await {
            Ok(_) => Ok(Response::new(())),
            Err(error) => Err(Box::new(error)),
        }
    });
    let source = futures_core_stream([
        Ok(Bytes::from_static(b"pay 5")),
        Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
    ]);
    let client = HttpRetryLayer::new(retry().without_redirects()).layer(service);
    let request = Request::post("http://localhost/").body(source).unwrap();
    let ended = ended(client.oneshot(request).await);
    assert_eq!(ended.attempts, 1, "{ended:?}");
    assert!(ended.ambiguous, "{ended:?}");
}

fn futures_core_stream<const N: usize>(items: [io::Result<Bytes>; N]) -> reqwest::Body {
    reqwest::Body::wrap_stream(Items(items.into_iter().collect()))
}

struct Items(std::collections::VecDeque<io::Result<Bytes>>);

impl futures_core::Stream for Items {
    type Item = io::Result<Bytes>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}
