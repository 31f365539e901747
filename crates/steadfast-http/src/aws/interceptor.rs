//! Where the SDK meets the engine: every attempt's beginning and end.
//!
//! What is decided is decided here, whichever way the client is then made to
//! obey: by its own strategy, which is left no choice, or by one that takes the
//! built-in's place.

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

use super::retry::AwsRetry;
use super::running::Running;
use super::{obey, read};

impl Intercept for AwsRetry {
    fn name(&self) -> &'static str {
        "AwsRetry"
    }

    /// The operation's time runs from here. The SDK's own timer is started a
    /// moment later, so that the deadline is never the later of the two: an
    /// attempt that the timer cuts off must not be paid another one for.
    ///
    /// A call's own interceptor comes after its client's, and so takes its place.
    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let running = Running::start(self, &self.world());
        cfg.interceptor_state().store_put(running);
        Ok(())
    }

    /// Begins the request, of which everything is known now.
    fn read_before_serialization(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(running) = Running::of(self, cfg) {
            running.begin(cfg, &self.world());
            obey::take_over(cfg, self.inner.unlimited.clone());
        }
        Ok(())
    }

    fn read_before_attempt(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(running) = Running::of(self, cfg) else {
            return Ok(());
        };
        let replayable = context.request().body().try_clone().is_some();
        match running.attempt(replayable, &self.world()) {
            Step::Attempt => Ok(()),
            Step::Wait { .. } | Step::Ask(_) | Step::GiveUp(_) | Step::LeftAlone => {
                Err("the operation's time is over".into())
            }
        }
    }

    /// From here on bytes may leave.
    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(running) = Running::of(self, cfg) {
            running.sending();
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(running) = Running::of(self, cfg) else {
            return Ok(());
        };
        let context = context.inner();
        if !context.is_failed() {
            // A request that was only signed, to be sent by somebody else, did
            // not succeed with anything.
            if context.response().is_some() {
                running.succeed(&self.world());
            }
            return Ok(());
        }
        let action = run_classifiers_on_ctx(components.retry_classifiers(), context);
        let failure = read::failure(&action, context, running.is_sending());
        let decided = running.fail(failure, &self.world());
        obey::obey(cfg, decided, &action);
        Ok(())
    }
}
