//! `AwsRetry` against `moto`, an independent implementation of AWS services.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use server::{Server, ServerAction, with};
use steadfast::budget::Refund;
use steadfast::{Backoff, Budget, Standard};
use steadfast_http::aws::AwsRetry;
use tokio::process::{Child, Command};

const CAPACITY: u32 = 10_000;

/// Many attempts, 100 ms apart, from a budget that is half full, so that costs and
/// refunds are both visible.
fn patient() -> Standard {
    let budget = Budget::builder()
        .capacity(CAPACITY)
        .initial(CAPACITY / 2)
        .refund(Refund::LastCostOr(1));
    let builder = Standard::aws_2_1().to_builder();
    builder
        .backoff(Backoff::constant(Duration::from_millis(100)))
        .throttling_backoff(Backoff::constant(Duration::from_millis(100)))
        .max_attempts(600)
        .budget(budget.build().unwrap())
        .build()
        .unwrap()
}

/// Starts the server without waiting for it.
async fn moto() -> (Child, SocketAddr) {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let server = Command::new("moto_server")
        .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("moto_server starts");
    (server, address)
}

fn client(uri: String, strategy: &Standard) -> Client {
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(uri)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .interceptor(AwsRetry::new(strategy.clone()));
    Client::from_conf(config.build())
}

fn level(strategy: &Standard) -> u32 {
    strategy.budget().level()
}

async fn send_twenty(client: &Client, queue: &str) {
    let mut running = Vec::new();
    for body in 0..20 {
        let call = client.send_message().queue_url(queue);
        let call = call.message_body(body.to_string());
        running.push(tokio::spawn(async move { call.send().await.is_ok() }));
    }
    for call in running {
        assert!(call.await.unwrap());
    }
}

async fn count(client: &Client, queue: &str) -> String {
    let count = QueueAttributeName::ApproximateNumberOfMessages;
    let call = client.get_queue_attributes().queue_url(queue);
    let answer = call.attribute_names(count.clone()).send().await.unwrap();
    answer.attributes().unwrap()[&count].clone()
}

#[tokio::test]
#[ignore = "needs moto_server on the PATH: pip install -r requirements.txt"]
async fn a_queue_is_made_as_soon_as_there_is_a_server_and_no_message_is_lost_or_doubled() {
    let (mut server, address) = moto().await;
    // The server takes a while to listen. Nothing was sent until then, so that
    // even a call that is not idempotent is tried again and again.
    let strategy = patient();
    let direct = client(format!("http://{address}"), &strategy);
    let queue = direct.create_queue().queue_name("q").send().await.unwrap();
    let queue = queue.queue_url().unwrap().to_owned();
    let waited = level(&strategy);
    assert!(waited < CAPACITY / 2, "it was not there at first");

    send_twenty(&direct, &queue).await;
    assert_eq!(count(&direct, &queue).await, "20");
    // Twenty-one successes at the first try, one token each.
    assert_eq!(level(&strategy), waited + 21);

    // A queue that is not there is the caller's mistake, and not tried again.
    let missing = direct.get_queue_url().queue_name("none").send().await;
    let missing = missing.unwrap_err().into_service_error();
    assert!(missing.is_queue_does_not_exist());
    assert_eq!(level(&strategy), waited + 21);

    // In between, something that throttles each request once.
    let throttled = with(400, "x-amzn-errortype", "ThrottlingException");
    let each = ServerAction::OnceEach(
        Box::new(throttled),
        Box::new(ServerAction::Forward(address)),
    );
    let between = Server::start([each]).await;
    let strategy = patient();
    let through = client(between.uri(), &strategy);
    send_twenty(&through, &queue).await;
    assert_eq!(between.seen().len(), 40);
    assert_eq!(level(&strategy), CAPACITY / 2, "each got back what it paid");
    assert_eq!(count(&direct, &queue).await, "40");
    server.kill().await.unwrap();
}
