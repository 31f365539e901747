//! Policies under test, by name: strategies of the engine, and published ones.
//!
//! Each policy is a [`RetryStrategy`] that runs in the engine's orchestrator, so what is
//! compared is code that runs. A published policy is one reading of its specification; the
//! docs of its type give the source and the parameters. It has exponential backoff from
//! 100 ms to 20 s with full jitter, because its source says nothing about delays.

mod guarded;
mod published;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steadfast::config::StrategyConfig;
use steadfast::strategy::WhenLimited;
use steadfast::{
    Adaptive, Backoff, BestEffort, FailFast, Jitter, LoadAware, RetryStrategy, Standard,
    StrategyExt,
};

use crate::model::Clients;

/// A strategy under test. Each client gets its own instance: in production, too,
/// budgets and send rates belong to one client.
#[derive(Clone)]
pub struct Policy {
    name: String,
    make: Arc<Make>,
    by_endpoint: bool,
}

/// Makes the strategies of one client, for a number of endpoints. Without a scope there is one.
type Make = dyn Fn(&Clients, u32) -> Vec<Arc<dyn RetryStrategy>> + Send + Sync;

impl Policy {
    /// Creates a policy with a name and a function that makes its strategy. The scenario's
    /// limit of attempts is added.
    ///
    /// ```
    /// use steadfast::{BestEffort, Budget, StrategyExt};
    /// use steadfast_storm::Policy;
    ///
    /// let small_budget = Policy::new("small-budget", |_clients| {
    ///     let budget = Budget::builder().capacity(100).build().expect("a valid budget");
    ///     BestEffort::default().with_budget(budget)
    /// });
    /// # let _ = small_budget;
    /// ```
    pub fn new<S: RetryStrategy + 'static>(
        name: impl Into<String>,
        make: impl Fn(&Clients) -> S + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move |clients, _| vec![limited(make(clients), clients)]),
            by_endpoint: false,
        }
    }

    /// Creates a policy whose strategies share something in a client, such as a budget, and
    /// have something for each endpoint, such as a brake. `make` makes one for each of so
    /// many endpoints.
    pub fn by_endpoint<S: RetryStrategy + 'static>(
        name: impl Into<String>,
        make: impl Fn(&Clients, u32) -> Vec<S> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move |clients, endpoints| {
                let strategies = make(clients, endpoints).into_iter();
                strategies.map(|each| limited(each, clients)).collect()
            }),
            by_endpoint: true,
        }
    }

    /// Creates a policy from a strategy of a configuration file, which must be valid.
    pub fn from_config(name: impl Into<String>, config: StrategyConfig) -> Self {
        Self::new(name, move |_| {
            config.build().expect("the configuration was built before")
        })
    }

    /// Returns all named policies.
    pub fn all() -> Vec<Self> {
        let mut all = vec![
            Self::no_retry(),
            Self::immediate(),
            Self::exponential(),
            Self::full_jitter(),
            Self::best_effort(),
            Self::guidance(),
            Self::aws_2_0(),
            Self::aws_2_1(),
            Self::adaptive(),
            Self::load_aware(),
            Self::fleet(),
        ];
        all.extend(published::all());
        all
    }

    /// Never retries.
    pub fn no_retry() -> Self {
        Self::new("no-retry", |_| FailFast::new())
    }

    /// Retries without delays, whatever the service says: a typical hand-written loop. Three
    /// attempts, unless the scenario says otherwise.
    pub fn immediate() -> Self {
        Self::attempts("immediate", Backoff::none())
    }

    /// Exponential backoff from 100 ms to 20 s, without jitter.
    pub fn exponential() -> Self {
        let backoff = exponential().with_jitter(Jitter::None);
        Self::attempts("exponential", backoff)
    }

    /// Exponential backoff from 100 ms to 20 s, with full jitter.
    pub fn full_jitter() -> Self {
        Self::attempts("full-jitter", full_jitter())
    }

    /// Retries with a backoff: as often as the scenario allows, three attempts without such
    /// a limit.
    pub fn attempts(name: &str, backoff: Backoff) -> Self {
        Self::new(name, move |clients| {
            BestEffort::new(backoff.clone())
                .max_attempts(attempts(clients))
                .expect("a limit is at least 1")
        })
    }

    /// RFC 0049's best effort: retries until the deadline.
    pub fn best_effort() -> Self {
        Self::new("best-effort", |_| BestEffort::default())
    }

    /// Smithy's guidance: five attempts, full jitter, a budget.
    pub fn guidance() -> Self {
        Self::new("guidance", |_| Standard::guidance())
    }

    /// The AWS SDKs' standard mode before 2.1.
    pub fn aws_2_0() -> Self {
        Self::new("aws-2.0", |_| Standard::aws_2_0())
    }

    /// The AWS SDKs' standard mode, 2.1.
    pub fn aws_2_1() -> Self {
        Self::new("aws-2.1", |_| Standard::aws_2_1())
    }

    /// Smithy's guidance with a send rate that adapts to throttling.
    pub fn adaptive() -> Self {
        Self::new("adaptive", |_| {
            Adaptive::new(Standard::guidance(), WhenLimited::Wait)
        })
    }

    /// The engine's default for one client, for each endpoint.
    pub fn load_aware() -> Self {
        Self::by_endpoint("load-aware", |_, endpoints| {
            (0..endpoints).map(|_| LoadAware::new()).collect()
        })
    }

    /// The engine's setting for fleets of very many quiet clients, for each endpoint.
    pub fn fleet() -> Self {
        Self::by_endpoint("fleet", |_, endpoints| {
            (0..endpoints).map(|_| LoadAware::fleet()).collect()
        })
    }

    /// Finds one of [`Policy::all`] by its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|policy| policy.name == name)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a client has a strategy for each endpoint.
    pub(crate) const fn is_by_endpoint(&self) -> bool {
        self.by_endpoint
    }

    /// Makes the strategies of one client, for a number of endpoints.
    pub(crate) fn make(&self, clients: &Clients, endpoints: u32) -> Vec<Arc<dyn RetryStrategy>> {
        (self.make)(clients, endpoints)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Adds the scenario's limit of attempts.
fn limited(strategy: impl RetryStrategy + 'static, clients: &Clients) -> Arc<dyn RetryStrategy> {
    match clients.attempts {
        u32::MAX => Arc::new(strategy),
        limit => {
            let limited = strategy.max_attempts(limit);
            Arc::new(limited.expect("the scenario's limit is at least 1"))
        }
    }
}

/// Returns the number of attempts of policies that do not set it.
fn attempts(clients: &Clients) -> u32 {
    match clients.attempts {
        u32::MAX => 3,
        attempts => attempts,
    }
}

/// Returns the backoff of policies that have none of their own.
fn full_jitter() -> Backoff {
    exponential().with_jitter(Jitter::Full)
}

fn exponential() -> Backoff {
    Backoff::exponential(Duration::from_millis(100), Duration::from_secs(20))
        .expect("the base is below the cap")
}
