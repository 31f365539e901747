//! A `POST` that was redirected is never sent again, whatever comes after the
//! redirect and whether or not the client tells of it.
use crate::common::clients::{MiddlewareClient, ReqwestClient, ended, request};
use crate::common::promises::{all, quick};
use crate::common::server::{Server, ServerAction, answer, closed_port, with};
use crate::common::{Client, TestOutcome, TestRequest, get, post};
use crate::integration::{RetryMiddleware, watch_redirects};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::ClientBuilder;
use std::pin::Pin;
use std::time::Duration;
use steadfast::strategy::Cause;
use steadfast_http::HttpRetry;
use steadfast_http::tower::{HttpRetryLayer, ReplayBody};
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_http::follow_redirect::FollowRedirectLayer;

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// The end of the request that follows the redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Refused,
    UnknownHost,
    Reset,
    Cut,
    Timeout,
    InvalidAddress,
    Status(u16),
    SamePath(u16),
}

const ENDINGS: [Ending; 11] = [
    Ending::Refused,
    Ending::UnknownHost,
    Ending::Reset,
    Ending::Cut,
    Ending::Timeout,
    Ending::InvalidAddress,
    Ending::Status(404),
    Ending::Status(429),
    Ending::Status(503),
    Ending::SamePath(425),
    Ending::SamePath(429),
];

/// A stack that follows redirects by itself, under a layer or an extension that
/// retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    Reqwest,
    WatchedReqwest,
    Middleware,
    WatchedMiddleware,
    FollowRedirectUnderLayer,
    ReqwestUnderLayer,
}

const STACKS: [Stack; 6] = [
    Stack::Reqwest,
    Stack::WatchedReqwest,
    Stack::Middleware,
    Stack::WatchedMiddleware,
    Stack::FollowRedirectUnderLayer,
    Stack::ReqwestUnderLayer,
];

type BoxBody = UnsyncBoxBody<Bytes, BoxError>;

impl Stack {
    fn client(self) -> reqwest::Client {
        let builder = reqwest::Client::builder().no_proxy();
        match self {
            Stack::WatchedReqwest | Stack::WatchedMiddleware => watch_redirects(builder),
            _ => builder,
        }
        .build()
        .unwrap()
    }

    async fn send(self, retry: HttpRetry, ask: TestRequest) -> TestOutcome {
        match self {
            Stack::Reqwest | Stack::WatchedReqwest => {
                ReqwestClient(self.client(), retry).send(ask).await
            }
            Stack::Middleware | Stack::WatchedMiddleware => {
                let builder = ClientBuilder::new(self.client());
                let client = builder.with(RetryMiddleware::new(retry)).build();
                MiddlewareClient(client).send(ask).await
            }
            Stack::FollowRedirectUnderLayer => {
                let hyper: legacy::Client<_, BoxBody> =
                    legacy::Client::builder(TokioExecutor::new()).build_http();
                let client = ServiceBuilder::new()
                    .layer(HttpRetryLayer::new(retry))
                    .map_request(|request: Request<ReplayBody<_>>| {
                        request.map(|body| UnsyncBoxBody::new(body.map_err(BoxError::from)))
                    })
                    .layer(FollowRedirectLayer::new())
                    .service(hyper);
                ended(client.oneshot(request(ask)).await)
            }
            // The service ignores the body, so that it proves nothing.
            Stack::ReqwestUnderLayer => {
                let client = self.client();
                let service = service_fn(move |request: Request<ReplayBody<_>>| {
                    let (parts, _) = request.into_parts();
                    let request = client.request(parts.method, parts.uri.to_string());
                    async move { request.send().await.map(Response::<reqwest::Body>::from) }
                });
                let client = HttpRetryLayer::new(retry).layer(service);
                ended(client.oneshot(request(ask)).await)
            }
        }
    }
}

/// The server that redirects, and what is behind the redirect.
struct Peers {
    origin: Server,
    _next: Option<Server>,
    _held: Option<tokio::net::TcpSocket>,
}

impl Peers {
    async fn start(status: u16, ending: Ending) -> Self {
        let (mut next, mut held) = (None, None);
        let mut script = Vec::new();
        let to = match ending {
            Ending::Refused => {
                let (socket, uri) = closed_port();
                held = Some(socket);
                uri
            }
            // Too long for a label, so no resolver sends a query for it.
            Ending::UnknownHost => format!("http://{}.invalid/", "a".repeat(64)),
            Ending::InvalidAddress => "ftp://127.0.0.1/".to_owned(),
            Ending::Reset | Ending::Cut | Ending::Timeout | Ending::Status(_) => {
                let act = match ending {
                    Ending::Reset => ServerAction::CloseUnread,
                    Ending::Cut => ServerAction::CloseRead,
                    Ending::Status(status) => answer(status),
                    _ => ServerAction::Hang,
                };
                let server = Server::start(vec![act; 10]).await;
                let uri = server.uri();
                next = Some(server);
                uri
            }
            Ending::SamePath(_) => "/".to_owned(),
        };
        for _ in 0..6 {
            script.push(with(status, "location", &*to));
            if let Ending::SamePath(then) = ending {
                script.push(answer(then));
            }
        }
        Self {
            origin: Server::start(script).await,
            _next: next,
            _held: held,
        }
    }
}

fn retry() -> HttpRetry {
    HttpRetry::new(quick()).unwrap()
}

/// A `POST` that got a redirect may have been applied. It is sent once, and no
/// error says that it was not applied.
async fn sent_once(stack: Stack, status: u16, ending: Ending) {
    let case = format!("{stack:?}, {status}, {ending:?}");
    let peers = Peers::start(status, ending).await;
    let retry = match ending {
        Ending::Timeout => retry().attempt_timeout(Duration::from_secs(1)),
        _ => retry(),
    };
    let ended = stack.send(retry, post(&peers.origin.uri(), b"pay 5")).await;
    let seen = peers.origin.seen();
    let redirected = seen.iter().filter(|seen| seen.method == "POST").count();
    // A 307 to the same path sends the `POST` again by itself, as it should.
    let followed = matches!(ending, Ending::SamePath(_)) && seen.len() == 2;
    assert!(redirected == 1 || followed, "{case}: {seen:?}");
    assert_eq!(ended.attempts, 1, "{case}: {ended:?}");
    // A redirect that is not followed is a response like any other.
    let is_answer = ended.status == Some(status);
    assert_eq!(ended.ambiguous, !is_answer, "{case}: {ended:?}");
    assert!(!ended.text.contains("not applied"), "{case}: {ended:?}");
}

#[tokio::test]
async fn a_redirected_post_is_sent_once_whatever_follows() {
    let endings = ENDINGS
        .into_iter()
        .filter(|ending| *ending != Ending::Timeout);
    for stack in STACKS {
        for ending in endings.clone() {
            all(STATUSES
                .map(|status| sent_once(stack, status, ending))
                .into())
            .await;
        }
    }
    let cases = STACKS
        .map(|stack| STATUSES.map(|status| Box::pin(sent_once(stack, status, Ending::Timeout))));
    all(cases.into_iter().flatten().collect()).await;
}

/// A user says that there are no redirects, and the address of the response shows one.
#[tokio::test]
async fn an_address_shows_a_redirect_whatever_the_user_says() {
    for stack in [Stack::Reqwest, Stack::Middleware] {
        for ending in [Ending::Status(429), Ending::Status(503)] {
            let peers = Peers::start(302, ending).await;
            let ask = post(&peers.origin.uri(), b"pay 5");
            let ended = stack.send(retry().without_redirects(), ask).await;
            let case = format!("{stack:?}, {ending:?}: {ended:?}");
            assert_eq!(peers.origin.seen().len(), 1, "{case}");
            assert!(ended.ambiguous, "{case}");
        }
    }
}

/// Idempotent requests are retried from the beginning.
#[tokio::test]
async fn a_redirected_get_is_retried_whatever_follows() {
    let mut cases: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for stack in STACKS {
        for ending in [Ending::Refused, Ending::Cut, Ending::Status(503)] {
            cases.push(Box::pin(async move {
                let peers = Peers::start(302, ending).await;
                let ended = stack.send(retry(), get(&peers.origin.uri())).await;
                let case = format!("{stack:?}, {ending:?}: {ended:?}");
                assert_eq!(ended.attempts, 5, "{case}");
                assert_eq!(peers.origin.seen().len(), 5, "{case}");
                assert!(!ended.ambiguous, "{case}");
            }));
        }
    }
    all(cases).await;
}

/// Without a redirect, a client that tells of redirects gets the precise stage back.
#[tokio::test]
async fn a_watched_client_retries_a_post_that_was_not_applied() {
    for stack in STACKS {
        let watched = matches!(stack, Stack::WatchedReqwest | Stack::WatchedMiddleware);
        let (_held, closed) = closed_port();
        let ended = stack.send(retry(), post(&closed, b"pay 5")).await;
        assert_eq!(ended.attempts == 5, watched, "{stack:?}: {ended:?}");
        assert_eq!(ended.ambiguous, !watched, "{stack:?}: {ended:?}");

        let server = Server::start([answer(429)]).await;
        let ended = stack.send(retry(), post(&server.uri(), b"pay 5")).await;
        if watched {
            assert_eq!(ended, TestOutcome::success(200, 2), "{stack:?}");
        } else {
            assert_eq!(ended.cause, Some(Cause::Unsafe), "{stack:?}");
            assert_eq!(ended.notes, ["HTTP 429, perhaps after a redirect"]);
            assert!(ended.ambiguous, "{stack:?}");
        }
        assert_eq!(
            server.seen().len(),
            if watched { 2 } else { 1 },
            "{stack:?}"
        );

        // By the user's word.
        let server = Server::start([answer(429)]).await;
        let ask = post(&server.uri(), b"pay 5");
        let ended = stack.send(retry().without_redirects(), ask).await;
        assert_eq!(ended, TestOutcome::success(200, 2), "{stack:?}");
    }
}
