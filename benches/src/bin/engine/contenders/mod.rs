//! The contenders. Each file is one contender's shortest honest way to
//! make the same call: at most three attempts, or as many as a budget allows,
//! and no delay between them.

#[cfg(feature = "peers")]
mod backon;
mod floors;
#[cfg(feature = "peers")]
mod smithy;
mod steadfast;
#[cfg(feature = "peers")]
mod tokio_retry2;
#[cfg(feature = "peers")]
mod tower;

use std::time::Duration;

use crate::scenario::Scenario;

/// How many attempts a contender makes that counts them.
const ATTEMPTS: u32 = 3;
/// A deadline that no call comes near.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) const AWAIT: &str = "a bare await";
pub(crate) const LOOP: &str = "a hand-written loop";
pub(crate) const CLOCK: &str = "one read of tokio's clock";
pub(crate) const BEST_EFFORT: &str = "steadfast, best effort";
pub(crate) const STANDARD: &str = "steadfast, standard";
pub(crate) const STANDARD_DYN: &str = "steadfast, standard as &dyn";
pub(crate) const STANDARD_DEADLINE: &str = "steadfast, standard with a deadline";
pub(crate) const LOAD_AWARE: &str = "steadfast, load-aware";
pub(crate) const OWN: &str = "steadfast, a user's strategy";
pub(crate) const WRAPPER: &str = "steadfast, a user's wrapper of standard";
pub(crate) const TOWER: &str = "tower, retry with its budget";
pub(crate) const SMITHY: &str = "smithy, its strategy alone";

/// Makes calls, with state that all its calls share.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Whether it tries again at all.
    pub(crate) retries: bool,
    /// Whether its calls share a budget, on whichever thread they are made.
    pub(crate) shares: bool,
    calls: Box<dyn Fn(u32, u64) + Sync>,
}

/// All of them, afresh: no two lists share a budget.
pub(crate) fn all() -> Vec<Contender> {
    let mut all = vec![floors::bare_await(), floors::hand_written_loop()];
    all.extend(steadfast::all());
    #[cfg(feature = "peers")]
    all.extend([
        backon::contender(),
        tokio_retry2::contender(),
        tower::contender(),
        smithy::contender(),
    ]);
    all.push(floors::clock());
    all
}

/// One of them, afresh.
pub(crate) fn named(name: &str) -> Option<Contender> {
    all().into_iter().find(|contender| contender.name == name)
}

impl Contender {
    fn new(name: &'static str, calls: impl Fn(u32, u64) + Sync + 'static) -> Self {
        Self {
            name,
            retries: true,
            shares: false,
            calls: Box::new(calls),
        }
    }

    fn without_retries(mut self) -> Self {
        self.retries = false;
        self
    }

    fn sharing_a_budget(mut self) -> Self {
        self.shares = true;
        self
    }

    /// Runs a scenario a given number of times.
    pub(crate) fn workload(&self, scenario: Scenario) -> impl Fn(u64) + Sync {
        move |calls| (self.calls)(scenario.failures(), calls)
    }
}
