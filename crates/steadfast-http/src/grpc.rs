//! Calls of tonic's clients.
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
//!         // The server learns how long its answer is of use.
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
//! To retry every call of a client, put an
//! [`HttpRetryLayer`](crate::tower::HttpRetryLayer) around its channel, with
//! [`HttpClassifier::grpc`](crate::HttpClassifier::grpc).

use steadfast::Failure;
use steadfast::classify::Classifier;
use tonic::Status;

use crate::classify::{HttpClassifier, HttpOutcome, Reading};
use crate::clock;

/// Reads the errors of tonic's calls: the status, the delay that a server asks
/// for (`grpc-retry-pushback-ms`, `google.rpc.RetryInfo`), and, of a call that
/// got no answer, whether it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusClassifier;

impl Classifier<Status> for StatusClassifier {
    fn classify(&self, status: &Status) -> Failure {
        match HttpClassifier::default().read(&HttpOutcome::error(status, clock::now())) {
            Reading::Failed(failure) => failure,
            Reading::Succeeded => Failure::inconclusive(&steadfast::reason::UNKNOWN),
        }
    }
}
