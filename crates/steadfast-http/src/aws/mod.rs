//! The strategy in clients of the AWS SDK for Rust.
//!
//! ```text
//! let strategy = Standard::aws_2_1();              // one for all clients of a service
//! let config = aws_sdk_sqs::config::Builder::from(&sdk_config)
//!     .interceptor(AwsRetry::new(strategy))
//!     .build();
//! let client = aws_sdk_sqs::Client::from_conf(config);
//! ```
//!
//! `docs/http/aws.md` in the repository has an example with a server to run it
//! against.
//!
//! # How it gets in charge
//!
//! Smithy's code generator gives clients a method `runtime_plugin`, by which their
//! strategy can be replaced; the crates of the AWS SDK are generated without it.
//! What those offer is interceptors, which see every attempt's end before the
//! SDK's own strategy does, and may change the configuration that it goes by. So
//! [`AwsRetry`] is both:
//!
//! - As an interceptor it asks the engine, and then leaves the SDK's strategy no
//!   choice: its own token bucket is unlimited, and its limit on attempts and its
//!   backoff are set, after each attempt, to what was decided.
//! - As a runtime plugin it brings that interceptor, and a strategy in the place
//!   of the built-in one, which says what was decided.
//!
//! Either way sleeping, signing each attempt afresh and the loop around it remain
//! the SDK's. With a loop of our own around `send`, each attempt would be an
//! operation of its own, with an idempotency token of its own: a write would be
//! sent twice under two names.
//!
//! The token is kept per request, in the request's own configuration. The SDK's
//! strategy keeps one per client, so that requests that overlap lose each other's.
//!
//! # What is sent again
//!
//! The SDK's classifiers say what is worth a retry, also the service's modeled
//! errors and classifiers of your own. Whether it is safe is another question,
//! which the SDK does not ask: it sends `SendMessage` again after a 500. This
//! strategy asks. Operations whose names say that they only read (`Get…`, `List…`,
//! `Describe…` and the like) are taken for idempotent, others are not and are sent
//! again only if nothing was sent or the answer was throttling.
//! [`idempotent`](AwsRetry::idempotent) says otherwise for operations that you
//! know; [`like_the_sdk`](AwsRetry::like_the_sdk) takes all for idempotent.
//!
//! The operation timeout of the client's `TimeoutConfig` is the deadline.
//!
//! # What not to do
//!
//! - Do not make a strategy for each client of one service. Clones share the
//!   budget; clone it.
//! - Do not set `RetryConfig` as well and expect it to count: the strategy says
//!   how many attempts and what delays.
//! - Do not choose `like_the_sdk` for a queue or a ledger without a
//!   deduplication id, unless applying twice does no harm.

mod interceptor;
mod names;
mod obey;
mod plugin;
mod read;
mod retry;
mod running;

pub use retry::AwsRetry;
pub use running::AwsOperation;
