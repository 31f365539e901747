//! The SDK carries out the decisions, and what it does otherwise is noticed.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{
    AsyncSleep, BehaviorVersion, Builder, ConfigBag, Credentials, Intercept, Region,
    RuntimeComponents, Sleep,
};
use aws_sdk_sqs::error::BoxError;
use server::{Seen, Server, ServerAction, answer, with};
use steadfast::{Backoff, Standard};
use steadfast_http::aws::AwsRetry;

const DELAY: Duration = Duration::from_millis(200);

fn config(server: &Server) -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(server.uri())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}

fn strategy(attempts: u32) -> Standard {
    let backoff = Backoff::constant(DELAY);
    let builder = Standard::aws_2_1().to_builder().max_attempts(attempts);
    builder
        .backoff(backoff.clone())
        .throttling_backoff(backoff)
        .build()
        .unwrap()
}

fn header<'a>(seen: &'a Seen, name: &str) -> &'a str {
    let mut lines = seen.head.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.unwrap().1
}

#[tokio::test]
async fn the_service_learns_the_attempt_and_the_real_number_of_attempts() {
    for attempts in [1, 2, 4] {
        let server = Server::start(vec![answer(500); 4]).await;
        let retry = AwsRetry::new(strategy(attempts));
        let client = Client::from_conf(config(&server).interceptor(retry.clone()).build());
        assert!(client.list_queues().send().await.is_err());
        let seen = server.seen();
        let sent: Vec<_> = seen
            .iter()
            .map(|seen| header(seen, "amz-sdk-request"))
            .collect();
        let expected: Vec<_> = (1..=attempts)
            .map(|attempt| format!("attempt={attempt}; max={attempts}"))
            .collect();
        assert_eq!(sent, expected);
        // The service counts which retry mode clients use: `E` is the standard one.
        for seen in &seen {
            let agent = header(seen, "x-amz-user-agent");
            let metrics = agent.split(" m/").nth(1).unwrap().split(' ').next();
            let metrics: Vec<_> = metrics.unwrap().split(',').collect();
            assert!(metrics.contains(&"E") && !metrics.contains(&"F"), "{agent}");
        }
        assert_eq!(retry.deviations(), 0);
    }
}

/// Every kind of failure has its own path through the SDK's computation of a delay.
/// Each delay is checked in `AwsRetry::deviations`; here, that the whole time is right.
#[tokio::test]
async fn the_sdk_waits_as_long_as_decided_whatever_failed() {
    let (_held, closed) = server::closed_port();
    for (act, delay) in [
        (Some(answer(500)), DELAY),
        (
            Some(with(400, "x-amzn-errortype", "ThrottlingException")),
            DELAY,
        ),
        (Some(with(503, "x-amz-retry-after", "0")), Duration::ZERO),
        (Some(with(503, "x-amz-retry-after", "300")), DELAY * 3 / 2),
        (Some(with(503, "x-amz-retry-after", "9000")), DELAY * 2),
        (Some(ServerAction::CloseRead), DELAY),
        (Some(ServerAction::CloseAnswering), DELAY),
        (None, DELAY),
    ] {
        let server = Server::start(vec![act.clone().unwrap_or(answer(200)); 3]).await;
        let strategy = strategy(4).to_builder();
        let hints = steadfast::strategy::RetryAfter::Cap(DELAY * 2);
        let delays = Arc::new(Mutex::new(Vec::new()));
        let retry = AwsRetry::new(strategy.retry_after(hints).build().unwrap()).observe({
            let delays = Arc::clone(&delays);
            move |event| delays.lock().unwrap().extend(event.delay())
        });
        let mut config = config(&server).interceptor(retry.clone());
        if act.is_none() {
            config = config.endpoint_url(&closed);
        }
        let client = Client::from_conf(config.build());
        let began = Instant::now();
        let result = client.list_queues().send().await;
        assert_eq!(result.is_ok(), act.is_some(), "{act:?}: {result:?}");
        assert!(began.elapsed() >= delay * 3, "{act:?}");
        assert_eq!(*delays.lock().unwrap(), [delay; 3], "{act:?}");
        assert_eq!(retry.deviations(), 0, "{act:?}");
    }
}

/// A timer that changes the delay of retries. The SDK uses it for timeouts too.
#[derive(Debug)]
struct WrongTimer(fn(Duration) -> Duration);

impl AsyncSleep for WrongTimer {
    fn sleep(&self, duration: Duration) -> Sleep {
        let duration = match duration {
            DELAY => self.0(duration),
            other => other,
        };
        Sleep::new(tokio::time::sleep(duration))
    }
}

#[tokio::test]
async fn another_delay_is_noticed() {
    let late = |delay| delay + Duration::from_millis(2100);
    let wrong: [fn(Duration) -> Duration; 3] = [|_| Duration::ZERO, |delay| delay / 2, late];
    for wrong in wrong {
        let server = Server::start([answer(500)]).await;
        let retry = AwsRetry::new(strategy(3));
        let config = config(&server).sleep_impl(WrongTimer(wrong));
        let client = Client::from_conf(config.interceptor(retry.clone()).build());
        client.list_queues().send().await.unwrap();
        assert_eq!(server.seen().len(), 2);
        assert_eq!(retry.deviations(), 1, "{:?}", wrong(DELAY));
    }
}

/// Another interceptor, or another version of the SDK, that changes the decision.
#[derive(Debug)]
struct Meddling(RetryConfig);

impl Intercept for Meddling {
    fn name(&self) -> &'static str {
        "Meddling"
    }

    fn read_after_attempt(
        &self,
        _: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        cfg.interceptor_state().store_put(self.0.clone());
        Ok(())
    }
}

#[tokio::test]
async fn an_attempt_after_the_end_is_noticed_and_not_sent() {
    let server = Server::start([answer(500)]).await;
    let retry = AwsRetry::new(strategy(3));
    let config = config(&server).interceptor(retry.clone());
    let client = Client::from_conf(config.build());
    let eager = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    let call = client
        .send_message()
        .queue_url("http://q/1")
        .message_body("pay 5");
    let call = call.customize().interceptor(Meddling(eager));
    let error = call.send().await.unwrap_err();
    assert!(format!("{error:?}").contains("no retry was decided"));
    assert_eq!(server.seen().len(), 1);
    assert_eq!(retry.deviations(), 1);
}

#[tokio::test]
async fn a_retry_that_is_not_made_is_noticed() {
    let server = Server::start([answer(500)]).await;
    let retry = AwsRetry::new(strategy(3));
    let config = config(&server).interceptor(retry.clone());
    let client = Client::from_conf(config.build());
    let call = client.list_queues().customize();
    let call = call.interceptor(Meddling(RetryConfig::disabled()));
    assert!(call.send().await.is_err());
    assert_eq!(server.seen().len(), 1);
    assert_eq!(retry.deviations(), 1);
}
