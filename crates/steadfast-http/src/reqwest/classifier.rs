//! A classifier for calls of your own.

use super::library::Error;
use http::HeaderMap;
use steadfast::Failure;
use steadfast::classify::Classifier;
use steadfast::reason::UNKNOWN;

use crate::classify::{HttpClassifier, HttpOutcome};
use crate::clock;

/// Classifies errors of reqwest for [`steadfast::retry`], also those that
/// `error_for_status` makes of a response.
///
/// ```no_run
/// use std::time::Duration;
/// use steadfast::{Standard, retry};
/// use steadfast_http::reqwest::ErrorClassifier;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (strategy, client) = (Standard::guidance(), reqwest::Client::new());
/// let text = retry(&strategy)
///     .operation("fetch")
///     .idempotent(true)
///     .timeout(Duration::from_secs(10))
///     .classify(ErrorClassifier)
///     .run(async |_attempt| {
///         let response = client.get("http://example.com/").send().await?;
///         response.error_for_status()?.text().await
///     })
///     .await?;
/// # let _ = text;
/// # Ok(())
/// # }
/// ```
///
/// An error has no headers, so a `Retry-After` is not seen, and redirects are not known.
/// [`send_with_retry`](super::SendWithRetry::send_with_retry) knows more.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorClassifier;

impl Classifier<Error> for ErrorClassifier {
    fn classify(&self, error: &Error) -> Failure {
        let headers = HeaderMap::new();
        let outcome = match error.status() {
            Some(status) => HttpOutcome::response(status, &headers, clock::now()),
            None => HttpOutcome::error(error, clock::now()),
        };
        let classified = HttpClassifier::default().classify(&outcome);
        classified
            .err()
            .unwrap_or_else(|| Failure::inconclusive(&UNKNOWN))
    }
}
