//! Settings for the retries of a client.

use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime::client::retries::TokenBucket;
use steadfast::strategy::WhenLimited;
use steadfast::world::{Observed, SystemWorld};
use steadfast::{Adaptive, RetryEvent, RetryStrategy, Standard, World};

/// Makes a strategy decide about the retries of a client, or of one call. See the
/// [module](super).
///
/// Add it to a client of the AWS SDK with `interceptor`, or to one call with
/// `customize().interceptor(…)`. Add it to other clients that Smithy generates with
/// `runtime_plugin`. The setting of a call replaces its client's. Dropping a call's
/// future leaves the budget right: the cost of an attempt stays paid.
#[derive(Clone)]
pub struct AwsRetry {
    pub(super) inner: Arc<Inner>,
}

type Idempotent = dyn Fn(&str) -> bool + Send + Sync;
type Observer = dyn Fn(&RetryEvent<'_>) + Send + Sync;

#[derive(Clone)]
pub(super) struct Inner {
    pub(super) strategy: Arc<dyn RetryStrategy>,
    pub(super) idempotent: Arc<Idempotent>,
    /// Replaces the token bucket of the SDK's own strategy.
    pub(super) unlimited: TokenBucket,
    observer: Option<Arc<Observer>>,
    world: Arc<dyn World + Send + Sync>,
}

/// First words of the names of operations that only read.
const READS: [&str; 9] = [
    "BatchGet", "Describe", "Get", "Head", "List", "Lookup", "Query", "Scan", "Search",
];

impl AwsRetry {
    /// Retries what is safe: reads by their name, and other operations only if they
    /// were not applied.
    pub fn new(strategy: Standard) -> Self {
        Self::with(Arc::new(strategy), is_read)
    }

    /// Does the same with a send rate that follows throttling; see [`Adaptive`]. Make
    /// one for each service and region.
    ///
    /// An interceptor cannot wait. So an attempt beyond the rate is not delayed: a
    /// retry is refused, and a first attempt is not retried.
    pub fn adaptive(strategy: Standard) -> Self {
        let adaptive = Adaptive::new(strategy, WhenLimited::FailFast);
        Self::with(Arc::new(adaptive), is_read)
    }

    /// Retries every operation as if it were idempotent, as the SDK does.
    pub fn like_the_sdk(strategy: Standard) -> Self {
        Self::with(Arc::new(strategy), |_| true)
    }

    /// States by name which operations are idempotent, such as `"PutItem"`. Replaces
    /// the default, so include the reads.
    #[must_use]
    pub fn idempotent(mut self, idempotent: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).idempotent = Arc::new(idempotent);
        self
    }

    /// Reports every retry and every refusal to `observer`. The context of the
    /// request is an [`AwsOperation`](super::AwsOperation).
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

    fn with(
        strategy: Arc<dyn RetryStrategy>,
        idempotent: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let inner = Inner {
            strategy,
            idempotent: Arc::new(idempotent),
            unlimited: TokenBucket::unlimited(),
            observer: None,
            world: Arc::new(SystemWorld),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(super) fn world(&self) -> Observed<'_, &(dyn World + Send + Sync)> {
        Observed {
            world: &*self.inner.world,
            observer: self.inner.observer.as_deref(),
        }
    }
}

/// Returns whether the first word of the name is a verb that reads. `Listen` is not.
fn is_read(operation: &str) -> bool {
    READS
        .iter()
        .filter_map(|read| operation.strip_prefix(read))
        .any(|rest| !rest.starts_with(|next: char| next.is_ascii_lowercase()))
}

impl fmt::Debug for AwsRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsRetry").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_recognized_by_the_first_word_of_its_name() {
        for name in ["GetItem", "Scan", "Query", "ListQueues", "HeadObject"] {
            assert!(is_read(name), "{name}");
        }
        for name in [
            "PutItem",
            "Listen",
            "Gettysburg",
            "ReceiveMessage",
            "get",
            "",
        ] {
            assert!(!is_read(name), "{name}");
        }
    }
}
