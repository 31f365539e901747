//! The ways to make settings that wait on tokio's timer.

use std::sync::Arc;
use std::time::Duration;

use steadfast::strategy::WhenLimited;
use steadfast::world::{SharedWorld, SystemWorld};
use steadfast::{Adaptive, InvalidSetting, LoadAware, RetryStrategy, Standard};

use super::per_host::PerHost;
use super::{HttpRetry, Strategies, require_bound};

/// Waits on tokio's timer.
impl HttpRetry {
    /// Uses the numbers of the Smithy guidance, with one budget for all hosts.
    /// See [`Standard::guidance`].
    pub fn guidance() -> Self {
        Self::from_strategies(Strategies::Shared(Arc::new(Standard::guidance())))
    }

    /// Uses retry behaviour 2.0 of the AWS SDKs. See [`Standard::aws_2_0`].
    pub fn aws_2_0() -> Self {
        Self::from_strategies(Strategies::Shared(Arc::new(Standard::aws_2_0())))
    }

    /// Uses retry behaviour 2.1 of the AWS SDKs. See [`Standard::aws_2_1`].
    pub fn aws_2_1() -> Self {
        Self::from_strategies(Strategies::Shared(Arc::new(Standard::aws_2_1())))
    }

    /// Uses the numbers of the Smithy guidance, and for each host a send rate that
    /// follows its throttling. See [`Adaptive`].
    pub fn adaptive() -> Self {
        let adaptive = || Adaptive::new(Standard::guidance(), WhenLimited::Wait);
        Self::from_strategies(Strategies::PerHost(Arc::new(PerHost::new(adaptive))))
    }

    /// Uses [`LoadAware::fleet`] for each host and port: for fleets of very many quiet
    /// clients, such as phones. From the 1025th host on, hosts share one.
    ///
    /// A request that it sheds is not sent: see
    /// [`Error::is_shed`](steadfast::Error::is_shed).
    pub fn fleet() -> Self {
        Self::from_strategies(Strategies::PerHost(Arc::new(PerHost::new(
            LoadAware::fleet,
        ))))
    }

    /// Uses a strategy of your own for all hosts. Clones of a strategy share its
    /// budget.
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself; see
    /// [`within`](Self::within).
    pub fn new(strategy: impl RetryStrategy + 'static) -> Result<Self, InvalidSetting> {
        require_bound(&strategy)?;
        Ok(Self::from_strategies(Strategies::Shared(Arc::new(
            strategy,
        ))))
    }

    /// Uses a strategy of your own for this time at most. The strategy need not
    /// bound the attempts.
    pub fn within(timeout: Duration, strategy: impl RetryStrategy + 'static) -> Self {
        Self::from_strategies(Strategies::Shared(Arc::new(strategy))).timeout(timeout)
    }

    /// Uses a strategy, and so a budget, for each host and port. A host that fails
    /// does not use up the budget of others. From the 1025th host on, hosts share
    /// one.
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself.
    pub fn per_host<S: RetryStrategy + 'static>(
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<Self, InvalidSetting> {
        Self::per_host_in(SystemWorld, make)
    }

    fn from_strategies(strategies: Strategies) -> Self {
        Self::with(SharedWorld::new(SystemWorld), strategies)
    }
}

/// The default is [`LoadAware::new`] for each host and port, without a time limit: at most
/// four attempts. The waits between them are short, except after a lone timeout, which waits
/// 5 to 15 s. Set [`timeout`](HttpRetry::timeout) to bound the time of a request.
impl Default for HttpRetry {
    fn default() -> Self {
        Self::from_strategies(Strategies::PerHost(Arc::new(PerHost::new(LoadAware::new))))
    }
}
