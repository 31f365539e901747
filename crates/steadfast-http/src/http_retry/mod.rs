//! The settings by which an HTTP client retries.
//!
//! All integrations take the same value. So one setting means the same in all of
//! them, and clients of different libraries can share a budget.

mod driver;
mod lost_body;
mod per_host;
#[cfg(feature = "tokio")]
mod presets;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast::strategy::{Limits, WhenTooLate, WorstCase};
use steadfast::world::{Roll, SharedWorld, Timer};
use steadfast::{Budget, InvalidSetting, RetryEvent, RetryStrategy, World};

use crate::classify::HttpClassifier;
use crate::idempotent::RequestHead;
#[cfg(feature = "tower")]
pub(crate) use driver::fail_at_once;
pub(crate) use driver::{AnyResponse, HttpDriver, SentRequest};
pub(crate) use lost_body::LostBody;
use per_host::PerHost;
pub(crate) use per_host::address;

/// The strategy, the time limits and the classifier by which requests are retried.
///
/// ```
/// use std::time::{Duration, Instant};
/// use steadfast::Standard;
/// use steadfast_http::HttpRetry;
///
/// let retry = HttpRetry::guidance().timeout(Duration::from_secs(10));
///
/// // Two that share one budget.
/// let strategy = Standard::aws_2_1();
/// let reads = HttpRetry::new(strategy.clone())?.attempt_timeout(Duration::from_millis(200));
/// let writes = HttpRetry::new(strategy)?.timeout(Duration::from_secs(5));
/// # let _ = (retry, reads, writes);
/// # Ok::<(), steadfast::InvalidSetting>(())
/// ```
///
/// Clones are cheap and share the budget.
#[derive(Clone)]
pub struct HttpRetry {
    inner: Arc<HttpSettings>,
}

pub(crate) type BoxSleep = <SharedWorld as Timer>::Sleep;
type Observer = dyn Fn(&RetryEvent<'_>) + Send + Sync;
type Idempotent = dyn Fn(&RequestHead<'_>) -> bool + Send + Sync;

#[derive(Clone)]
struct HttpSettings {
    strategies: Strategies,
    classifier: HttpClassifier,
    idempotent: Option<Arc<Idempotent>>,
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    when_too_late: WhenTooLate,
    body_limit: usize,
    without_redirects: bool,
    generate_keys: bool,
    observer: Option<Arc<Observer>>,
    world: SharedWorld,
}

#[derive(Clone)]
enum Strategies {
    Shared(Arc<dyn RetryStrategy>),
    PerHost(Arc<PerHost>),
}

impl Strategies {
    /// Returns the strategy of all hosts that have none of their own.
    fn common(&self) -> &dyn RetryStrategy {
        match self {
            Strategies::Shared(strategy) => &**strategy,
            Strategies::PerHost(strategies) => strategies.others(),
        }
    }
}

const DEFAULT_BODY_LIMIT: usize = 64 * 1024;

impl HttpRetry {
    /// Uses a strategy of your own, and waits in this world instead of on tokio. Without
    /// the feature `tokio`, this is the way to make one.
    ///
    /// ```
    /// use steadfast::{Standard, world};
    /// use steadfast_http::HttpRetry;
    ///
    /// # mod async_io { pub struct Timer; impl Timer { pub async fn after(_: std::time::Duration) {} } }
    /// let smol = world::from_sleep(|delay| async_io::Timer::after(delay));
    /// let retry = HttpRetry::new_in(smol, Standard::guidance())?;
    /// # let _ = retry;
    /// # Ok::<(), steadfast::InvalidSetting>(())
    /// ```
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself.
    pub fn new_in<W>(
        world: W,
        strategy: impl RetryStrategy + 'static,
    ) -> Result<Self, InvalidSetting>
    where
        W: Timer<Sleep: Send + 'static> + Send + Sync + 'static,
    {
        require_bound(&strategy)?;
        let strategies = Strategies::Shared(Arc::new(strategy));
        Ok(Self::with(SharedWorld::new(world), strategies))
    }

    /// Does the same as `per_host`, and waits in this world instead of on tokio.
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself.
    pub fn per_host_in<W, S>(
        world: W,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<Self, InvalidSetting>
    where
        W: Timer<Sleep: Send + 'static> + Send + Sync + 'static,
        S: RetryStrategy + 'static,
    {
        let strategies = PerHost::new(make);
        require_bound(strategies.others())?;
        let strategies = Strategies::PerHost(Arc::new(strategies));
        Ok(Self::with(SharedWorld::new(world), strategies))
    }

    /// Takes time and randomness from this world, and waits in it: the timer of another
    /// executor, or a [`VirtualWorld`](steadfast::VirtualWorld) in a test.
    #[must_use]
    pub fn world<W>(mut self, world: W) -> Self
    where
        W: Timer<Sleep: Send + 'static> + Send + Sync + 'static,
    {
        self.inner().world = SharedWorld::new(world);
        self
    }

    /// Returns the budget of its strategy, if that has one. With a strategy for each
    /// host, it is the budget of the hosts that have none of their own yet.
    ///
    /// ```
    /// use std::time::Instant;
    /// use steadfast_http::HttpRetry;
    ///
    /// let retry = HttpRetry::guidance();
    /// assert_eq!(retry.budget().map(|budget| budget.level()), Some(500));
    /// ```
    pub fn budget(&self) -> Option<Budget> {
        self.inner.strategies.common().info().budget().cloned()
    }

    /// Returns the budget that requests to this host and port pay from, such as
    /// `"example.com:443"`.
    pub fn budget_of(&self, address: &str) -> Option<Budget> {
        match &self.inner.strategies {
            Strategies::Shared(_) => self.budget(),
            Strategies::PerHost(strategies) => {
                let strategy = strategies.for_host(address.to_ascii_lowercase());
                strategy.info().budget().cloned()
            }
        }
    }

    /// Limits the time of each request: attempts and waits, up to the head of the
    /// response.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner().timeout = Some(timeout);
        self
    }

    /// Limits the time of each attempt. An attempt that takes longer counts as in
    /// flight.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.inner().attempt_timeout = Some(timeout);
        self
    }

    /// Sets what happens if a retry's delay reaches the deadline. By default the request
    /// fails at once, whatever the strategy: the caller gets the response that it has.
    #[must_use]
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.inner().when_too_late = rule;
        self
    }

    /// Classifies outcomes with this classifier.
    #[must_use]
    pub fn classify(mut self, classifier: HttpClassifier) -> Self {
        self.inner().classifier = classifier;
        self
    }

    /// States which requests are idempotent besides those that
    /// [`is_idempotent`](crate::is_idempotent) knows, such as a search by `POST`.
    ///
    /// ```
    /// # use steadfast_http::HttpRetry;
    /// let retry = HttpRetry::guidance().also_idempotent(|request| request.path == "/search");
    /// # let _ = retry;
    /// ```
    ///
    /// If the rule panics, its request is not idempotent. It is sent once, and if that fails, it
    /// fails with the panic ([D13](steadfast::decisions#d13)).
    #[must_use]
    pub fn also_idempotent(
        mut self,
        idempotent: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.inner().idempotent = Some(Arc::new(idempotent));
        self
    }

    /// Adds an `Idempotency-Key` to every request that is not idempotent and has none.
    /// Each request gets its own key, the same in all its attempts, and so becomes
    /// idempotent.
    ///
    /// Use this only for servers that honour the header. Other servers apply a repeated
    /// request again.
    #[must_use]
    pub fn generate_idempotency_keys(mut self) -> Self {
        self.inner().generate_keys = true;
        self
    }

    /// Keeps this many bytes of a streamed body, to send it again; 64 KiB by default. A
    /// request that has sent more is not retried, and its history says why. A body in
    /// memory has no limit.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.inner().body_limit = bytes;
        self
    }

    /// States that the client follows no redirects by itself.
    ///
    /// A server that redirects a `POST` may have applied it. So a `POST` is not sent
    /// again if the client may have followed a redirect, not even after a 429 or a
    /// refused connection. Two cases do not need this setting: hyper's client
    /// directly under the tower layer, and a reqwest client that
    /// `steadfast_http::reqwest::watch_redirects` built. Others do, for example
    /// hyper's client under a timeout layer, or reqwest with `Policy::none()`.
    #[must_use]
    pub fn without_redirects(mut self) -> Self {
        self.inner().without_redirects = true;
        self
    }

    /// Reports every retry and every refusal to `observer`.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static) -> Self {
        self.inner().observer = Some(Arc::new(observer));
        self
    }

    /// Returns the most that one request can do.
    pub fn worst_case(&self) -> WorstCase {
        let HttpSettings {
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
        strategies.common().info().worst_case(&limits)
    }

    fn with(world: SharedWorld, strategies: Strategies) -> Self {
        let inner = HttpSettings {
            strategies,
            classifier: HttpClassifier::default(),
            idempotent: None,
            timeout: None,
            attempt_timeout: None,
            when_too_late: WhenTooLate::FailFast,
            body_limit: DEFAULT_BODY_LIMIT,
            without_redirects: false,
            generate_keys: false,
            observer: None,
            world,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    fn inner(&mut self) -> &mut HttpSettings {
        Arc::make_mut(&mut self.inner)
    }

    #[cfg(feature = "tower")]
    pub(crate) fn body_limit_bytes(&self) -> usize {
        self.inner.body_limit
    }
}

/// The world of the requests, with the observer of the settings.
impl World for HttpSettings {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        self.world.observe(event);
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}

impl Timer for HttpSettings {
    type Sleep = BoxSleep;

    fn sleep(&self, delay: Duration) -> BoxSleep {
        self.world.sleep(delay)
    }
}

impl fmt::Debug for HttpRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HttpSettings {
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

/// Rejects a strategy that would retry forever without a timeout.
pub(crate) fn require_bound(strategy: &dyn RetryStrategy) -> Result<(), InvalidSetting> {
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
    fn a_strategy_without_a_bound_is_rejected_when_it_is_set() {
        let expected = "invalid retry setting: timeout is missing: \
                        nothing else bounds the attempts of this strategy";
        let error = HttpRetry::new(BestEffort::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let error = HttpRetry::per_host(BestEffort::default).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(HttpRetry::new(BestEffort::default().max_attempts(3).unwrap()).is_ok());
        let retry = HttpRetry::within(Duration::from_secs(1), BestEffort::default());
        assert_eq!(retry.worst_case().wall_time, Some(Duration::from_secs(1)));
    }

    #[test]
    fn the_presets_bound_the_attempts() {
        for (retry, attempts) in [
            (HttpRetry::guidance(), 5),
            (HttpRetry::aws_2_0(), 3),
            (HttpRetry::aws_2_1(), 3),
            (HttpRetry::adaptive(), 5),
            (HttpRetry::fleet(), 4),
            (HttpRetry::default(), 4),
        ] {
            assert_eq!(retry.worst_case().attempts, Some(attempts));
        }
    }
}
