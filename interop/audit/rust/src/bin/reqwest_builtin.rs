//! reqwest with its own retries, for every method and failure.

use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let retry =
        reqwest::retry::for_host("127.0.0.1").classify_fn(|attempt| match attempt.status() {
            Some(status) if !status.is_server_error() => attempt.success(),
            _ => attempt.retryable(),
        });
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(2))
        .retry(retry)
        .build()?;
    let request = audit_clients::request(&client)?;
    client
        .execute(request)
        .await?
        .error_for_status()?
        .bytes()
        .await?;
    Ok(())
}
