//! What a user says about the retries of a client.

use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime::client::retries::TokenBucket;
use steadfast::strategy::WhenLimited;
use steadfast::{Adaptive, RetryEvent, RetryStrategy, Standard};

use crate::clock::Machine;

/// Puts a strategy in charge of a client's retries, or of one operation's. See
/// the [module](super).
///
/// It is an interceptor, for clients of the AWS SDK: add it to a client's
/// configuration with `interceptor`, or to one call with
/// `customize().interceptor(…)`. It is a runtime plugin too, for other clients
/// that Smithy generates. A call's own wins over its client's. Dropping a call's
/// future leaves the budget right: what was paid for an attempt stays paid.
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
    /// What the SDK's own strategy is given in the place of its bucket.
    pub(super) unlimited: TokenBucket,
    observer: Option<Arc<Observer>>,
}

/// What the names of operations that change nothing begin with.
const READS: [&str; 9] = [
    "BatchGet", "Describe", "Get", "Head", "List", "Lookup", "Query", "Scan", "Search",
];

impl AwsRetry {
    /// Retries what is safe: reads by their name, other operations only where
    /// nothing was done.
    pub fn new(strategy: Standard) -> Self {
        Self::with(Arc::new(strategy), reads)
    }

    /// The same, with a send rate that follows throttling; see [`Adaptive`]. One of
    /// these is for one service in one region.
    ///
    /// An interceptor cannot wait, so what the rate has no room for is not delayed
    /// but refused: a retry is not made, and a first attempt is the only one.
    pub fn adaptive(strategy: Standard) -> Self {
        let adaptive = Adaptive::new(strategy, WhenLimited::FailFast);
        Self::with(Arc::new(adaptive), reads)
    }

    /// Retries every operation as if it were idempotent, which is what the SDK
    /// does by itself.
    pub fn like_the_sdk(strategy: Standard) -> Self {
        Self::with(Arc::new(strategy), |_| true)
    }

    /// States which operations may be sent twice, by name, such as
    /// `"PutItem"`. It takes the place of what was said before, also of the
    /// reads that are known by their name.
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

    fn with(
        strategy: Arc<dyn RetryStrategy>,
        idempotent: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let inner = Inner {
            strategy,
            idempotent: Arc::new(idempotent),
            unlimited: TokenBucket::unlimited(),
            observer: None,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(super) fn world(&self) -> Machine<'_> {
        let observer = self.inner.observer.as_deref();
        Machine { observer }
    }
}

/// Whether the name is a read's: one of the verbs, and then another word or
/// nothing. `Listen` is none.
fn reads(operation: &str) -> bool {
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
    fn a_read_is_known_by_the_first_word_of_its_name() {
        for name in ["GetItem", "Scan", "Query", "ListQueues", "HeadObject"] {
            assert!(reads(name), "{name}");
        }
        for name in [
            "PutItem",
            "Listen",
            "Gettysburg",
            "ReceiveMessage",
            "get",
            "",
        ] {
            assert!(!reads(name), "{name}");
        }
    }
}
