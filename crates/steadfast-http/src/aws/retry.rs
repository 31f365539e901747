//! Settings for the retries of a client.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::{ConfigBag, FrozenLayer};
use aws_smithy_types::timeout::TimeoutConfig;
use steadfast::strategy::{Limits, WhenLimited, WhenTooLate};
use steadfast::world::{Observed, SystemWorld};
use steadfast::{Adaptive, Call, RetryEvent, RetryStrategy, Standard, World};

use super::deviation::Deviation;
use super::idempotency::{has_token, is_idempotent};
use super::operation::AwsOperation;
use super::sdk_config;

/// Makes a strategy decide about the retries of a client, or of one call. See the
/// [module](super).
///
/// Add it to a client of the AWS SDK with `interceptor`, or to one call with
/// `customize().interceptor(…)`. Add it to other clients that Smithy generates with
/// `runtime_plugin`. The setting of a call replaces its client's. Dropping a call's
/// future leaves the budget right: the cost of an attempt stays paid.
#[derive(Clone)]
pub struct AwsRetry {
    pub(super) inner: Arc<AwsSettings>,
}

type IdempotentOperation = dyn Fn(&str) -> bool + Send + Sync;
type AwsObserver = dyn Fn(&RetryEvent<'_>) + Send + Sync;

#[derive(Clone)]
pub(super) struct AwsSettings {
    pub(super) strategy: Arc<dyn RetryStrategy>,
    pub(super) max_attempts: u32,
    /// The user's own rows: service, operation, whether it is idempotent.
    listed: Vec<(String, String, bool)>,
    /// Replaces the rule for operations without a row.
    idempotent: Option<Arc<IdempotentOperation>>,
    partition: Arc<OnceLock<FrozenLayer>>,
    deviations: Arc<AtomicU64>,
    observer: Option<Arc<AwsObserver>>,
    world: Arc<dyn World + Send + Sync>,
}

impl AwsRetry {
    /// Retries what is safe: idempotent operations, and others only if they were not
    /// applied. The [module](super#what-is-sent-again) lists what is idempotent.
    pub fn new(strategy: Standard) -> Self {
        Self::with(Arc::new(strategy))
    }

    /// Does the same with a send rate that follows throttling; see [`Adaptive`]. Make
    /// one for each service and region.
    ///
    /// An interceptor cannot wait. So an attempt beyond the rate is not delayed: a
    /// retry is refused, and a first attempt is not retried.
    pub fn adaptive(strategy: Standard) -> Self {
        Self::with(Arc::new(Adaptive::new(strategy, WhenLimited::FailFast)))
    }

    /// Retries every operation as if it were idempotent, as the SDK does.
    pub fn like_the_sdk(strategy: Standard) -> Self {
        Self::new(strategy).idempotent(|_| true)
    }

    /// Adds operations of a service that may be sent twice, such as `"SendMessage"` of
    /// `"SQS"` for a queue that recognizes copies. The names are the ones of
    /// [`AwsOperation`]. A later row replaces an earlier one.
    #[must_use]
    pub fn add_idempotent(self, service: &str, operations: &[&str]) -> Self {
        self.list(service, operations, true)
    }

    /// Adds operations of a service that must not be sent twice.
    #[must_use]
    pub fn add_not_idempotent(self, service: &str, operations: &[&str]) -> Self {
        self.list(service, operations, false)
    }

    /// States by name which operations are idempotent, such as `"PutItem"`. Replaces
    /// the default for operations that were not added, so include the reads.
    #[must_use]
    pub fn idempotent(mut self, idempotent: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).idempotent = Some(Arc::new(idempotent));
        self
    }

    /// Reports every retry and every refusal to `observer`. The context of the
    /// request is an [`AwsOperation`].
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).observer = Some(Arc::new(observer));
        self
    }

    /// Takes time and randomness from this world, so that tests are deterministic. The
    /// SDK still waits by the timer of its own configuration.
    #[must_use]
    pub fn in_world(mut self, world: impl World + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).world = Arc::new(world);
        self
    }

    /// Returns how often the SDK did not carry out a decision: it began an attempt too
    /// early, more than two seconds late or with a wrong number, made no attempt, or began
    /// one after the end. An attempt after the end is not sent. Clones share the count.
    ///
    /// Each deviation is also logged as a warning of `tracing`. With the versions of the SDK
    /// that this crate is tested with, the count stays zero. Check it after an update.
    pub fn deviations(&self) -> u64 {
        self.inner.deviations.load(Ordering::Relaxed)
    }

    fn with(strategy: Arc<dyn RetryStrategy>) -> Self {
        let worst_case = strategy.info().worst_case(&Limits::default());
        let inner = AwsSettings {
            strategy,
            max_attempts: worst_case.attempts.unwrap_or(u32::MAX),
            listed: Vec::new(),
            idempotent: None,
            partition: Arc::default(),
            deviations: Arc::default(),
            observer: None,
            world: Arc::new(SystemWorld),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    fn list(mut self, service: &str, operations: &[&str], idempotent: bool) -> Self {
        let listed = &mut Arc::make_mut(&mut self.inner).listed;
        let row = |name: &&str| (service.to_owned(), (*name).to_owned(), idempotent);
        listed.extend(operations.iter().map(row));
        self
    }

    /// Describes an operation to the engine.
    pub(super) fn call(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        cfg: &ConfigBag,
    ) -> Call {
        let operation = AwsOperation::load(cfg);
        let mut rows = self.inner.listed.iter().rev();
        let row =
            rows.find(|(service, name, _)| service == operation.service && name == operation.name);
        let idempotent = match (row, &self.inner.idempotent) {
            (Some((_, _, idempotent)), _) => *idempotent,
            (None, Some(idempotent)) => idempotent(operation.name),
            (None, None) => is_idempotent(&operation, context.request(), || has_token(components)),
        };
        let call = Call::new(operation.name)
            .service("aws")
            .idempotent(idempotent)
            .when_too_late(WhenTooLate::FailFast)
            .long_polling(sdk_config::is_long_poll(cfg))
            .shared_context(operation);
        let timeout = cfg.load::<TimeoutConfig>();
        match timeout.and_then(TimeoutConfig::operation_timeout) {
            Some(timeout) => call.timeout(timeout),
            None => call,
        }
    }

    /// Returns the part of the SDK's configuration that makes delays exact.
    pub(super) fn partition(
        &self,
        components: &RuntimeComponents,
    ) -> Result<FrozenLayer, BoxError> {
        if let Some(partition) = self.inner.partition.get() {
            return Ok(partition.clone());
        }
        let made = sdk_config::partition(components)?.freeze();
        Ok(self.inner.partition.get_or_init(|| made).clone())
    }

    /// Counts and logs that the SDK did not carry out a decision.
    pub(super) fn report(&self, deviation: Deviation, cfg: &ConfigBag) {
        self.inner.deviations.fetch_add(1, Ordering::Relaxed);
        let operation = AwsOperation::load(cfg);
        tracing::warn!(%operation, "the AWS SDK {deviation}: run the tests of AwsRetry with this version");
    }

    pub(super) fn world(&self) -> Observed<'_, &(dyn World + Send + Sync)> {
        Observed {
            world: &*self.inner.world,
            observer: self.inner.observer.as_deref(),
        }
    }
}

impl fmt::Debug for AwsRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsRetry").finish_non_exhaustive()
    }
}
