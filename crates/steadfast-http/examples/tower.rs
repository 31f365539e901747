//! Retries a GET and a POST with hyper under the tower layer, and prints the decisions.
//!
//! Run with `cargo run -p steadfast-http --example tower --features tower`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use steadfast::{Backoff, Jitter, Standard};
use steadfast_http::tower::HttpRetryLayer;
use steadfast_http::{AttemptCount, HttpRetry, ResponseReport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // One strategy for all clients of a peer: they share its budget.
    let strategy = Standard::guidance()
        .to_builder()
        .backoff(
            Backoff::exponential(Duration::from_millis(20), Duration::from_secs(1))?
                .with_jitter(Jitter::Full),
        )
        .build()?;
    let retry = HttpRetry::new(strategy.clone())?
        .timeout(Duration::from_secs(5))
        .observe(|event| println!("  {event}"));
    let hyper = Client::builder(TokioExecutor::new()).build_http();
    let client = HttpRetryLayer::new(retry).layer(hyper);

    println!("a GET that gets two 503 and then a 200:");
    let uri = serve(&[503, 503, 200]).await?;
    let request = Request::get(uri).body(Full::<Bytes>::default())?;
    let response = client.clone().oneshot(request).await?;
    let attempts = response.extensions().get::<AttemptCount>();
    println!("{} {attempts:?}\n", response.status());

    println!("a POST that gets a 503 is not sent again:");
    let uri = serve(&[503, 200]).await?;
    let request = Request::post(uri).body(Full::from("pay 5"))?;
    let response = client.oneshot(request).await?;
    let report = response.extensions().get::<ResponseReport>();
    let report = report.ok_or("a failure has a report")?;
    println!(
        "{}, ambiguous: {}",
        response.status(),
        report.verdict().is_ambiguous()
    );
    Ok(())
}

/// Serves these statuses, one for each connection.
async fn serve(statuses: &'static [u16]) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let uri = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move {
        for status in statuses {
            let (mut stream, _) = listener.accept().await?;
            let answer =
                format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _request = stream.read(&mut [0; 4096]).await?;
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    Ok(uri)
}
