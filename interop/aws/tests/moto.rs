//! The strategy in charge of a generated client, against `moto`, an
//! implementation of AWS services that nobody here wrote.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use steadfast::{Backoff, Standard};
use steadfast_http::aws::AwsRetry;
use tokio::process::Command;

#[tokio::test]
#[ignore = "needs moto_server on the PATH: pip install -r requirements.txt"]
async fn a_queue_is_made_as_soon_as_there_is_a_server_and_no_message_is_lost_or_doubled() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let mut server = Command::new("moto_server")
        .args(["-H", "127.0.0.1", "-p", &port])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("moto_server starts");

    // The server takes a second or more to listen. Nothing was sent until then,
    // so that even a call that is not idempotent is tried again and again.
    let strategy = Standard::aws_2_1()
        .to_builder()
        .backoff(Backoff::constant(Duration::from_millis(100)))
        .max_attempts(600)
        .budget(
            steadfast::Budget::builder()
                .capacity(10_000)
                .build()
                .unwrap(),
        )
        .build()
        .unwrap();
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(format!("http://127.0.0.1:{port}"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .interceptor(AwsRetry::new(strategy.clone()));
    let client = Client::from_conf(config.build());
    let queue = client.create_queue().queue_name("q").send().await.unwrap();
    let url = queue.queue_url().unwrap().to_owned();
    let level = || strategy.budget().level(Instant::now());
    let waited = level();
    assert!(waited < 10_000, "it was not there at first");

    let mut running = Vec::new();
    for body in 0..20 {
        let call = client.send_message().queue_url(&url);
        let call = call.message_body(body.to_string());
        running.push(tokio::spawn(async move { call.send().await.is_ok() }));
    }
    for call in running {
        assert!(call.await.unwrap());
    }
    let count = QueueAttributeName::ApproximateNumberOfMessages;
    let call = client.get_queue_attributes().queue_url(&url);
    let answer = call.attribute_names(count.clone()).send().await.unwrap();
    assert_eq!(answer.attributes().unwrap()[&count], "20");
    // Twenty-one successes at the first try, one token each.
    assert_eq!(level(), waited + 21);

    // A queue that is not there is the caller's mistake, and not tried again.
    let missing = client.get_queue_url().queue_name("none").send().await;
    assert!(
        missing
            .unwrap_err()
            .into_service_error()
            .is_queue_does_not_exist()
    );
    assert_eq!(level(), waited + 21);
    server.kill().await.unwrap();
}
