//! The SQS client of the AWS SDK with `AwsRetry`, against a scripted server.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/rows.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod rows;
#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::interceptors::BeforeSerializationInterceptorContextMut;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{
    BehaviorVersion, Builder, ConfigBag, Credentials, Intercept, Region, RuntimeComponents,
};
use aws_sdk_sqs::error::BoxError;
use rows::UnderStrategy;
use server::{Server, ServerAction, answer, closed_port, once_each, with};
use steadfast::strategy::Cause;
use steadfast::{Backoff, RetryEvent, Standard};
use steadfast_http::aws::{AwsOperation, AwsRetry};

fn config(server: &Server) -> Builder {
    let http = aws_smithy_http_client::Builder::new().build_http();
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(server.uri())
        .http_client(http)
}

fn client(server: &Server, retry: AwsRetry) -> Client {
    Client::from_conf(config(server).interceptor(retry).build())
}

/// The SDK's 2.1 numbers with delays of a few milliseconds.
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

fn throttled() -> ServerAction {
    with(400, "x-amzn-errortype", "ThrottlingException")
}

async fn send(client: &Client) -> bool {
    let call = client
        .send_message()
        .queue_url("http://q/1")
        .message_body("x");
    call.send().await.is_ok()
}

struct Sqs(Client);

impl UnderStrategy for Sqs {
    fn under(
        strategy: Standard,
        server: &Server,
        observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self(client(server, AwsRetry::new(strategy).observe(observer)))
    }

    async fn succeeds(&self) -> bool {
        self.0.list_queues().send().await.is_ok()
    }
}

#[tokio::test]
async fn the_token_bucket_is_right_row_by_row() {
    rows::hold::<Sqs>().await;
}

#[tokio::test]
async fn twenty_at_once_that_each_fail_once_leave_the_bucket_where_it_was() {
    let server = Server::start([once_each(throttled())]).await;
    let wait = Backoff::constant(Duration::from_millis(200));
    let strategy = quick()
        .to_builder()
        .throttling_backoff(wait)
        .build()
        .unwrap();
    let levels = Arc::new(Mutex::new(Vec::new()));
    let retry = AwsRetry::new(strategy.clone()).observe({
        let (levels, strategy) = (Arc::clone(&levels), strategy.clone());
        move |_| levels.lock().unwrap().push(level(&strategy))
    });
    let client = client(&server, retry);
    let mut running = Vec::new();
    for body in 0..20 {
        let call = client.send_message().queue_url("http://q/1");
        let call = call.message_body(body.to_string());
        running.push(tokio::spawn(async move { call.send().await.is_ok() }));
    }
    for call in running {
        assert!(call.await.unwrap());
    }
    assert_eq!(server.seen().len(), 40);
    let levels = levels.lock().unwrap();
    assert_eq!(levels.len(), 20, "each was retried once");
    assert!(
        levels.iter().all(|level| *level < 500),
        "and paid for it: {levels:?}"
    );
    assert_eq!(level(&strategy), 500);
}

#[tokio::test]
async fn a_request_that_may_have_been_applied_is_not_sent_again_unless_it_is_idempotent() {
    for (act, refused) in [
        (answer(500), true),
        (ServerAction::CloseRead, true),
        (throttled(), false),
    ] {
        let server = Server::start([act.clone()]).await;
        let causes = Arc::new(Mutex::new(Vec::new()));
        let retry = AwsRetry::new(quick()).observe({
            let causes = Arc::clone(&causes);
            move |event| {
                let operation = event.request().context::<AwsOperation>().unwrap();
                assert_eq!(operation.name, "SendMessage");
                assert!(event.to_string().starts_with("SendMessage "), "{event}");
                causes
                    .lock()
                    .unwrap()
                    .extend(event.refusal().map(|refusal| refusal.cause()));
            }
        });
        assert_eq!(send(&client(&server, retry)).await, !refused, "{act:?}");
        let expected: &[Cause] = if refused { &[Cause::Unsafe] } else { &[] };
        assert_eq!(*causes.lock().unwrap(), expected, "{act:?}");

        let server = Server::start([act.clone()]).await;
        assert!(
            send(&client(&server, AwsRetry::like_the_sdk(quick()))).await,
            "{act:?}"
        );
        let server = Server::start([act.clone()]).await;
        let known = AwsRetry::new(quick()).idempotent(|operation| operation == "SendMessage");
        assert!(send(&client(&server, known)).await, "{act:?}");
    }
}

#[tokio::test]
async fn a_post_without_a_server_is_retried_until_the_attempts_are_used_up() {
    let server = Server::start([]).await;
    let (_held, uri) = closed_port();
    let strategy = quick();
    let builder = config(&server).endpoint_url(uri);
    let config = builder.interceptor(AwsRetry::new(strategy.clone())).build();
    assert!(!send(&Client::from_conf(config)).await);
    assert_eq!(level(&strategy), 500 - 2 * 14);
}

#[tokio::test]
async fn the_clients_retry_config_has_no_effect() {
    use aws_sdk_sqs::config::retry::RetryConfig;

    for theirs in [
        RetryConfig::disabled(),
        RetryConfig::adaptive().with_max_attempts(9),
    ] {
        let server = Server::start(vec![answer(500); 10]).await;
        let strategy = quick();
        let config = config(&server).retry_config(theirs);
        let config = config.interceptor(AwsRetry::new(strategy.clone())).build();
        let call = Client::from_conf(config).list_queues().send().await;
        assert!(call.is_err());
        assert_eq!(server.seen().len(), 3);
        assert_eq!(level(&strategy), 472);
    }
}

#[tokio::test]
async fn the_strategy_of_a_call_replaces_the_clients() {
    let server = Server::start([answer(500), answer(500), answer(500)]).await;
    let (theirs, own) = (
        quick(),
        quick().to_builder().max_attempts(2).build().unwrap(),
    );
    let client = client(&server, AwsRetry::new(theirs));
    let call = client.list_queues().customize();
    let call = call.interceptor(AwsRetry::new(own.clone())).send().await;
    assert!(call.is_err());
    assert_eq!(server.seen().len(), 2);
    assert_eq!(level(&own), 486);
}

#[tokio::test]
async fn a_retry_that_would_miss_the_operation_timeout_is_refused_at_once_and_costs_nothing() {
    let server = Server::start([with(503, "retry-after", "600")]).await;
    let floor = steadfast::strategy::RetryAfter::Floor;
    let strategy = quick().to_builder().retry_after(floor).build().unwrap();
    let timeout = TimeoutConfig::builder().operation_timeout(Duration::from_secs(60));
    let config = config(&server).timeout_config(timeout.build());
    let causes = Arc::new(Mutex::new(Vec::new()));
    let retry = AwsRetry::new(strategy.clone()).observe({
        let causes = Arc::clone(&causes);
        move |event| {
            causes
                .lock()
                .unwrap()
                .push(event.refusal().map(|refusal| refusal.cause()))
        }
    });
    let client = Client::from_conf(config.interceptor(retry.clone()).build());
    let call = client.list_queues().send();
    let call = tokio::time::timeout(Duration::from_secs(30), call).await;
    assert!(call.unwrap().is_err());
    assert_eq!(*causes.lock().unwrap(), [Some(Cause::Deadline)]);
    assert_eq!(server.seen().len(), 1);
    assert_eq!(level(&strategy), 500);
    assert_eq!(retry.deviations(), 0);
}

#[tokio::test]
async fn a_dropped_call_leaves_the_bucket_right() {
    let server = Server::start([answer(500), ServerAction::Hang]).await;
    let strategy = quick();
    let client = client(&server, AwsRetry::new(strategy.clone()));
    let running = tokio::spawn(async move { client.list_queues().send().await.is_ok() });
    while server.seen().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    // What was paid for the second attempt stays paid.
    assert_eq!(level(&strategy), 486);
}

/// The SDK's own timer ends the attempt, so the budget must not pay for a retry.
#[tokio::test]
async fn an_attempt_that_the_operation_timeout_cuts_off_costs_nothing() {
    let server = Server::start([ServerAction::Hang]).await;
    let strategy = quick();
    let timeout = TimeoutConfig::builder().operation_timeout(Duration::from_secs(1));
    let config = config(&server).timeout_config(timeout.build());
    let causes = Arc::new(Mutex::new(Vec::new()));
    let retry = AwsRetry::new(strategy.clone()).observe({
        let causes = Arc::clone(&causes);
        move |event| {
            causes
                .lock()
                .unwrap()
                .push(event.refusal().map(|refusal| refusal.cause()))
        }
    });
    let config = config.interceptor(retry).interceptor(SlowToBegin).build();
    let client = Client::from_conf(config);
    assert!(client.list_queues().send().await.is_err());
    assert_eq!(level(&strategy), 500);
    assert_eq!(*causes.lock().unwrap(), [Some(Cause::Deadline)]);
}

/// Delays the request after the SDK started its timer.
#[derive(Debug)]
struct SlowToBegin;

impl Intercept for SlowToBegin {
    fn name(&self) -> &'static str {
        "SlowToBegin"
    }

    fn modify_before_serialization(
        &self,
        _: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    }
}

#[tokio::test]
async fn an_attempt_that_hangs_is_followed_by_another_only_if_that_is_safe() {
    for (idempotent, seen) in [(true, 2), (false, 1)] {
        let server = Server::start([ServerAction::Hang]).await;
        let timeout = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(1));
        let config = config(&server).timeout_config(timeout.build());
        let retry = AwsRetry::new(quick()).idempotent(move |_| idempotent);
        let client = Client::from_conf(config.interceptor(retry).build());
        assert_eq!(send(&client).await, idempotent);
        assert_eq!(server.seen().len(), seen);
    }
}

/// Without credentials nothing is sent and nothing is retried.
#[tokio::test]
async fn a_failure_before_sending_is_not_ambiguous() {
    let server = Server::start([]).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let retry = AwsRetry::new(quick()).observe({
        let told = Arc::clone(&told);
        move |event| {
            let cause = event.refusal().map(|refusal| refusal.cause());
            told.lock().unwrap().push((event.failure().stage, cause));
        }
    });
    let http = aws_smithy_http_client::Builder::new().build_http();
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(server.uri())
        .http_client(http)
        .interceptor(retry);
    assert!(!send(&Client::from_conf(config.build())).await);
    assert_eq!(
        *told.lock().unwrap(),
        [(steadfast::Stage::NotSent, Some(Cause::NotRetryable))]
    );
    assert_eq!(server.seen().len(), 0);
}

/// An invalid hint is ignored. One that is too long ends the request, or adds five
/// seconds at most (2.1).
#[tokio::test]
async fn hostile_hints_neither_stop_nor_hasten_a_retry() {
    let digits = "9".repeat(10_000);
    for (header, value, obeyed) in [
        ("retry-after", "-1", false),
        ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", false),
        ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT", true),
        ("retry-after", &*digits, true),
        ("x-amz-retry-after", "1e9", false),
        ("x-amz-retry-after", &*digits, true),
    ] {
        let server = Server::start([with(503, header, value)]).await;
        let strategy = quick()
            .to_builder()
            .retry_after(steadfast::strategy::RetryAfter::Floor);
        let causes = Arc::new(Mutex::new(Vec::new()));
        let retry = AwsRetry::new(strategy.build().unwrap()).observe({
            let causes = Arc::clone(&causes);
            move |event| {
                causes
                    .lock()
                    .unwrap()
                    .push(event.refusal().map(|refusal| refusal.cause()))
            }
        });
        let call = client(&server, retry).list_queues().send().await;
        assert_eq!(call.is_err(), obeyed, "{header}");
        let expected = obeyed.then_some(Cause::HintTooLong);
        assert_eq!(*causes.lock().unwrap(), [expected], "{header}");
    }
}

/// The client keeps its connections after an error, so a retry uses the same one.
#[tokio::test]
async fn the_clients_reconnect_mode_is_kept() {
    use aws_sdk_sqs::config::retry::{ReconnectMode, RetryConfig};

    for (mode, connections) in [
        (ReconnectMode::ReuseAllConnections, 1),
        (ReconnectMode::ReconnectOnTransientError, 2),
    ] {
        let server = Server::start([answer(503)]).await;
        let theirs = RetryConfig::standard().with_reconnect_mode(mode);
        let config = config(&server).retry_config(theirs);
        let config = config.interceptor(AwsRetry::new(quick())).build();
        Client::from_conf(config)
            .list_queues()
            .send()
            .await
            .unwrap();
        assert_eq!(server.connections(), connections, "{mode:?}");
    }
}

/// Once the service throttles, the rate is low: the next call is made, but is not
/// retried.
#[tokio::test]
async fn a_send_rate_that_follows_throttling_refuses_retries_at_first() {
    let server = Server::start(vec![throttled(); 100]).await;
    let causes = Arc::new(Mutex::new(Vec::new()));
    let no_wait = Backoff::constant(Duration::from_millis(1));
    let strategy = quick()
        .to_builder()
        .throttling_backoff(no_wait)
        .max_attempts(9);
    let retry = AwsRetry::adaptive(strategy.build().unwrap()).observe({
        let causes = Arc::clone(&causes);
        move |event| {
            causes
                .lock()
                .unwrap()
                .extend(event.refusal().map(|refusal| refusal.cause()))
        }
    });
    let client = client(&server, retry);
    assert!(client.list_queues().send().await.is_err());
    assert!(client.list_queues().send().await.is_err());
    let seen = server.seen().len();
    assert!(
        seen < 6,
        "{seen} attempts, where there was room for eighteen"
    );
    assert_eq!(
        causes.lock().unwrap().len(),
        2,
        "each call was refused once"
    );
}
