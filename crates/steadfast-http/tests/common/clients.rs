//! The clients of the integrations.

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use steadfast::Error;
use steadfast_http::reqwest::{RetryMiddleware, SendWithRetry};
use steadfast_http::tower::{HttpRetryLayer, HttpRetryService, ReplayBody};
use steadfast_http::{AttemptCount, HttpRetry, ResponseReport};
use tower::{Layer, ServiceExt};

use super::{Ask, Client, Ended};

pub type Body = Full<Bytes>;

/// hyper's client under the tower layer.
pub struct Layered(pub HttpRetryService<legacy::Client<HttpConnector, ReplayBody<Body>>>);

impl Client for Layered {
    fn new(retry: HttpRetry) -> Self {
        let hyper = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self(HttpRetryLayer::new(retry).layer(hyper))
    }

    async fn send(&self, ask: Ask) -> Ended {
        ended(self.0.clone().oneshot(request(ask)).await)
    }
}

pub fn request(ask: Ask) -> Request<Body> {
    let mut builder = Request::builder().method(ask.method).uri(ask.uri);
    for (name, value) in ask.headers {
        builder = builder.header(name, value);
    }
    builder.body(Full::from(ask.body)).unwrap()
}

pub fn ended<B, E: std::error::Error + 'static>(result: Result<Response<B>, Error<E>>) -> Ended {
    match result {
        Ok(response) => answered(response.status().as_u16(), response.extensions()),
        Err(error) => Ended::error(&error),
    }
}

/// reqwest without middleware.
pub struct Plain(pub reqwest::Client, pub HttpRetry);

impl Client for Plain {
    fn new(retry: HttpRetry) -> Self {
        Self(reqwest::Client::new(), retry)
    }

    async fn send(&self, ask: Ask) -> Ended {
        let mut request = self.0.request(ask.method.parse().unwrap(), ask.uri);
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        match request.body(ask.body).send_with_retry(&self.1).await {
            Ok(response) => answered(response.status().as_u16(), response.extensions()),
            Err(error) => Ended::error(&error),
        }
    }
}

/// reqwest with the middleware.
pub struct Through(pub ClientWithMiddleware);

impl Client for Through {
    fn new(retry: HttpRetry) -> Self {
        let builder = ClientBuilder::new(reqwest::Client::new());
        Self(builder.with(RetryMiddleware::new(retry)).build())
    }

    async fn send(&self, ask: Ask) -> Ended {
        let mut request = self.0.request(ask.method.parse().unwrap(), ask.uri);
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        match request.body(ask.body).send().await {
            Ok(response) => answered(response.status().as_u16(), response.extensions()),
            Err(reqwest_middleware::Error::Middleware(error)) => {
                let error = error.downcast_ref::<Error<reqwest_middleware::Error>>();
                Ended::error(error.expect("every error has its story"))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// How a request ended that was answered.
pub fn answered(status: u16, extensions: &Extensions) -> Ended {
    match extensions.get::<ResponseReport>() {
        Some(report) => Ended::report(Some(status), report),
        None => {
            let attempts = extensions
                .get()
                .map_or(1, |AttemptCount(attempts)| *attempts);
            Ended::success(status, attempts)
        }
    }
}
