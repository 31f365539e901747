//! Replaces the built-in strategy in clients that accept a runtime plugin.
//!
//! Clients that Smithy generates have the method `runtime_plugin`; those of the AWS
//! SDK hide it. The plugin adds the interceptor, which decides, and a strategy that
//! returns the decision.

use std::borrow::Cow;

use aws_smithy_runtime::client::retries::strategy::StandardRetryStrategy;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::SharedInterceptor;
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::{RetryStrategy, SharedRetryStrategy, ShouldAttempt};
use aws_smithy_runtime_api::client::runtime_components::{
    RuntimeComponents, RuntimeComponentsBuilder,
};
use aws_smithy_runtime_api::client::runtime_plugin::RuntimePlugin;
use aws_smithy_types::config_bag::ConfigBag;

use super::request::{AwsRequest, NextStep};
use super::retry::AwsRetry;

impl RuntimePlugin for AwsRetry {
    fn runtime_components(
        &self,
        _: &RuntimeComponentsBuilder,
    ) -> Cow<'_, RuntimeComponentsBuilder> {
        let components = RuntimeComponentsBuilder::new("AwsRetry")
            .with_interceptor(SharedInterceptor::new(self.clone()))
            .with_retry_strategy(Some(SharedRetryStrategy::new(DecidedByInterceptor)));
        Cow::Owned(components)
    }
}

/// Returns the decision of the interceptor. The state belongs to each request.
#[derive(Debug)]
struct DecidedByInterceptor;

impl RetryStrategy for DecidedByInterceptor {
    fn should_attempt_initial_request(
        &self,
        _: &RuntimeComponents,
        _: &ConfigBag,
    ) -> Result<ShouldAttempt, BoxError> {
        Ok(ShouldAttempt::Yes)
    }

    fn should_attempt_retry(
        &self,
        context: &InterceptorContext,
        components: &RuntimeComponents,
        cfg: &ConfigBag,
    ) -> Result<ShouldAttempt, BoxError> {
        let request = cfg.load::<AwsRequest>();
        let request = request.ok_or("the interceptor that decides about retries did not run")?;
        Ok(match request.next_step() {
            NextStep::GiveUp => ShouldAttempt::No,
            // Only the SDK's own strategy can delay the end.
            NextStep::GiveUpAfter(_) => {
                StandardRetryStrategy::new().should_attempt_retry(context, components, cfg)?
            }
            NextStep::Retry(delay) if delay.is_zero() => ShouldAttempt::Yes,
            NextStep::Retry(delay) => ShouldAttempt::YesAfterDelay(delay),
        })
    }
}
