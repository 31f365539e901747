//! reqwest with steadfast-http and its default.

use std::time::Duration;

use steadfast_http::HttpRetry;
use steadfast_http::reqwest::{SendWithRetry, watch_redirects};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let retry = HttpRetry::default()
        .timeout(Duration::from_secs(15))
        .attempt_timeout(Duration::from_secs(2));
    let client = watch_redirects(reqwest::Client::builder()).build()?;
    let request =
        reqwest::RequestBuilder::from_parts(client.clone(), audit_clients::request(&client)?);
    request
        .send_with_retry(&retry)
        .await?
        .error_for_status()?
        .bytes()
        .await?;
    Ok(())
}
