//! Retries a GET and a POST with reqwest, and prints the decisions.
//!
//! Run with `cargo run -p steadfast-http --example reqwest --features reqwest`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use steadfast_http::HttpRetry;
use steadfast_http::reqwest::{SendWithRetry, watch_redirects};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // One for the whole client: its requests share a budget.
    let retry = HttpRetry::aws_2_1()
        .timeout(Duration::from_secs(5))
        .observe(|event| println!("  {event}"));
    let client = watch_redirects(reqwest::Client::builder()).build()?;

    println!("a GET that gets a 503 and then a 200:");
    let (url, _server) = serve(&[503, 200]).await?;
    let response = client.get(url).send_with_retry(&retry).await?;
    println!("{}\n", response.status());

    println!("a POST without a server is retried, because nothing was sent:");
    let (url, server) = serve(&[]).await?;
    server.await??;
    let request = client.post(url).body("pay 5");
    match request.send_with_retry(&retry).await {
        Ok(response) => println!("{}", response.status()),
        Err(error) => println!("{error:#}"),
    }
    Ok(())
}

type Server = tokio::task::JoinHandle<std::io::Result<()>>;

/// Serves these statuses, one for each connection, and stops.
async fn serve(statuses: &'static [u16]) -> std::io::Result<(String, Server)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let server = tokio::spawn(async move {
        for status in statuses {
            let (mut stream, _) = listener.accept().await?;
            let answer =
                format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _request = stream.read(&mut [0; 4096]).await?;
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok(())
    });
    Ok((url, server))
}
