//! Reports the beginning and the end of every attempt to the engine.
//!
//! The engine decides here in both designs: where the SDK's own strategy is forced
//! to follow (`sdk_config`), and where a strategy replaces it (`plugin`).

use aws_smithy_runtime::client::retries::classifiers::run_classifiers_on_ctx;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::interceptors::{Intercept, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use steadfast::Step;

use super::deviation::Deviation;
use super::operation::AwsOperation;
use super::request::AwsRequest;
use super::retry::AwsRetry;
use super::{classify, idempotency, sdk_config};

/// The attribute tells the SDK which of its nineteen points are used. At each of them it looks
/// up whether the interceptor is disabled.
#[dyn_dispatch_hint]
impl Intercept for AwsRetry {
    fn name(&self) -> &'static str {
        "AwsRetry"
    }

    /// Starts the clock. The SDK starts its own timer a moment later, so the
    /// engine's deadline is never the later one. Otherwise the engine would pay for
    /// an attempt after the timer has fired.
    ///
    /// The interceptor of a call runs after the client's, and so replaces it.
    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = AwsRequest::new(self, &self.world());
        cfg.interceptor_state().store_put(request);
        Ok(())
    }

    fn read_before_serialization(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if AwsRequest::load(self, cfg).is_none() {
            return Ok(());
        }
        let long_poll = idempotency::is_long_poll(&AwsOperation::load(cfg));
        let replaced = sdk_config::replace_limits(cfg, self.partition(components)?, long_poll);
        if let Some((request, config)) = AwsRequest::load(self, cfg).zip(replaced) {
            request.config = config;
        }
        Ok(())
    }

    /// Begins the request at its first attempt: now everything about it is known.
    fn read_before_attempt(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let attempt = cfg.load::<RequestAttempts>();
        let attempt = attempt.map_or(1, RequestAttempts::attempts);
        let body = context.request().body();
        let replayable = body.try_clone().is_some();
        let world = self.world();
        let Some(request) = AwsRequest::load(self, cfg) else {
            return Ok(());
        };
        let deviation = request.begin_attempt(attempt, replayable, &world);
        let is_begun = request.is_begun();
        if let Some(deviation) = deviation {
            self.report(deviation, cfg);
            if deviation == Deviation::Unwanted {
                return Err("no retry was decided, so this attempt is not sent".into());
            }
        }
        let call = (!is_begun).then(|| self.call(context, components, cfg));
        let Some(request) = AwsRequest::load(self, cfg) else {
            return Ok(());
        };
        let step = match call {
            Some(call) => request.begin(call, &world),
            None => request.resume(&world),
        };
        let result = match step {
            Step::Attempt => Ok(()),
            Step::Wait { .. } | Step::Ask | Step::GiveUp(_) | Step::LeftAlone => {
                let shed = request.shed();
                Err(shed.map_or_else(|| "the operation's deadline has passed".into(), Into::into))
            }
        };
        let config = request.config.clone();
        sdk_config::set_for_attempt(cfg, config, self.inner.max_attempts);
        result
    }

    /// From here on bytes may be sent.
    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(request) = AwsRequest::load(self, cfg) {
            request.set_sending();
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(request) = AwsRequest::load(self, cfg) else {
            return Ok(());
        };
        let context = context.inner();
        if !context.is_failed() {
            // A presigned request has no response and did not succeed.
            if context.response().is_some() {
                request.succeed(&self.world());
            }
            return Ok(());
        }
        let action = run_classifiers_on_ctx(components.retry_classifiers(), context);
        let skewed = classify::is_clock_skew(components, context);
        let failure = classify::classify(&action, context, request.is_sending(), skewed);
        let next = request.fail(failure, &self.world());
        sdk_config::force(cfg, next);
        Ok(())
    }

    /// Checks that the SDK ended the operation where the engine did. The operation
    /// timeout may end it before.
    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(request) = AwsRequest::load(self, cfg) else {
            return Ok(());
        };
        let deviation = request.end(&self.world());
        let timed_out =
            matches!(context.output_or_error(), Some(Err(error)) if error.is_timeout_error());
        if let Some(deviation) = deviation.filter(|_| !timed_out) {
            self.report(deviation, cfg);
        }
        Ok(())
    }
}
