//! Retries for clients of the AWS SDK for Rust.
//!
//! ```text
//! let strategy = Standard::aws_2_1();              // one for all clients of a service
//! let config = aws_sdk_sqs::config::Builder::from(&sdk_config)
//!     .interceptor(AwsRetry::new(strategy))
//!     .build();
//! let client = aws_sdk_sqs::Client::from_conf(config);
//! ```
//!
//! `docs/http/aws.md` in the repository has an example that runs.
//!
//! # What is sent again
//!
//! The classifiers of the SDK say which failures may pass. The SDK does not ask
//! whether a retry is safe: it sends `SendMessage` again after a 500. [`AwsRetry`]
//! asks. Operations that only read by their name (`Get…`, `List…`, `Describe…`) are
//! taken for idempotent. Others are sent again only if nothing was sent or the
//! response was throttling. [`idempotent`](AwsRetry::idempotent) changes that for
//! operations that you know.
//!
//! The operation timeout of the client's `TimeoutConfig` is the deadline.
//!
//! # How it works
//!
//! - As an interceptor, for the crates of the AWS SDK, it asks the engine after
//!   each attempt. Then it sets the configuration of the SDK's own strategy so that
//!   it can only make the same decision.
//! - As a runtime plugin, for other clients that Smithy generates, it also replaces
//!   the SDK's strategy.
//!
//! The loop, the sleep and the signing remain the SDK's. A loop around `send` would
//! give each attempt an idempotency token of its own, and so apply a write twice.
//!
//! # What not to do
//!
//! - Do not make a strategy for each client of one service. Clone it: clones share
//!   the budget.
//! - Do not expect `RetryConfig` to have an effect: the strategy decides about
//!   attempts and delays.
//! - Do not use [`like_the_sdk`](AwsRetry::like_the_sdk) for writes that must not be
//!   applied twice.

mod classify;
mod interceptor;
mod intern;
mod plugin;
mod request;
mod retry;
mod sdk_config;

pub use request::AwsOperation;
pub use retry::AwsRetry;
