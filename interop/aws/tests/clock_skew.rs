//! A client whose clock differs from the service's. The SDK measures the difference and
//! signs the next attempt with the right time; `AwsRetry` lets it.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use server::{Server, ServerAction};
use steadfast::{Backoff, Standard};
use steadfast_http::aws::AwsRetry;

fn rejected(code: &str, date: Option<&str>) -> ServerAction {
    let mut headers = vec![("x-amzn-errortype", code.to_owned())];
    headers.extend(date.map(|date| ("date", date.to_owned())));
    ServerAction::Answer(403, headers)
}

fn client(server: &Server, retry: AwsRetry) -> Client {
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(server.uri())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .interceptor(retry);
    Client::from_conf(config.build())
}

fn retry() -> AwsRetry {
    let backoff = Backoff::constant(Duration::from_millis(1));
    let strategy = Standard::aws_2_1().to_builder().backoff(backoff);
    AwsRetry::new(strategy.build().unwrap())
}

async fn send(client: &Client) -> bool {
    let call = client.send_message().queue_url("http://q/1");
    call.message_body("pay 5").send().await.is_ok()
}

/// Nothing was applied: the service rejected the signature. So even a message is sent
/// again.
#[tokio::test]
async fn a_rejected_signature_is_replaced_by_one_with_the_services_time() {
    let date = "Wed, 01 Jan 2020 00:00:00 GMT";
    for code in [
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "RequestTimeTooSkewed",
        "AuthFailure",
    ] {
        let server = Server::start([rejected(code, Some(date))]).await;
        let told = Arc::new(Mutex::new(Vec::new()));
        let retry = retry().observe({
            let told = Arc::clone(&told);
            move |event| {
                let certain = !event.failure().stage.may_have_been_applied();
                let reason = event.failure().reason.name();
                told.lock().unwrap().push((reason, certain));
            }
        });
        assert!(send(&client(&server, retry.clone())).await, "{code}");
        assert_eq!(*told.lock().unwrap(), [("AWS_CLOCK_SKEW", true)], "{code}");
        let dates: Vec<bool> = server
            .seen()
            .iter()
            .map(|seen| seen.head.contains("x-amz-date: 20200101T0000"))
            .collect();
        assert_eq!(dates, [false, true], "{code}");
        assert_eq!(retry.deviations(), 0);
    }
}

#[tokio::test]
async fn a_rejected_signature_is_final_if_the_clocks_agree_or_cannot_be_compared() {
    for code in ["InvalidSignatureException", "AccessDeniedException"] {
        let server = Server::start([rejected(code, None)]).await;
        assert!(!send(&client(&server, retry())).await, "{code}");
        assert_eq!(server.seen().len(), 1, "{code}");
    }
}

/// The retry is paid for like another, and the attempts are bounded.
#[tokio::test]
async fn a_clock_that_cannot_be_corrected_does_not_make_the_client_spin() {
    let date = "Wed, 01 Jan 2020 00:00:00 GMT";
    let act = rejected("RequestTimeTooSkewed", Some(date));
    let server = Server::start(vec![act; 9]).await;
    assert!(!send(&client(&server, retry())).await);
    assert_eq!(server.seen().len(), 3);
}
