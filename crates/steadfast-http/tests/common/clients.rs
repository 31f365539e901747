//! Clients of each library.

use std::time::Duration;

use crate::integration::{RetryMiddleware, SendWithRetry, watch_redirects};
use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use steadfast::Error;
use steadfast_http::tower::{HttpRetryLayer, HttpRetryService, ReplayBody};
use steadfast_http::{AttemptCount, HttpRetry, ResponseReport};
use tower::{Layer, ServiceExt};

use super::{Client, TestOutcome, TestRequest};

pub type Body = Full<Bytes>;

/// hyper's client under the tower layer.
pub struct TowerClient(pub HttpRetryService<legacy::Client<HttpConnector, ReplayBody<Body>>>);

impl Client for TowerClient {
    fn new(retry: HttpRetry) -> Self {
        let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self(HttpRetryLayer::new(retry).layer(hyper))
    }

    async fn send(&self, ask: TestRequest) -> TestOutcome {
        ended(self.0.clone().oneshot(request(ask)).await)
    }
}

pub fn request(ask: TestRequest) -> Request<Body> {
    let mut builder = Request::builder().method(ask.method).uri(ask.uri);
    for (name, value) in ask.headers {
        builder = builder.header(name, value);
    }
    builder.body(Full::from(ask.body)).unwrap()
}

pub fn ended<B, E: std::error::Error + 'static>(
    result: Result<Response<B>, Error<E>>,
) -> TestOutcome {
    match result {
        Ok(response) => answered(response.status().as_u16(), response.extensions()),
        Err(error) => TestOutcome::error(&error),
    }
}

/// A client whose redirects are known.
fn watched() -> reqwest::Client {
    watch_redirects(reqwest::Client::builder()).build().unwrap()
}

/// reqwest without middleware.
pub struct ReqwestClient(pub reqwest::Client, pub HttpRetry);

impl Client for ReqwestClient {
    fn new(retry: HttpRetry) -> Self {
        Self(watched(), retry)
    }

    async fn send(&self, ask: TestRequest) -> TestOutcome {
        let mut request = self.0.request(ask.method.parse().unwrap(), ask.uri);
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        match request.body(ask.body).send_with_retry(&self.1).await {
            Ok(response) => answered(response.status().as_u16(), response.extensions()),
            Err(error) => TestOutcome::error(&error),
        }
    }
}

/// reqwest with the middleware.
pub struct MiddlewareClient(pub ClientWithMiddleware);

impl Client for MiddlewareClient {
    fn new(retry: HttpRetry) -> Self {
        let builder = ClientBuilder::new(watched());
        Self(builder.with(RetryMiddleware::new(retry)).build())
    }

    async fn send(&self, ask: TestRequest) -> TestOutcome {
        let mut request = self.0.request(ask.method.parse().unwrap(), ask.uri);
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        match request.body(ask.body).send().await {
            Ok(response) => answered(response.status().as_u16(), response.extensions()),
            Err(reqwest_middleware::Error::Middleware(error)) => {
                let error = error.downcast_ref::<Error<reqwest_middleware::Error>>();
                TestOutcome::error(error.expect("every error has a report"))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

pub const LIMIT: Duration = Duration::from_secs(60);

/// The outcome of a request that got a response.
pub fn answered(status: u16, extensions: &Extensions) -> TestOutcome {
    match extensions.get::<ResponseReport>() {
        Some(report) => TestOutcome::report(Some(status), report),
        None => {
            let attempts = extensions
                .get()
                .map_or(1, |AttemptCount(attempts)| *attempts);
            TestOutcome::success(status, attempts)
        }
    }
}
