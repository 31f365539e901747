//! A strategy in the place of the built-in one, for clients that take it.
//!
//! Smithy's code generator gives its clients `runtime_plugin`, per client and
//! per operation; only those of the AWS SDK keep it to themselves. Where there
//! is one, nothing has to be dictated: the plugin brings the interceptor, which
//! decides, and a strategy, which says what was decided.

use std::borrow::Cow;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::SharedInterceptor;
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::{RetryStrategy, SharedRetryStrategy, ShouldAttempt};
use aws_smithy_runtime_api::client::runtime_components::{
    RuntimeComponents, RuntimeComponentsBuilder,
};
use aws_smithy_runtime_api::client::runtime_plugin::RuntimePlugin;
use aws_smithy_types::config_bag::ConfigBag;

use super::retry::AwsRetry;
use super::running::{Decided, Running};

impl RuntimePlugin for AwsRetry {
    fn runtime_components(
        &self,
        _: &RuntimeComponentsBuilder,
    ) -> Cow<'_, RuntimeComponentsBuilder> {
        let components = RuntimeComponentsBuilder::new("AwsRetry")
            .with_interceptor(SharedInterceptor::new(self.clone()))
            .with_retry_strategy(Some(SharedRetryStrategy::new(AsDecided)));
        Cow::Owned(components)
    }
}

/// Says of each request what the interceptor decided about it. The state is the
/// request's, so that one of these serves any number of them.
#[derive(Debug)]
struct AsDecided;

impl RetryStrategy for AsDecided {
    fn should_attempt_initial_request(
        &self,
        _: &RuntimeComponents,
        _: &ConfigBag,
    ) -> Result<ShouldAttempt, BoxError> {
        Ok(ShouldAttempt::Yes)
    }

    fn should_attempt_retry(
        &self,
        _: &InterceptorContext,
        _: &RuntimeComponents,
        cfg: &ConfigBag,
    ) -> Result<ShouldAttempt, BoxError> {
        let running = cfg.load::<Running>();
        let running = running.ok_or("the interceptor that decides about retries did not run")?;
        Ok(match running.decided() {
            Decided::GiveUp => ShouldAttempt::No,
            Decided::Retry(delay) if delay.is_zero() => ShouldAttempt::Yes,
            Decided::Retry(delay) => ShouldAttempt::YesAfterDelay(delay),
        })
    }
}
