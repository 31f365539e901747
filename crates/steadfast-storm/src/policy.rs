//! A strategy by name, made anew for each client of a fleet.

use std::fmt;
use std::sync::Arc;

use steadfast::FailFast;
use steadfast::{Adaptive, Backoff, BestEffort, RetryStrategy, Standard, StrategyExt, WhenLimited};

/// How the clients of a fleet retry. Each client gets a strategy of its own, so that
/// budgets and send rates are those of one client, as they are in production.
#[derive(Clone)]
pub struct Policy {
    name: String,
    make: Arc<dyn Fn() -> Arc<dyn RetryStrategy> + Send + Sync>,
}

impl Policy {
    /// A policy of one's own.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use steadfast::{BestEffort, Budget, StrategyExt};
    /// use steadfast_storm::Policy;
    ///
    /// let thrifty = Policy::new("thrifty", || {
    ///     let budget = Budget::builder().capacity(100).build().expect("a possible budget");
    ///     Arc::new(BestEffort::default().with_budget(budget))
    /// });
    /// # let _ = thrifty;
    /// ```
    pub fn new(
        name: impl Into<String>,
        make: impl Fn() -> Arc<dyn RetryStrategy> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(make),
        }
    }

    /// No retries.
    pub fn fail_fast() -> Self {
        Self::new("fail-fast", || Arc::new(FailFast::new()))
    }

    /// What a loop of a few lines does: three attempts, one right after the other,
    /// whatever the peer says.
    pub fn at_once() -> Self {
        Self::new("at-once", || {
            let strategy = BestEffort::new(Backoff::none())
                .max_attempts(3)
                .expect("three is a number of attempts");
            Arc::new(strategy)
        })
    }

    /// RFC 0049's best effort: until the deadline.
    pub fn best_effort() -> Self {
        Self::new("best-effort", || Arc::new(BestEffort::default()))
    }

    /// Smithy's guidance: five attempts, full jitter, a budget.
    pub fn guidance() -> Self {
        Self::new("guidance", || Arc::new(Standard::guidance()))
    }

    /// The AWS SDKs' standard mode before 2.1.
    pub fn aws_2_0() -> Self {
        Self::new("aws-2.0", || Arc::new(Standard::aws_2_0()))
    }

    /// The AWS SDKs' standard mode, 2.1.
    pub fn aws_2_1() -> Self {
        Self::new("aws-2.1", || Arc::new(Standard::aws_2_1()))
    }

    /// Smithy's guidance with a send rate that follows the throttling.
    pub fn adaptive() -> Self {
        Self::new("adaptive", || {
            Arc::new(Adaptive::new(Standard::guidance(), WhenLimited::Wait))
        })
    }

    /// The names of all that have one here.
    pub const NAMES: [&str; 7] = [
        "fail-fast",
        "at-once",
        "best-effort",
        "guidance",
        "aws-2.0",
        "aws-2.1",
        "adaptive",
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "fail-fast" => Self::fail_fast(),
            "at-once" => Self::at_once(),
            "best-effort" => Self::best_effort(),
            "guidance" => Self::guidance(),
            "aws-2.0" => Self::aws_2_0(),
            "aws-2.1" => Self::aws_2_1(),
            "adaptive" => Self::adaptive(),
            _ => return None,
        })
    }

    /// All that have a name here.
    pub fn all() -> Vec<Self> {
        Self::NAMES.into_iter().filter_map(Self::named).collect()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A strategy for one client.
    pub(crate) fn make(&self) -> Arc<dyn RetryStrategy> {
        (self.make)()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_name() {
        let names: Vec<_> = Policy::all()
            .iter()
            .map(|policy| policy.name.clone())
            .collect();
        assert_eq!(names, Policy::NAMES);
        assert!(Policy::named("hopeful").is_none());
    }
}
