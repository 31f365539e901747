//! hyper's client, with a body that has to be kept.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use steadfast_http::HttpRetry;
use steadfast_http::tower::HttpRetryLayer;
use tokio::runtime::Runtime;
use tower::{Layer, ServiceExt};

use super::{Contender, TIME_LIMIT};
use crate::contender;
use crate::server::Server;
use crate::tower_policy::UnlessServerFails;

pub(crate) fn contenders<'a>(runtime: &'a Runtime, server: &Server) -> Vec<Contender<'a>> {
    let uri = server.http_uri();
    let request = move || {
        let request = Request::put(&uri).body(Full::from(Bytes::from_static(b"a body")));
        request.expect("it is a request")
    };
    let bare = Client::builder(TokioExecutor::new()).build_http();
    let layered = |retry| {
        HttpRetryLayer::new(retry).layer(Client::builder(TokioExecutor::new()).build_http())
    };
    let steadfast = layered(HttpRetry::guidance());
    let limited = layered(HttpRetry::guidance().timeout(TIME_LIMIT));
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let tower = tower::retry::Retry::new(UnlessServerFails::default(), client);
    let (first, second, third) = (request.clone(), request.clone(), request.clone());
    vec![
        contender("bare", runtime, move || {
            check(bare.clone().oneshot(request()))
        }),
        contender("steadfast, HttpRetryLayer", runtime, move || {
            check(steadfast.clone().oneshot(first()))
        })
        .adds_at_most(3.0, 4800.0),
        contender(
            "steadfast, HttpRetryLayer, time limit",
            runtime,
            move || check(limited.clone().oneshot(third())),
        )
        .adds_at_most(4.0, 6425.0),
        contender("tower's retry, with its budget", runtime, move || {
            check(tower.clone().oneshot(second()))
        }),
    ]
}

async fn check<B, E>(answer: impl Future<Output = Result<Response<B>, E>>)
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
    E: std::fmt::Debug,
{
    let answer = answer.await.expect("it is answered");
    assert!(answer.status().is_success());
    answer
        .into_body()
        .collect()
        .await
        .expect("the body is whole");
}
