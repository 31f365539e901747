//! Loops that poll a failing service. The SDK alone slows them down; so does `AwsRetry`.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_smithy_types::retry::RetrySpec;
use server::{Server, ServerAction, answer, with};
use steadfast::{Backoff, Budget, Standard};
use steadfast_http::aws::AwsRetry;

fn config(server: &Server) -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(server.uri())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}

fn throttled() -> ServerAction {
    with(400, "x-amzn-errortype", "ThrottlingException")
}

/// A strategy of constant delays.
fn strategy(delay: Duration, tokens: u32) -> Standard {
    let backoff = Backoff::constant(delay);
    Standard::aws_2_1()
        .to_builder()
        .backoff(backoff.clone())
        .throttling_backoff(backoff)
        .budget(Budget::builder().initial(tokens).build().unwrap())
        .build()
        .unwrap()
}

async fn receives(client: &Client) -> bool {
    let call = client.receive_message().queue_url("http://q/1");
    call.send().await.is_ok()
}

const MS: Duration = Duration::from_millis(1);

#[tokio::test]
async fn a_poll_on_an_empty_bucket_fails_after_the_delay_of_the_retry() {
    for act in [throttled(), answer(500), ServerAction::CloseRead] {
        let server = Server::start([act.clone()]).await;
        let retry = AwsRetry::new(strategy(300 * MS, 0));
        let config = config(&server).interceptor(retry.clone());
        let began = Instant::now();
        assert!(!receives(&Client::from_conf(config.build())).await);
        assert!(
            began.elapsed() >= 300 * MS,
            "{act:?}: {:?}",
            began.elapsed()
        );
        assert_eq!(server.seen().len(), 1);
        assert_eq!(retry.deviations(), 0, "{act:?}");
    }
}

/// The SDK marks long polls for its behaviour 2.1 only.
#[tokio::test]
async fn the_clients_own_configuration_does_not_matter() {
    for theirs in [
        RetryConfig::disabled(),
        RetryConfig::adaptive(),
        RetryConfig::standard().with_retry_spec(RetrySpec::v2_0()),
        RetryConfig::standard().with_retry_spec(RetrySpec::v2_1()),
    ] {
        let server = Server::start([throttled()]).await;
        let retry = AwsRetry::new(strategy(300 * MS, 0));
        let config = config(&server).retry_config(theirs.clone());
        let client = Client::from_conf(config.interceptor(retry.clone()).build());
        let began = Instant::now();
        assert!(!receives(&client).await);
        assert!(began.elapsed() >= 300 * MS, "{theirs:?}");
        assert_eq!(retry.deviations(), 0, "{theirs:?}");
    }
}

#[tokio::test]
async fn another_operation_on_an_empty_bucket_fails_at_once() {
    let server = Server::start([throttled()]).await;
    let retry = AwsRetry::new(strategy(Duration::from_secs(60), 0));
    let config = config(&server).interceptor(retry.clone());
    let client = Client::from_conf(config.build());
    let call = client.list_queues().send();
    let call = tokio::time::timeout(Duration::from_secs(20), call).await;
    assert!(call.unwrap().is_err());
    assert_eq!(retry.deviations(), 0);
}

/// What fails for good, and what was tried often enough, fails at once.
#[tokio::test]
async fn a_poll_that_waiting_cannot_help_fails_at_once() {
    let minute = Duration::from_secs(60);
    let once = strategy(minute, 500).to_builder().max_attempts(1);
    for (act, strategy) in [
        (answer(400), strategy(minute, 0)),
        (throttled(), once.build().unwrap()),
    ] {
        let server = Server::start([act]).await;
        let config = config(&server).interceptor(AwsRetry::new(strategy));
        let client = Client::from_conf(config.build());
        let call = tokio::time::timeout(Duration::from_secs(20), receives(&client));
        assert!(!call.await.unwrap());
    }
}

#[tokio::test]
async fn a_delayed_refusal_ends_at_the_deadline() {
    let server = Server::start([throttled()]).await;
    let timeout = TimeoutConfig::builder().operation_timeout(500 * MS);
    let config = config(&server).timeout_config(timeout.build());
    let retry = AwsRetry::new(strategy(Duration::from_secs(60), 0));
    let client = Client::from_conf(config.interceptor(retry).build());
    let began = Instant::now();
    assert!(!receives(&client).await);
    assert!((400 * MS..20_000 * MS).contains(&began.elapsed()));
    assert_eq!(server.seen().len(), 1);
}

/// A task that was handed out is lost if its response is. So the poll is not repeated,
/// and its loop has to be slowed down all the same.
#[tokio::test]
async fn a_poll_that_must_not_be_repeated_fails_after_a_second() {
    use aws_sdk_sfn::config::{BehaviorVersion, Builder, Credentials, Region};

    for act in [answer(500), ServerAction::CloseRead] {
        let server = Server::start([act.clone()]).await;
        let retry = AwsRetry::new(strategy(MS, 500));
        let config = Builder::new()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .endpoint_url(server.uri())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .interceptor(retry.clone());
        let client = aws_sdk_sfn::Client::from_conf(config.build());
        let began = Instant::now();
        let call = client.get_activity_task().activity_arn("a");
        assert!(call.send().await.is_err());
        assert!(began.elapsed() >= Duration::from_secs(1), "{act:?}");
        assert_eq!(server.seen().len(), 1, "{act:?}");
        assert_eq!(retry.deviations(), 0, "{act:?}");
    }
}

/// Returns the requests of a loop that polls for four seconds.
async fn poll_for_four_seconds(act: ServerAction, config: impl Fn(Builder) -> Builder) -> usize {
    let server = Server::start(vec![act; 5000]).await;
    let client = Client::from_conf(config(self::config(&server)).build());
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        assert!(!receives(&client).await);
    }
    server.seen().len()
}

/// The measurement behind the tests above: the SDK alone, and with `AwsRetry`.
#[tokio::test]
async fn a_loop_of_polls_makes_about_as_many_requests_as_under_the_sdk_alone() {
    let nothing = Budget::builder().initial(0).build().unwrap();
    let empty = Standard::aws_2_1().to_builder().budget(nothing);
    let empty = AwsRetry::new(empty.build().unwrap());
    let full = AwsRetry::new(Standard::aws_2_0());
    let (throttled_on_empty, failing, alone) = tokio::join!(
        poll_for_four_seconds(throttled(), |config| config.interceptor(empty.clone())),
        poll_for_four_seconds(answer(500), |config| config.interceptor(full.clone())),
        poll_for_four_seconds(answer(500), |config| {
            config.retry_config(RetryConfig::standard())
        }),
    );
    println!("empty and throttled {throttled_on_empty}, 500s {failing}, 500s alone {alone}");
    // On average 8, 9 and 9.
    for requests in [throttled_on_empty, failing, alone] {
        assert!(requests < 60, "{requests}");
    }
}
