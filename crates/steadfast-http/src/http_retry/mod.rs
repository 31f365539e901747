//! All that an HTTP client has to decide about retries, in one value.
//!
//! The integrations take the same policy, so that what is said of one holds for
//! the others, and clients of different kinds can share a budget.

mod per_host;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steadfast::strategy::{Limits, WhenLimited, WorstCase};
use steadfast::{Adaptive, InvalidSetting, RetryEvent, RetryStrategy, Standard};

use crate::classify::HttpClassifier;
use crate::idempotent::{RequestHead, is_idempotent};
use per_host::PerHost;

/// How HTTP requests are retried: by which strategy, within what time, read by
/// which classifier.
///
/// ```
/// use std::time::Duration;
/// use steadfast::Standard;
/// use steadfast_http::HttpRetry;
///
/// let policy = HttpRetry::guidance().timeout(Duration::from_secs(10));
///
/// // Two policies that pay from one budget.
/// let strategy = Standard::aws_2_1();
/// let reads = HttpRetry::new(strategy.clone())?.attempt_timeout(Duration::from_millis(200));
/// let writes = HttpRetry::new(strategy)?.timeout(Duration::from_secs(5));
/// # let _ = (policy, reads, writes);
/// # Ok::<(), steadfast::InvalidSetting>(())
/// ```
///
/// Clones are cheap, and share the budget.
#[derive(Clone)]
pub struct HttpRetry {
    inner: Arc<Inner>,
}

type Observer = dyn Fn(&RetryEvent<'_>) + Send + Sync;
type Idempotent = dyn Fn(&RequestHead<'_>) -> bool + Send + Sync;

#[derive(Clone)]
struct Inner {
    strategies: Strategies,
    classifier: HttpClassifier,
    idempotent: Option<Arc<Idempotent>>,
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    body_limit: usize,
    observer: Option<Arc<Observer>>,
}

#[derive(Clone)]
enum Strategies {
    Shared(Arc<dyn RetryStrategy>),
    PerHost(Arc<PerHost>),
}

/// Bodies are kept up to this size if nothing else is said.
const BODY_LIMIT: usize = 64 * 1024;

impl HttpRetry {
    /// The Smithy guidance's numbers, one budget for all hosts.
    /// See [`Standard::guidance`].
    pub fn guidance() -> Self {
        Self::of(Strategies::Shared(Arc::new(Standard::guidance())))
    }

    /// What the AWS SDKs call retry behaviour 2.0. See [`Standard::aws_2_0`].
    pub fn aws_2_0() -> Self {
        Self::of(Strategies::Shared(Arc::new(Standard::aws_2_0())))
    }

    /// What the AWS SDKs call retry behaviour 2.1. See [`Standard::aws_2_1`].
    pub fn aws_2_1() -> Self {
        Self::of(Strategies::Shared(Arc::new(Standard::aws_2_1())))
    }

    /// The guidance's numbers, and for each host a send rate that follows its
    /// throttling. See [`Adaptive`].
    pub fn adaptive() -> Self {
        let adaptive = || Adaptive::new(Standard::guidance(), WhenLimited::Wait);
        Self::of(Strategies::PerHost(Arc::new(PerHost::new(adaptive))))
    }

    /// A strategy of one's own for all hosts. Clones of a strategy share its
    /// budget, so policies made of clones do.
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself; such a one needs
    /// [`within`](Self::within).
    pub fn new(strategy: impl RetryStrategy + 'static) -> Result<Self, InvalidSetting> {
        bounded(&strategy)?;
        Ok(Self::of(Strategies::Shared(Arc::new(strategy))))
    }

    /// A strategy of one's own, bounded by time: also one that never gives up
    /// by itself.
    pub fn within(timeout: Duration, strategy: impl RetryStrategy + 'static) -> Self {
        Self::of(Strategies::Shared(Arc::new(strategy))).timeout(timeout)
    }

    /// A strategy, and so a budget, for each host (and port), made when it is
    /// first asked for. A host that fails then does not use up what others
    /// need. From the 1025th host on, hosts share one.
    ///
    /// # Errors
    /// If such a strategy does not bound the attempts by itself.
    pub fn per_host<S: RetryStrategy + 'static>(
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<Self, InvalidSetting> {
        let strategies = PerHost::new(make);
        bounded(&strategies.others())?;
        Ok(Self::of(Strategies::PerHost(Arc::new(strategies))))
    }

    /// Gives each request so much time, attempts and waits together, up to the
    /// head of the answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner().timeout = Some(timeout);
        self
    }

    /// Gives each attempt so much time, or what is left of the whole if that is
    /// less. An attempt that takes longer counts as in flight.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.inner().attempt_timeout = Some(timeout);
        self
    }

    /// Reads outcomes with this classifier.
    #[must_use]
    pub fn classify(mut self, classifier: HttpClassifier) -> Self {
        self.inner().classifier = classifier;
        self
    }

    /// Takes these requests for idempotent besides those that
    /// [`is_idempotent`](crate::is_idempotent) knows: a search that is a `POST`,
    /// a call of gRPC that only reads.
    ///
    /// ```
    /// # use steadfast_http::HttpRetry;
    /// let policy = HttpRetry::guidance().also_idempotent(|request| request.path == "/search");
    /// # let _ = policy;
    /// ```
    #[must_use]
    pub fn also_idempotent(
        mut self,
        idempotent: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.inner().idempotent = Some(Arc::new(idempotent));
        self
    }

    /// Keeps what was sent of a body up to this many bytes (64 KiB if nothing
    /// is said), to send it again. A request of which more was sent is not
    /// retried, and its history says why.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.inner().body_limit = bytes;
        self
    }

    /// Tells `observer` of every retry and every refusal.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static) -> Self {
        self.inner().observer = Some(Arc::new(observer));
        self
    }

    /// The most that it does to one request.
    pub fn worst_case(&self) -> WorstCase {
        let Inner {
            strategies,
            timeout,
            attempt_timeout,
            ..
        } = &*self.inner;
        let limits = Limits {
            timeout: *timeout,
            attempt_timeout: *attempt_timeout,
            attempts: None,
        };
        match strategies {
            Strategies::Shared(strategy) => strategy.info().worst_case(&limits),
            Strategies::PerHost(strategies) => strategies.others().info().worst_case(&limits),
        }
    }

    fn of(strategies: Strategies) -> Self {
        let inner = Inner {
            strategies,
            classifier: HttpClassifier::default(),
            idempotent: None,
            timeout: None,
            attempt_timeout: None,
            body_limit: BODY_LIMIT,
            observer: None,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.inner)
    }
}

/// What the integrations ask of it.
impl HttpRetry {
    /// The strategy for a request to this address.
    pub(crate) fn strategy_for(&self, address: impl FnOnce() -> String) -> Arc<dyn RetryStrategy> {
        match &self.inner.strategies {
            Strategies::Shared(strategy) => Arc::clone(strategy),
            Strategies::PerHost(strategies) => strategies.for_host(address()),
        }
    }

    pub(crate) fn classifier(&self) -> &HttpClassifier {
        &self.inner.classifier
    }

    /// Whether this request may be sent twice.
    pub(crate) fn is_idempotent(&self, head: &RequestHead<'_>) -> bool {
        let also = self.inner.idempotent.as_ref();
        is_idempotent(head.method, head.headers) || also.is_some_and(|also| also(head))
    }

    #[cfg(feature = "tower")]
    pub(crate) fn body_limit_bytes(&self) -> usize {
        self.inner.body_limit
    }

    /// The description of one request, to be run.
    pub(crate) fn retry<S: RetryStrategy>(&self, strategy: S) -> steadfast::Retry<'_, S> {
        let Inner {
            timeout,
            attempt_timeout,
            observer,
            ..
        } = &*self.inner;
        let mut retry = steadfast::retry(strategy).service("http");
        if let Some(timeout) = *timeout {
            retry = retry.timeout(timeout);
        }
        if let Some(timeout) = *attempt_timeout {
            retry = retry.attempt_timeout(timeout);
        }
        if let Some(observer) = observer {
            retry = retry.observe(&**observer);
        }
        retry
    }
}

impl fmt::Debug for HttpRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            timeout,
            attempt_timeout,
            body_limit,
            ..
        } = &*self.inner;
        f.debug_struct("HttpRetry")
            .field("timeout", timeout)
            .field("attempt_timeout", attempt_timeout)
            .field("body_limit", body_limit)
            .field("worst_case", &self.worst_case())
            .finish_non_exhaustive()
    }
}

/// A strategy that tries for ever must not meet a request that waits for ever.
pub(crate) fn bounded(strategy: &dyn RetryStrategy) -> Result<(), InvalidSetting> {
    match strategy.info().worst_case(&Limits::default()).attempts {
        Some(_) => Ok(()),
        None => Err(InvalidSetting::new(
            "timeout",
            "is missing: nothing else bounds the attempts of this strategy",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::{BestEffort, StrategyExt};

    #[test]
    fn a_policy_without_a_bound_is_refused_when_it_is_built() {
        let expected = "impossible retry policy: timeout is missing: \
                        nothing else bounds the attempts of this strategy";
        let error = HttpRetry::new(BestEffort::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let error = HttpRetry::per_host(BestEffort::default).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(HttpRetry::new(BestEffort::default().max_attempts(3).unwrap()).is_ok());
        let policy = HttpRetry::within(Duration::from_secs(1), BestEffort::default());
        assert_eq!(policy.worst_case().wall_time, Some(Duration::from_secs(1)));
    }

    #[test]
    fn the_presets_bound_the_attempts() {
        for (policy, attempts) in [
            (HttpRetry::guidance(), 5),
            (HttpRetry::aws_2_0(), 3),
            (HttpRetry::aws_2_1(), 3),
            (HttpRetry::adaptive(), 5),
        ] {
            assert_eq!(policy.worst_case().attempts, Some(attempts));
        }
    }
}
