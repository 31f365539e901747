//! `AwsRetry` as a runtime plugin, for clients that Smithy generates outside of the
//! AWS SDK. The test client is written by hand on the same runtime.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/rows.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod rows;
#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_async::time::SystemTimeSource;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime::client::retries::classifiers::{
    HttpStatusCodeClassifier, TransientErrorClassifier,
};
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, OrchestratorError};
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use aws_smithy_types::timeout::TimeoutConfig;
use rows::UnderStrategy;
use server::{Server, ServerAction, answer, with};
use steadfast::strategy::Cause;
use steadfast::{Backoff, RetryEvent, Standard};
use steadfast_http::aws::AwsRetry;

#[derive(Clone, Copy)]
enum Body {
    InMemory,
    Streamed,
}

type Call = Operation<Body, (), Infallible>;

fn call(operation: &'static str, server: &Server, plugins: Vec<AwsRetry>) -> Call {
    let builder = Operation::builder()
        .service_name("Queue")
        .operation_name(operation)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(&server.uri())
        .no_auth()
        // So that whoever retries can only be the plugin's strategy.
        .no_retry()
        .sleep_impl(TokioSleep::new())
        .time_source(SystemTimeSource::new())
        .timeout_config(TimeoutConfig::disabled())
        .retry_classifier(HttpStatusCodeClassifier::default())
        .retry_classifier(TransientErrorClassifier::<Infallible>::new())
        .retry_classifier(Throttling);
    let builder = plugins
        .into_iter()
        .fold(builder, |builder, plugin| builder.runtime_plugin(plugin));
    builder
        .serializer(|body: Body| {
            let mut request = HttpRequest::new(match body {
                Body::InMemory => SdkBody::from("x"),
                Body::Streamed => SdkBody::from_body_1_x(Stream(Some("x"))),
            });
            request.set_method("POST").unwrap();
            if let Body::InMemory = body {
                request.headers_mut().insert("content-length", "1");
            }
            Ok(request)
        })
        .deserializer(|response| match response.status().is_success() {
            true => Ok(()),
            false => Err(OrchestratorError::other(format!("{}", response.status()))),
        })
        .build()
}

/// Classifies errors as the AWS SDK does.
#[derive(Debug)]
struct Throttling;

impl ClassifyRetry for Throttling {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let response = context.response();
        match response.and_then(|response| response.headers().get("x-amzn-errortype")) {
            Some("ThrottlingException") => RetryAction::retryable_error(ErrorKind::ThrottlingError),
            Some(_) | None => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "Throttling"
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

struct Plugged(Call);

impl UnderStrategy for Plugged {
    fn under(
        strategy: Standard,
        server: &Server,
        observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        let retry = AwsRetry::new(strategy).observe(observer);
        Self(call("ListThings", server, vec![retry]))
    }

    async fn succeeds(&self) -> bool {
        self.0.invoke(Body::InMemory).await.is_ok()
    }
}

fn quick() -> Standard {
    let backoff = Backoff::constant(Duration::from_millis(5));
    Standard::aws_2_1()
        .to_builder()
        .backoff(backoff)
        .build()
        .unwrap()
}

fn level(strategy: &Standard) -> u32 {
    strategy.budget().level()
}

#[tokio::test]
async fn the_token_bucket_is_right_row_by_row() {
    rows::hold::<Plugged>().await;
}

#[tokio::test]
async fn twenty_at_once_that_each_fail_once_leave_the_bucket_where_it_was() {
    let server = Server::start(vec![
        with(400, "x-amzn-errortype", "ThrottlingException");
        20
    ])
    .await;
    let wait = Backoff::constant(Duration::from_millis(300));
    let strategy = quick()
        .to_builder()
        .throttling_backoff(wait)
        .build()
        .unwrap();
    let call = Arc::new(call("Send", &server, vec![AwsRetry::new(strategy.clone())]));
    let mut running = Vec::new();
    for _ in 0..20 {
        let call = Arc::clone(&call);
        running.push(tokio::spawn(async move {
            call.invoke(Body::InMemory).await.is_ok()
        }));
    }
    for call in running {
        assert!(call.await.unwrap());
    }
    assert_eq!(server.seen().len(), 40);
    assert_eq!(level(&strategy), 500);
}

#[tokio::test]
async fn a_later_plugin_replaces_an_earlier_one() {
    let server = Server::start(vec![answer(500); 3]).await;
    let (theirs, own) = (
        quick(),
        quick().to_builder().max_attempts(2).build().unwrap(),
    );
    let plugins = vec![AwsRetry::new(theirs.clone()), AwsRetry::new(own.clone())];
    let call = call("ListThings", &server, plugins);
    assert!(call.invoke(Body::InMemory).await.is_err());
    assert_eq!(server.seen().len(), 2);
    assert_eq!((level(&theirs), level(&own)), (500, 486));
}

#[tokio::test]
async fn a_body_that_cannot_be_sent_again_is_not_and_the_event_says_why() {
    let server = Server::start([answer(500)]).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let retry = AwsRetry::new(quick()).observe({
        let told = Arc::clone(&told);
        move |event| {
            let cause = event.refusal().map(|refusal| refusal.cause());
            let note = event.failure().note().map(str::to_owned);
            told.lock().unwrap().push((cause, note));
        }
    });
    let call = call("ListThings", &server, vec![retry]);
    assert!(call.invoke(Body::Streamed).await.is_err());
    assert_eq!(server.seen().len(), 1);
    let note = "HTTP 500; the body is a stream, so it cannot be sent again".to_owned();
    assert_eq!(
        *told.lock().unwrap(),
        [(Some(Cause::NotRetryable), Some(note))]
    );
}

#[tokio::test]
async fn a_request_that_may_have_been_applied_is_not_sent_again() {
    for act in [answer(500), ServerAction::CloseRead] {
        let server = Server::start([act.clone()]).await;
        let call = call("SendThing", &server, vec![AwsRetry::new(quick())]);
        assert!(call.invoke(Body::InMemory).await.is_err(), "{act:?}");
        assert_eq!(server.seen().len(), 1, "{act:?}");
    }
}

/// One frame, which cannot be copied.
struct Stream(Option<&'static str>);

impl http_body::Body for Stream {
    type Data = bytes::Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Infallible>>> {
        let frame = self
            .0
            .take()
            .map(|text| Ok(http_body::Frame::data(text.into())));
        std::task::Poll::Ready(frame)
    }
}
