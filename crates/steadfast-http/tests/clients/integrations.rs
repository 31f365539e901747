//! One call of each integration, and the judge of its outcome.

use std::time::Duration;

use crate::integration::{RetryMiddleware, watch_redirects};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::ClientBuilder;
use steadfast::retry;
use steadfast_http::HttpRetry;
use steadfast_http::grpc::StatusClassifier;
use steadfast_http::tower::HttpRetryLayer;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, ServiceExt};

use super::raw::{Fault, Server};
use crate::common::clients::{LIMIT, MiddlewareClient, ReqwestClient, ended, request};
use crate::common::promises::quick;
use crate::common::{Client, TestOutcome, TestRequest, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integration {
    Tower,
    Reqwest,
    Middleware,
    Tonic,
}

impl Integration {
    pub const HTTP: [Self; 3] = [Self::Tower, Self::Reqwest, Self::Middleware];
    pub const ALL: [Self; 4] = [Self::Tower, Self::Reqwest, Self::Middleware, Self::Tonic];

    async fn send(
        self,
        http2: bool,
        idempotent: bool,
        limit: Option<Duration>,
        uri: &str,
        body: &[u8],
    ) -> TestOutcome {
        let retry = HttpRetry::new(quick()).unwrap();
        let retry = match limit {
            Some(limit) => retry.timeout(limit),
            None => retry,
        };
        let ask = TestRequest {
            method: if idempotent { "PUT" } else { "POST" },
            ..post(uri, body)
        };
        let client = || {
            let builder = reqwest::Client::builder().no_proxy();
            let builder = match http2 {
                true => builder.http2_prior_knowledge(),
                false => builder,
            };
            watch_redirects(builder).build().unwrap()
        };
        match self {
            Self::Tower => {
                let mut builder = legacy::Client::builder(TokioExecutor::new());
                let hyper = builder.http2_only(http2).build_http();
                let client = HttpRetryLayer::new(retry).layer(hyper);
                ended(client.oneshot(request(ask)).await)
            }
            Self::Reqwest => ReqwestClient(client(), retry).send(ask).await,
            Self::Middleware => {
                let client = ClientBuilder::new(client()).with(RetryMiddleware::new(retry));
                MiddlewareClient(client.build()).send(ask).await
            }
            Self::Tonic => check(idempotent, limit, uri).await,
        }
    }
}

/// A call of tonic's.
async fn check(idempotent: bool, limit: Option<Duration>, uri: &str) -> TestOutcome {
    let channel = Endpoint::from_shared(uri.to_owned())
        .unwrap()
        .connect_lazy();
    let (client, mut attempts) = (HealthClient::new(channel), 0);
    let mut retry = retry(quick()).idempotent(idempotent);
    if let Some(limit) = limit {
        retry = retry.timeout(limit);
    }
    let result = retry
        .classify(StatusClassifier)
        .run(|attempt| {
            attempts = attempt.number();
            let mut client = client.clone();
            async move { client.check(HealthCheckRequest::default()).await }
        })
        .await;
    match result {
        Ok(_) => TestOutcome::success(200, attempts),
        Err(error) => TestOutcome::error(&error),
    }
}

/// Sends a request to a server that does this once, and then works.
pub async fn judge(integration: Integration, http2: bool, idempotent: bool, fault: Fault) {
    judge_body(integration, http2, idempotent, fault, b"pay 5").await;
}

/// The same, with a body. Each is sent without and with a time limit.
pub async fn judge_body(
    integration: Integration,
    http2: bool,
    idempotent: bool,
    fault: Fault,
    body: &[u8],
) {
    for limit in [None, Some(LIMIT)] {
        let Fault { name, act, .. } = &fault;
        let case =
            format!("{integration:?}, idempotent: {idempotent}, limit: {limit:?}, {name}, {act:?}");
        let server = Server::start(http2, vec![fault.clone()]).await;
        let ended = integration
            .send(http2, idempotent, limit, &server.uri(), body)
            .await;
        let carried_out = server.carried_out();
        let case = format!("{case}: carried out {carried_out} times, {ended:?}");
        let succeeded = ended.status == Some(200) && ended.cause.is_none();
        if !idempotent {
            assert!(carried_out <= 1, "{case}");
            assert!(ended.ambiguous || carried_out == 0 || succeeded, "{case}");
        }
        let again = idempotent || fault.proves_nothing_happened;
        assert_eq!(succeeded, again, "{case}");
        assert_eq!(ended.attempts, if again { 2 } else { 1 }, "{case}");
    }
}
