//! Where the SDK meets the engine.

use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime::client::retries::classifiers::run_classifiers_on_ctx;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use steadfast::{RetryEvent, Standard, Step};

use super::running::Running;
use super::{obey, read};
use crate::clock::Machine;

/// Puts a strategy in charge of a client's retries, or of one operation's. See
/// the [module](super).
///
/// Add it to a client's configuration with `interceptor`, or to one call with
/// `customize().interceptor(…)`; a call's own wins. Dropping a call's future
/// leaves the budget right: what was paid for an attempt stays paid.
#[derive(Clone)]
pub struct AwsRetry {
    pub(super) inner: Arc<Inner>,
}

type Idempotent = dyn Fn(&str) -> bool + Send + Sync;
type Observer = dyn Fn(&RetryEvent<'_>) + Send + Sync;

#[derive(Clone)]
pub(super) struct Inner {
    pub(super) strategy: Standard,
    pub(super) idempotent: Arc<Idempotent>,
    observer: Option<Arc<Observer>>,
}

/// What the names of operations that change nothing begin with.
const READS: [&str; 9] = [
    "BatchGet", "Describe", "Get", "Head", "List", "Lookup", "Query", "Scan", "Search",
];

impl AwsRetry {
    /// Retries what is safe: reads by their name, other operations only where
    /// nothing was done.
    ///
    /// A strategy that delays first attempts, such as `Adaptive`, has no place
    /// here, since an interceptor cannot wait.
    pub fn new(strategy: Standard) -> Self {
        Self::with(strategy, |operation| {
            READS.iter().any(|read| operation.starts_with(read))
        })
    }

    /// Retries every operation as if it were idempotent, which is what the SDK
    /// does by itself.
    pub fn like_the_sdk(strategy: Standard) -> Self {
        Self::with(strategy, |_| true)
    }

    /// States which operations may be sent twice, by name, such as
    /// `"PutItem"`.
    #[must_use]
    pub fn idempotent(mut self, idempotent: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).idempotent = Arc::new(idempotent);
        self
    }

    /// Tells `observer` of every retry and every refusal. The operation is the
    /// request's context, as [`AwsOperation`](super::AwsOperation).
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).observer = Some(Arc::new(observer));
        self
    }

    fn with(strategy: Standard, idempotent: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let inner = Inner {
            strategy,
            idempotent: Arc::new(idempotent),
            observer: None,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    fn world(&self) -> Machine<'_> {
        let observer = self.inner.observer.as_deref();
        Machine { observer }
    }
}

impl Intercept for AwsRetry {
    fn name(&self) -> &'static str {
        "AwsRetry"
    }

    /// Begins the request. A call's own interceptor comes after its client's, and
    /// so takes its place.
    fn read_before_serialization(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let running = Running::begin(self, cfg, &self.world());
        obey::take_over(cfg);
        cfg.interceptor_state().store_put(running);
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
            Step::Wait(_) | Step::Ask(_) | Step::GiveUp(_) | Step::LeftAlone => {
                Err("the operation's time is over".into())
            }
        }
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
            running.succeed(&self.world());
            return Ok(());
        }
        let action = run_classifiers_on_ctx(components.retry_classifiers(), context);
        let failure = read::failure(&action, context);
        let decided = running.fail(failure, &self.world());
        obey::obey(cfg, decided, &action);
        Ok(())
    }
}

impl fmt::Debug for AwsRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsRetry")
            .field("strategy", &self.inner.strategy)
            .finish_non_exhaustive()
    }
}
