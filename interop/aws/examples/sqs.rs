//! A client of the AWS SDK with the strategy in charge.
//!
//! Run with `cargo run --example sqs` in this folder.

use std::error::Error;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use steadfast::Standard;
use steadfast_http::aws::AwsRetry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let strategy = Standard::aws_2_1(); // one for all clients of a service
    let retry = AwsRetry::new(strategy.clone()).observe(|event| println!("  {event}"));
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "example"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .interceptor(retry);

    println!("a read that meets two 500 and then a 200:");
    let config = config.endpoint_url(serve(&[500, 500, 200]).await?);
    let client = Client::from_conf(config.clone().build());
    client.list_queues().send().await?;

    println!("a message that meets a 500 is not sent again:");
    let config = config.endpoint_url(serve(&[500, 200]).await?);
    let client = Client::from_conf(config.build());
    let call = client
        .send_message()
        .queue_url("http://q/1")
        .message_body("pay 5");
    println!("{}", call.send().await.is_err());
    Ok(())
}

/// A server that answers so, one request after the other.
async fn serve(statuses: &'static [u16]) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let uri = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move {
        for status in statuses {
            let (mut stream, _) = listener.accept().await?;
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
            );
            let _request = stream.read(&mut [0; 8192]).await?;
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    Ok(uri)
}
