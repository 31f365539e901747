//! A generated client of the AWS SDK.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use steadfast::Standard;
use steadfast_http::aws::AwsRetry;
use tokio::runtime::Runtime;

use super::Contender;
use crate::contender;
use crate::server::Server;

pub(crate) fn contenders<'a>(runtime: &'a Runtime, server: &Server) -> Vec<Contender<'a>> {
    let uri = server.http_uri();
    let config = || {
        Builder::new()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "bench"))
            .endpoint_url(&uri)
            .http_client(aws_smithy_http_client::Builder::new().build_http())
    };
    let bare = Client::from_conf(config().retry_config(RetryConfig::disabled()).build());
    let steadfast = AwsRetry::new(Standard::aws_2_1());
    let steadfast = Client::from_conf(config().interceptor(steadfast).build());
    let standard = Client::from_conf(config().retry_config(RetryConfig::standard()).build());
    let adaptive = Client::from_conf(config().retry_config(RetryConfig::adaptive()).build());
    vec![
        contender("bare: retries disabled", runtime, move || {
            list(bare.clone())
        }),
        contender("steadfast, AwsRetry", runtime, move || {
            list(steadfast.clone())
        })
        .allocates_at_most(4.0),
        contender("the SDK's own, standard", runtime, move || {
            list(standard.clone())
        }),
        contender("the SDK's own, adaptive", runtime, move || {
            list(adaptive.clone())
        }),
    ]
}

async fn list(client: Client) {
    client.list_queues().send().await.expect("it is answered");
}
