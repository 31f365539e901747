//! Retries for single calls of tonic's clients.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::{Standard, retry};
//! use steadfast_http::grpc::StatusClassifier;
//! use tonic::{Request, Response, Status};
//!
//! # #[derive(Clone)] struct GreeterClient;
//! # impl GreeterClient {
//! #     async fn greet(&mut self, name: Request<String>) -> Result<Response<String>, Status> {
//! #         Ok(Response::new(format!("hello {}", name.into_inner())))
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), steadfast::Error<Status>> {
//! # let client = GreeterClient;
//! let strategy = Standard::guidance(); // one for all calls to a server
//!
//! let greeting = retry(&strategy)
//!     .operation("Greet")
//!     .idempotent(true)
//!     .timeout(Duration::from_secs(10))
//!     .classify(StatusClassifier)
//!     .run(|attempt| {
//!         let (mut client, mut request) = (client.clone(), Request::new("ada".to_owned()));
//!         // Tells the server how much time is left.
//!         if let Some(left) = attempt.remaining() {
//!             request.set_timeout(left);
//!         }
//!         async move { client.greet(request).await }
//!     })
//!     .await?;
//! # assert_eq!(greeting.into_inner(), "hello ada");
//! # Ok(())
//! # }
//! ```
//!
//! To retry every call of a client, wrap its channel in a `RetryChannel` (feature `tower`).

#[cfg(feature = "tower")]
mod channel;

#[cfg(feature = "tower")]
pub use channel::{RetryChannel, TonicBodies, retry_channel};
use steadfast::Failure;
use steadfast::classify::Classifier;
use tonic::Status;

use crate::classify::{HttpClassifier, HttpOutcome};
use crate::clock;

/// Classifies the errors of tonic's calls: by their status, by the delay that a
/// server asks for (`grpc-retry-pushback-ms`, `google.rpc.RetryInfo`), and by
/// whether anything was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusClassifier;

impl Classifier<Status> for StatusClassifier {
    fn classify(&self, status: &Status) -> Failure {
        let outcome = HttpOutcome::error(status, clock::now()).without_redirects();
        let classified = HttpClassifier::default().classify(&outcome);
        classified
            .err()
            .unwrap_or_else(|| Failure::inconclusive(&steadfast::reason::UNKNOWN))
    }
}
