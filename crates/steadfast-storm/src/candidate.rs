//! Strategies under test, by name.

use std::fmt;
use std::sync::Arc;

use steadfast::strategy::WhenLimited;
use steadfast::{Adaptive, Backoff, BestEffort, FailFast, RetryStrategy, Standard, StrategyExt};

/// A strategy under test. Each client gets an instance of its own: in production, too,
/// budgets and send rates belong to one client.
#[derive(Clone)]
pub struct Candidate {
    name: String,
    make: Arc<dyn Fn() -> Arc<dyn RetryStrategy> + Send + Sync>,
}

impl Candidate {
    /// Creates a candidate with a name and a function that makes its strategy.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use steadfast::{BestEffort, Budget, StrategyExt};
    /// use steadfast_storm::Candidate;
    ///
    /// let small_budget = Candidate::new("small-budget", || {
    ///     let budget = Budget::builder().capacity(100).build().expect("a valid budget");
    ///     Arc::new(BestEffort::default().with_budget(budget))
    /// });
    /// # let _ = small_budget;
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

    /// Never retries.
    pub fn no_retry() -> Self {
        Self::new("no-retry", || Arc::new(FailFast::new()))
    }

    /// Makes three attempts without delays, whatever the service says: a typical
    /// hand-written loop.
    pub fn immediate() -> Self {
        Self::new("immediate", || {
            let strategy = BestEffort::new(Backoff::none())
                .max_attempts(3)
                .expect("three is a valid number of attempts");
            Arc::new(strategy)
        })
    }

    /// RFC 0049's best effort: retries until the deadline.
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

    /// Smithy's guidance with a send rate that adapts to throttling.
    pub fn adaptive() -> Self {
        Self::new("adaptive", || {
            Arc::new(Adaptive::new(Standard::guidance(), WhenLimited::Wait))
        })
    }

    /// Returns all of the above.
    pub fn all() -> Vec<Self> {
        vec![
            Self::no_retry(),
            Self::immediate(),
            Self::best_effort(),
            Self::guidance(),
            Self::aws_2_0(),
            Self::aws_2_1(),
            Self::adaptive(),
        ]
    }

    /// Finds one of [`Candidate::all`] by its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all()
            .into_iter()
            .find(|candidate| candidate.name == name)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a strategy for one client.
    pub(crate) fn make(&self) -> Arc<dyn RetryStrategy> {
        (self.make)()
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_found_by_its_name() {
        for candidate in Candidate::all() {
            let found = Candidate::by_name(&candidate.name).map(|found| found.name);
            assert_eq!(found, Some(candidate.name));
        }
        assert!(Candidate::by_name("unknown").is_none());
    }
}
