//! The clients.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use steadfast::Error;
use steadfast_http::reqwest::{RetryMiddleware, SendWithRetry};
use steadfast_http::tower::{HttpRetry, HttpRetryLayer, ReplayBody};
use steadfast_http::{Attempts, Policy, RetryReport};
use tower::{Layer, ServiceExt};

use crate::common::{Ask, Client, Ended};

type Body = Full<Bytes>;

pub(crate) struct Hyper(HttpRetry<legacy::Client<HttpConnector, ReplayBody<Body>>>);

impl Client for Hyper {
    fn new(policy: Policy) -> Self {
        let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self(HttpRetryLayer::new(policy).layer(hyper))
    }

    async fn send(&self, ask: Ask) -> Ended {
        let request = Request::builder().method(ask.method).uri(ask.uri);
        let request = request.body(Full::from(ask.body)).unwrap();
        match self.0.clone().oneshot(request).await {
            Ok(response) => ended(response.status().as_u16(), response.extensions()),
            Err(error) => Ended::error(&error),
        }
    }
}

pub(crate) struct Reqwest(reqwest::Client, Policy);

impl Client for Reqwest {
    fn new(policy: Policy) -> Self {
        Self(reqwest::Client::new(), policy)
    }

    async fn send(&self, ask: Ask) -> Ended {
        let request = self.0.request(ask.method.parse().unwrap(), ask.uri);
        match request.body(ask.body).send_with_retry(&self.1).await {
            Ok(response) => ended(response.status().as_u16(), response.extensions()),
            Err(error) => Ended::error(&error),
        }
    }
}

pub(crate) struct Middleware(ClientWithMiddleware);

impl Client for Middleware {
    fn new(policy: Policy) -> Self {
        let builder = ClientBuilder::new(reqwest::Client::new());
        Self(builder.with(RetryMiddleware::new(policy)).build())
    }

    async fn send(&self, ask: Ask) -> Ended {
        let request = self.0.request(ask.method.parse().unwrap(), ask.uri);
        match request.body(ask.body).send().await {
            Ok(response) => ended(response.status().as_u16(), response.extensions()),
            Err(reqwest_middleware::Error::Middleware(error)) => {
                let error = error.downcast_ref::<Error<reqwest_middleware::Error>>();
                Ended::error(error.expect("every error has its story"))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn ended(status: u16, extensions: &http::Extensions) -> Ended {
    match extensions.get::<RetryReport>() {
        Some(report) => Ended::report(Some(status), report),
        None => {
            let attempts = extensions.get().map_or(1, |Attempts(attempts)| *attempts);
            Ended::success(status, attempts)
        }
    }
}

/// Writes, and reads the whole answer.
pub(crate) async fn read_with_hyper(policy: Policy, uri: &str) -> Result<Bytes, String> {
    let request = Request::post(uri).body(Full::from("hyper")).unwrap();
    let response = Hyper::new(policy).0.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await;
    body.map(|body| body.to_bytes())
        .map_err(|error| error.to_string())
}

/// Writes, and reads the whole answer.
pub(crate) async fn read_with_reqwest(policy: Policy, uri: &str) -> Result<Bytes, String> {
    let request = reqwest::Client::new().post(uri).body("reqwest");
    let response = request.send_with_retry(&policy).await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.map_err(|error| error.to_string())
}
