//! The log of what the SDK did otherwise than decided. A separate program, because the
//! subscriber has to be there before the first event.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{AsyncSleep, BehaviorVersion, Builder, Credentials, Region, Sleep};
use server::{Server, answer};
use steadfast::{Backoff, Standard};
use steadfast_http::aws::AwsRetry;

const DELAY: Duration = Duration::from_millis(200);

/// A timer that does not wait for retries. The SDK uses it for timeouts too.
#[derive(Debug)]
struct Impatient;

impl AsyncSleep for Impatient {
    fn sleep(&self, duration: Duration) -> Sleep {
        match duration {
            DELAY => Sleep::new(std::future::ready(())),
            other => Sleep::new(tokio::time::sleep(other)),
        }
    }
}

#[tokio::test]
async fn a_deviation_is_logged_with_its_operation() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = Server::start([answer(500)]).await;
    let strategy = Standard::aws_2_1().to_builder();
    let strategy = strategy.backoff(Backoff::constant(DELAY)).build().unwrap();
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(server.uri())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .sleep_impl(Impatient)
        .interceptor(AwsRetry::new(strategy));
    let client = Client::from_conf(config.build());
    client.list_queues().send().await.unwrap();
    let warnings = log.0.lock().unwrap();
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(warning.contains("SQS ListQueues"), "{warning}");
    assert!(warning.contains("instead of 200ms"), "{warning}");
}

/// Collects the warnings of `AwsRetry`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("steadfast_http")
    }

    fn event(&self, event: &tracing::Event<'_>) {
        assert_eq!(*event.metadata().level(), tracing::Level::WARN);
        let mut line = String::new();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                line += &format!("{field}={value:?} ");
            },
        );
        self.0.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
