//! Operations of four services after a 500, which leaves open whether the request was
//! applied: they are sent again exactly where that is safe.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may panic")]

#[path = "../../../crates/steadfast-http/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod server;

use std::time::Duration;

use server::{Server, answer};
use steadfast::{Backoff, Standard};
use steadfast_http::aws::AwsRetry;

/// A client of this SDK with this `AwsRetry`.
macro_rules! client {
    ($sdk:ident, $server:expr, $retry:expr $(, $setting:ident)?) => {{
        use $sdk::config::{BehaviorVersion, Builder, Credentials, Region};
        let config = Builder::new()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .endpoint_url($server.uri())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            $(.$setting(true))?
            .interceptor($retry);
        $sdk::Client::from_conf(config.build())
    }};
}

/// Makes each call against its own server, and compares the number of requests
/// that the server saw.
macro_rules! requests {
    ($client:ident: $($call:expr => $expected:expr;)+) => {
        $({
            let server = Server::start([answer(500)]).await;
            let $client = $client(&server, retry());
            let _ = $call.send().await;
            assert_eq!(server.seen().len(), $expected, "{}", stringify!($call));
        })+
    };
}

fn retry() -> AwsRetry {
    let backoff = Backoff::constant(Duration::from_millis(1));
    let strategy = Standard::aws_2_1().to_builder().backoff(backoff);
    AwsRetry::new(strategy.build().unwrap())
}

fn sqs(server: &Server, retry: AwsRetry) -> aws_sdk_sqs::Client {
    client!(aws_sdk_sqs, server, retry)
}

fn sfn(server: &Server, retry: AwsRetry) -> aws_sdk_sfn::Client {
    client!(aws_sdk_sfn, server, retry)
}

fn s3(server: &Server, retry: AwsRetry) -> aws_sdk_s3::Client {
    client!(aws_sdk_s3, server, retry, force_path_style)
}

fn dynamodb(server: &Server, retry: AwsRetry) -> aws_sdk_dynamodb::Client {
    client!(aws_sdk_dynamodb, server, retry)
}

#[tokio::test]
async fn queues() {
    let url = "http://q/1";
    requests! { sqs:
        sqs.list_queues() => 2;
        sqs.create_queue().queue_name("q") => 2;
        sqs.set_queue_attributes().queue_url(url) => 2;
        sqs.tag_queue().queue_url(url).tags("a", "b") => 2;
        sqs.receive_message().queue_url(url) => 2;
        sqs.delete_message().queue_url(url).receipt_handle("r") => 2;
        sqs.change_message_visibility().queue_url(url).receipt_handle("r").visibility_timeout(1) => 2;
        sqs.send_message().queue_url(url).message_body("x") => 1;
        sqs.send_message_batch().queue_url(url) => 1;
        sqs.purge_queue().queue_url(url) => 1;
    }
}

#[tokio::test]
async fn workflows() {
    requests! { sfn:
        sfn.describe_execution().execution_arn("a") => 2;
        sfn.list_activities() => 2;
        // A task is handed out once.
        sfn.get_activity_task().activity_arn("a") => 1;
        sfn.start_execution().state_machine_arn("a") => 1;
        sfn.send_task_success().task_token("t").output("{}") => 1;
    }
}

#[tokio::test]
async fn objects() {
    let body = || aws_sdk_s3::primitives::ByteStream::from_static(b"x");
    requests! { s3:
        s3.get_object().bucket("b").key("k") => 2;
        s3.head_object().bucket("b").key("k") => 2;
        s3.put_object().bucket("b").key("k").body(body()) => 2;
        s3.upload_part().bucket("b").key("k").upload_id("u").part_number(1).body(body()) => 2;
        s3.delete_object().bucket("b").key("k") => 2;
        s3.create_multipart_upload().bucket("b").key("k") => 1;
        // The second one would fail because of the first.
        s3.put_object().bucket("b").key("k").body(body()).if_none_match("*") => 1;
        s3.put_object().bucket("b").key("k").body(body()).if_match("e") => 1;
        s3.delete_object().bucket("b").key("k").if_match("e") => 1;
        s3.get_object().bucket("b").key("k").if_none_match("e") => 2;
    }
}

#[tokio::test]
async fn items() {
    use aws_sdk_dynamodb::types::AttributeValue;

    let id = || AttributeValue::S("1".to_owned());
    requests! { dynamodb:
        dynamodb.get_item().table_name("t").key("id", id()) => 2;
        dynamodb.query().table_name("t") => 2;
        dynamodb.transact_get_items().set_transact_items(Some(Vec::new())) => 2;
        dynamodb.put_item().table_name("t").item("id", id()) => 2;
        dynamodb.delete_item().table_name("t").key("id", id()) => 2;
        dynamodb.batch_write_item().request_items("t", Vec::new()) => 2;
        dynamodb.update_item().table_name("t").key("id", id()) => 1;
        dynamodb.execute_statement().statement("s") => 1;
        // The second one would fail because of the first.
        dynamodb.put_item().table_name("t").item("id", id()).condition_expression("attribute_not_exists(id)") => 1;
        dynamodb.delete_item().table_name("t").key("id", id()).condition_expression("attribute_exists(id)") => 1;
    }
}

/// The service recognizes a repeated request by the token that the SDK fills in.
#[tokio::test]
async fn an_idempotency_token_makes_an_operation_idempotent() {
    let server = Server::start([answer(500)]).await;
    let client = dynamodb(&server, retry());
    let call = client.transact_write_items();
    call.set_transact_items(Some(Vec::new()))
        .send()
        .await
        .unwrap();
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies.len(), 2);
    assert!(String::from_utf8_lossy(&bodies[0]).contains("ClientRequestToken"));
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn users_add_rows_and_the_last_one_counts() {
    let rows: [(fn(AwsRetry) -> AwsRetry, usize, usize); 6] = [
        (|retry| retry, 1, 2),
        (|retry| retry.add_idempotent("SQS", &["SendMessage"]), 2, 2),
        // Of another service.
        (|retry| retry.add_idempotent("SNS", &["SendMessage"]), 1, 2),
        (
            |retry| retry.add_not_idempotent("SQS", &["SendMessage", "ListQueues"]),
            1,
            1,
        ),
        (
            |retry| {
                let retry = retry.add_not_idempotent("SQS", &["SendMessage", "ListQueues"]);
                retry.add_idempotent("SQS", &["SendMessage"])
            },
            2,
            1,
        ),
        // A rule of their own decides about the rest.
        (
            |retry| {
                let retry = retry.idempotent(|_| false);
                retry.add_idempotent("SQS", &["SendMessage"])
            },
            2,
            1,
        ),
    ];
    for (number, (change, sends, lists)) in rows.into_iter().enumerate() {
        let server = Server::start([answer(500)]).await;
        let client = sqs(&server, change(retry()));
        let call = client.send_message().queue_url("http://q/1");
        let _ = call.message_body("x").send().await;
        assert_eq!(server.seen().len(), sends, "row {number}");
        let server = Server::start([answer(500)]).await;
        let _ = sqs(&server, change(retry())).list_queues().send().await;
        assert_eq!(server.seen().len(), lists, "row {number}");
    }
}
