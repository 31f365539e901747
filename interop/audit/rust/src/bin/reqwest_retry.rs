//! reqwest with reqwest-retry and its usual strategy.

use std::time::Duration;

use reqwest_middleware::ClientBuilder;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let inner = reqwest::Client::builder()
        .timeout(Duration::from_secs(2))
        .build()?;
    let request = audit_clients::request(&inner)?;
    let policy = ExponentialBackoff::builder().build_with_max_retries(3);
    let retry = RetryTransientMiddleware::new_with_policy(policy);
    let client = ClientBuilder::new(inner).with(retry).build();
    client
        .execute(request)
        .await?
        .error_for_status()?
        .bytes()
        .await?;
    Ok(())
}
