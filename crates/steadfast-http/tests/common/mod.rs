//! Fixtures of the integration tests: a scripted server, clients of each library,
//! and the tests that all of them have to pass.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "each test binary uses its part of this, and tests may panic and read the clock"
)]

pub mod clients;
pub mod fresh;
pub mod promises;
pub mod rows;
pub mod server;

use std::future::Future;
use std::time::Duration;

use steadfast::reason::THROTTLED;
use steadfast::report::Report;
use steadfast::strategy::Cause;
use steadfast::{Error, Failure, RetryEvent, Standard};
use steadfast_http::{HttpClassifier, HttpRetry};

/// A request of a test.
#[derive(Clone, Debug, Default)]
pub struct TestRequest {
    pub method: &'static str,
    pub uri: String,
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
}

pub fn get(uri: &str) -> TestRequest {
    TestRequest {
        method: "GET",
        uri: uri.to_owned(),
        ..TestRequest::default()
    }
}

pub fn post(uri: &str, body: &[u8]) -> TestRequest {
    TestRequest {
        method: "POST",
        uri: uri.to_owned(),
        body: body.to_vec(),
        ..TestRequest::default()
    }
}

/// The outcome of a request, independent of the client.
#[derive(Debug, PartialEq, Eq)]
pub struct TestOutcome {
    pub status: Option<u16>,
    pub attempts: u32,
    pub cause: Option<Cause>,
    pub would_wait: Option<Duration>,
    pub ambiguous: bool,
    pub notes: Vec<String>,
    pub text: String,
}

impl TestOutcome {
    pub fn success(status: u16, attempts: u32) -> Self {
        Self {
            status: Some(status),
            attempts,
            cause: None,
            would_wait: None,
            ambiguous: false,
            notes: Vec::new(),
            text: String::new(),
        }
    }

    pub fn report(status: Option<u16>, report: &Report) -> Self {
        let notes = report.history().records();
        let notes = notes.filter_map(|record| record.failure.note().map(str::to_owned));
        Self {
            status,
            attempts: report.attempts(),
            cause: report.refusal().map(|refusal| refusal.cause()),
            would_wait: report.refusal().and_then(|refusal| refusal.delay()),
            ambiguous: report.verdict().is_ambiguous(),
            notes: notes.collect(),
            text: String::new(),
        }
    }

    pub fn error<E: std::error::Error + 'static>(error: &Error<E>) -> Self {
        Self {
            text: format!("{error:#}"),
            ..Self::report(None, error.report())
        }
    }
}

/// A client of some library with these settings.
pub trait Client: Send + 'static {
    fn new(retry: HttpRetry) -> Self;
    fn send(&self, ask: TestRequest) -> impl Future<Output = TestOutcome> + Send;
}

/// A client of some library, for the rows.
pub struct RowClient<C>(C, String);

impl<C: Client + Sync> rows::UnderStrategy for RowClient<C> {
    fn under(
        strategy: Standard,
        server: &server::Server,
        observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        let classifier = HttpClassifier::default().also(|outcome| {
            let throttled = outcome.header("x-amzn-errortype") == Some("ThrottlingException");
            throttled.then(|| Err(Failure::responded(&THROTTLED).throttling()))
        });
        let retry = HttpRetry::new(strategy).unwrap().classify(classifier);
        Self(C::new(retry.observe(observer)), server.uri())
    }

    async fn succeeds(&self) -> bool {
        self.0.send(get(&self.1)).await.status == Some(200)
    }
}
