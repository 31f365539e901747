//! reqwest, with and without middleware.

use reqwest::{Client, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use steadfast_http::HttpRetry;
use steadfast_http::reqwest::{RetryMiddleware, SendWithRetry};
use tokio::runtime::Runtime;

use super::{Contender, TIME_LIMIT};
use crate::contender;
use crate::server::Server;

const BODY: &str = "a body";

pub(crate) fn contenders<'a>(runtime: &'a Runtime, server: &Server) -> Vec<Contender<'a>> {
    let uri: &'static str = server.http_uri().leak();
    let (bare, plain, retry) = (Client::new(), Client::new(), HttpRetry::guidance());
    let nothing = ClientBuilder::new(Client::new()).build();
    let (also_plain, limit) = (Client::new(), HttpRetry::guidance().timeout(TIME_LIMIT));
    let middleware = |retry| {
        let builder = ClientBuilder::new(Client::new());
        builder.with(RetryMiddleware::new(retry)).build()
    };
    let steadfast = middleware(HttpRetry::guidance());
    let limited = middleware(limit.clone());
    let backoff = ExponentialBackoff::builder().build_with_max_retries(3);
    let theirs = ClientBuilder::new(Client::new())
        .with(RetryTransientMiddleware::new_with_policy(backoff))
        .build();
    let send = move |client: &ClientWithMiddleware| client.put(uri).body(BODY).send();
    vec![
        contender("bare", runtime, move || {
            check(bare.put(uri).body(BODY).send())
        }),
        contender("steadfast, send_with_retry", runtime, move || {
            let (request, retry) = (plain.put(uri).body(BODY), retry.clone());
            check(async move { request.send_with_retry(&retry).await })
        })
        .adds_at_most(5.0, 3737.0),
        contender(
            "steadfast, send_with_retry, time limit",
            runtime,
            move || {
                let (request, retry) = (also_plain.put(uri).body(BODY), limit.clone());
                check(async move { request.send_with_retry(&retry).await })
            },
        )
        .adds_at_most(6.0, 4821.0),
        contender("reqwest-middleware, without any", runtime, move || {
            check(send(&nothing))
        }),
        contender("steadfast, RetryMiddleware", runtime, move || {
            check(send(&steadfast))
        })
        .adds_at_most(8.0, 7071.0),
        contender(
            "steadfast, RetryMiddleware, time limit",
            runtime,
            move || check(send(&limited)),
        )
        .adds_at_most(9.0, 7762.0),
        contender("reqwest-retry, without a budget", runtime, move || {
            check(send(&theirs))
        }),
    ]
}

async fn check<E: std::fmt::Debug>(answer: impl Future<Output = Result<Response, E>>) {
    let answer = answer.await.expect("it is answered");
    assert!(answer.status().is_success());
    answer.bytes().await.expect("the body is whole");
}
