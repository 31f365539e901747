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
//! asks. Operations that are not idempotent are sent again only if nothing was sent or
//! the response proves that nothing was applied, such as throttling. The first of these
//! rules that applies decides whether an operation is idempotent:
//!
//! 1. You said so: [`add_idempotent`](AwsRetry::add_idempotent),
//!    [`add_not_idempotent`](AwsRetry::add_not_idempotent).
//! 2. A built-in table lists it. `GetActivityTask` is not idempotent, because a task is
//!    handed out once. `ReceiveMessage` is, because messages come back.
//! 3. If the SDK fills in an idempotency token, the operation is idempotent.
//! 4. If its HTTP method is GET, HEAD, PUT or DELETE, it is idempotent.
//! 5. If its method is POST, as for all operations of many services, the name decides. It
//!    is idempotent if the name begins with `Get`, `List`, `Describe` or a similar verb, or
//!    with `Delete`, `Set`, `Tag` or `Untag`.
//!
//! All others are not idempotent. A write with a condition (`If-Match`, DynamoDB's
//! `ConditionExpression`) is not idempotent under 2, 4 and 5.
//!
//! The operation timeout of the client's `TimeoutConfig` is the deadline.
//!
//! # Long polls
//!
//! A program calls `ReceiveMessage` in a loop. If its retry is refused, the error comes
//! after the delay of that retry. So the loop does not spin during an outage.
//!
//! # How it works
//!
//! - As an interceptor, for the crates of the AWS SDK, it asks the engine after
//!   each attempt. Then it sets the configuration of the SDK's own strategy so that
//!   it can only make the same decision. [`deviations`](AwsRetry::deviations) counts
//!   how often the SDK did something else.
//! - As a runtime plugin, for other clients that Smithy generates, it also replaces
//!   the SDK's strategy.
//!
//! The loop, the sleep and the signing remain the SDK's. A loop around `send` would
//! give each attempt its own idempotency token, and so apply a write twice.
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
mod deviation;
mod idempotency;
mod interceptor;
mod operation;
mod plugin;
mod request;
mod retry;
mod sdk_config;

pub use operation::AwsOperation;
pub use retry::AwsRetry;
