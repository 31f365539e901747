//! A service without a network, so that what a layer costs is not lost in it.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast::{Standard, classify::Classifier};
use steadfast_http::HttpRetry;
use steadfast_http::tower::{HttpRetryLayer, ReplayBody, RetryLayer};
use tokio::runtime::Runtime;
use tower::{Layer, ServiceExt, service_fn};

use super::{Contender, TIME_LIMIT};
use crate::contender;
use crate::server::Server;
use crate::tower_policy::UnlessServerFails;

type Body = Full<Bytes>;

pub(crate) fn contenders<'a>(runtime: &'a Runtime, _: &Server) -> Vec<Contender<'a>> {
    let bare = service_fn(answer::<Body>);
    let generic = RetryLayer::new(Standard::guidance())
        .expect("it is bounded")
        .classify(Never)
        .layer(bare);
    let layered = |retry| HttpRetryLayer::new(retry).layer(service_fn(answer::<ReplayBody<Body>>));
    let http = layered(HttpRetry::guidance());
    let limited = layered(HttpRetry::guidance().timeout(TIME_LIMIT));
    let tower = tower::retry::Retry::new(UnlessServerFails::default(), bare);
    vec![
        contender("bare", runtime, move || check(bare.oneshot(request()))),
        contender("steadfast, HttpRetryLayer", runtime, move || {
            check(http.clone().oneshot(request()))
        })
        .adds_at_most(1.0, 2637.0),
        contender(
            "steadfast, HttpRetryLayer, time limit",
            runtime,
            move || check(limited.clone().oneshot(request())),
        )
        .adds_at_most(1.0, 2688.0),
        contender("steadfast, RetryLayer", runtime, move || {
            check(generic.clone().oneshot(request()))
        })
        .adds_at_most(1.0, 2150.0),
        contender("tower's retry, with its budget", runtime, move || {
            check(tower.clone().oneshot(request()))
        }),
    ]
}

async fn answer<B>(request: Request<B>) -> Result<Response<()>, Infallible> {
    std::hint::black_box(request);
    Ok(Response::new(()))
}

fn request() -> Request<Body> {
    Request::get("http://127.0.0.1/")
        .body(Full::default())
        .expect("it is a request")
}

async fn check<E: std::fmt::Debug>(answer: impl Future<Output = Result<Response<()>, E>>) {
    assert!(answer.await.expect("it is answered").status().is_success());
}

/// An answer that cannot fail needs no classifier.
#[derive(Clone)]
struct Never;

impl Classifier<Infallible> for Never {
    fn classify(&self, never: &Infallible) -> steadfast::Failure {
        match *never {}
    }
}
