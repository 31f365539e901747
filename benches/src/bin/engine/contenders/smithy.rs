//! aws-smithy-runtime: the standard strategy with its token bucket, through the
//! interface by which smithy's orchestrator asks it.
//!
//! The strategy reads an attempt's outcome from a type-erased context, and the
//! number of attempts from a type-erased configuration. Filling those, which
//! allocates, is the orchestrator's work, so they are ready made here: this is
//! the least that the strategy can cost. As in a client, all calls share one
//! strategy and one bucket.

use std::time::Duration;

use aws_smithy_runtime::client::retries::TokenBucket;
use aws_smithy_runtime::client::retries::strategy::StandardRetryStrategy;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    Error, Input, InterceptorContext, Output,
};
use aws_smithy_runtime_api::client::orchestrator::OrchestratorError;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use aws_smithy_runtime_api::client::retries::{
    RequestAttempts, RetryStrategy, SharedRetryStrategy, ShouldAttempt,
};
use aws_smithy_runtime_api::client::runtime_components::{
    RuntimeComponents, RuntimeComponentsBuilder,
};
use aws_smithy_types::config_bag::{ConfigBag, Layer};
use aws_smithy_types::retry::RetryConfig;

use super::{ATTEMPTS, Contender, SMITHY};
use crate::operation::{Peer, Unavailable, ask, drive, repeat};

pub(super) fn contender() -> Contender {
    let client = Client::new();
    Contender::new(SMITHY, move |failures, calls| {
        let peer = Peer::default();
        let contexts = ReadyMade::new();
        repeat(&peer, failures, calls, || {
            drive(client.call(&peer, &contexts))
        });
    })
    .sharing_a_budget()
}

/// What a smithy client has for all its calls.
struct Client {
    components: RuntimeComponents,
    /// The configuration at each attempt.
    config: Vec<ConfigBag>,
}

impl Client {
    fn new() -> Self {
        let bucket = TokenBucket::default();
        let strategy = SharedRetryStrategy::new(StandardRetryStrategy::new());
        let components = RuntimeComponentsBuilder::for_tests()
            .with_retry_strategy(Some(strategy))
            .with_retry_classifier(UnavailableIsTransient)
            .build()
            .expect("the builder for tests has all that is required");
        let config = (1..=ATTEMPTS)
            .map(|attempt| {
                let mut layer = Layer::new("call");
                layer.store_put(RetryConfig::standard().with_initial_backoff(Duration::ZERO));
                layer.store_put(bucket.clone());
                layer.store_put(RequestAttempts::new(attempt));
                ConfigBag::of_layers(vec![layer])
            })
            .collect();
        Self { components, config }
    }

    async fn call(&self, peer: &Peer, contexts: &ReadyMade) -> Result<u64, Unavailable> {
        // A clone of an `Arc`, for every call, as the orchestrator does.
        let strategy = self.components.retry_strategy();
        let mut config = self.config.iter();
        let mut attempt = config.next().expect("there is a first attempt");
        let first = strategy.should_attempt_initial_request(&self.components, attempt);
        assert!(
            matches!(first, Ok(ShouldAttempt::Yes)),
            "a first attempt is free"
        );
        loop {
            let outcome = ask(peer).await;
            let context = match &outcome {
                Ok(_) => &contexts.answered,
                Err(_) => &contexts.failed,
            };
            let next = strategy.should_attempt_retry(context, &self.components, attempt);
            match again(next, &mut config) {
                Some(next) => attempt = next,
                None => return outcome,
            }
        }
    }
}

/// The configuration of the next attempt, if there shall be one.
fn again<'a>(
    answer: Result<ShouldAttempt, BoxError>,
    config: &mut impl Iterator<Item = &'a ConfigBag>,
) -> Option<&'a ConfigBag> {
    match answer {
        Ok(ShouldAttempt::Yes | ShouldAttempt::YesAfterDelay(Duration::ZERO)) => config.next(),
        Ok(ShouldAttempt::No) => None,
        Ok(ShouldAttempt::YesAfterDelay(_)) | Err(_) => unreachable!("no delay, no error"),
    }
}

/// Contexts with an outcome in them.
struct ReadyMade {
    answered: InterceptorContext,
    failed: InterceptorContext,
}

impl ReadyMade {
    fn new() -> Self {
        let with = |outcome| {
            let mut context = InterceptorContext::new(Input::erase(()));
            context.set_output_or_error(erased(outcome));
            context
        };
        Self {
            answered: with(Ok(42)),
            failed: with(Err(Unavailable(1))),
        }
    }
}

fn erased(outcome: Result<u64, Unavailable>) -> Result<Output, OrchestratorError<Error>> {
    outcome
        .map(Output::erase)
        .map_err(|error| OrchestratorError::operation(Error::erase(error)))
}

/// Reads the outcome as smithy's own classifier of modeled errors does.
#[derive(Debug)]
struct UnavailableIsTransient;

impl ClassifyRetry for UnavailableIsTransient {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = match context.output_or_error() {
            Some(Err(error)) => error.as_operation_error(),
            Some(Ok(_)) | None => None,
        };
        match error.and_then(Error::downcast_ref::<Unavailable>) {
            Some(_) => RetryAction::transient_error(),
            None => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "unavailable is transient"
    }
}
