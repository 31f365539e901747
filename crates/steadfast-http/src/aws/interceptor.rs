//! Reports the beginning and the end of every attempt to the engine.
//!
//! The engine decides here in both designs: where the SDK's own strategy is forced
//! to follow (`sdk_config`), and where a strategy replaces it (`plugin`).

use aws_smithy_runtime::client::retries::classifiers::run_classifiers_on_ctx;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use steadfast::Step;

use super::request::AwsRequest;
use super::retry::AwsRetry;
use super::{classify, sdk_config};

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

    /// Begins the request: now its operation is known.
    fn read_before_serialization(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(request) = AwsRequest::load(self, cfg) {
            request.begin(cfg, &self.world());
            sdk_config::disable_limits(cfg, self.inner.unlimited.clone());
        }
        Ok(())
    }

    fn read_before_attempt(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(request) = AwsRequest::load(self, cfg) else {
            return Ok(());
        };
        let replayable = context.request().body().try_clone().is_some();
        match request.begin_attempt(replayable, &self.world()) {
            Step::Attempt => Ok(()),
            Step::Wait { .. } | Step::Ask(_) | Step::GiveUp(_) | Step::LeftAlone => {
                Err("the operation's deadline has passed".into())
            }
        }
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
        let failure = classify::classify(&action, context, request.is_sending());
        let next = request.fail(failure, &self.world());
        sdk_config::force(cfg, next, &action);
        Ok(())
    }
}
