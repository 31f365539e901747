//! Bisection of the load, the capacity or the size of the fleet at which recovery stops.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::model::{Arrivals, Distribution, InvalidScenario, Scenario};
use crate::policies::Policy;

/// The bisection ends when the two ends differ by less than this factor.
const CLOSE: f64 = 1.01;

/// A setting of a scenario that is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// The rate of new requests.
    Rate,
    /// The number of requests that the service can process in a second.
    Capacity,
    /// The number of clients, which share the same load.
    Clients,
}

/// The place at which recovery stops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// Between two values: at the first most runs recover, at the second they do not.
    Between(f64, f64),
    /// Most runs recover at both ends of the range.
    Recovers,
    /// Most runs do not recover, at both ends of the range.
    Fails,
}

impl Axis {
    /// Returns the scenario with another value of this setting.
    pub fn set(self, scenario: &Scenario, value: f64) -> Scenario {
        let mut scenario = scenario.clone();
        match self {
            Self::Rate => scenario.arrivals = Arrivals::Open(value),
            Self::Clients => scenario.clients.count = value.round() as u32,
            Self::Capacity => scenario.scale_capacity(value),
        }
        scenario
    }
}

impl Scenario {
    /// Scales the service times, so that the service has this capacity.
    pub(crate) fn scale_capacity(&mut self, capacity: f64) {
        let factor = self.capacity() / capacity;
        match &mut self.service.service_time {
            Distribution::Constant(mean) | Distribution::Exponential(mean) => *mean *= factor,
            Distribution::LogNormal { mean, .. } => *mean *= factor,
            Distribution::Normal { mean, deviation } => {
                *mean *= factor;
                *deviation *= factor;
            }
            Distribution::Bimodal { fast, slow, .. } => {
                *fast *= factor;
                *slow *= factor;
            }
        }
    }
}

/// Finds where recovery stops between two values of a setting. A value counts as one that
/// recovers if more than half of the seeds do.
///
/// # Errors
/// If the scenario is invalid with one of the values.
pub fn boundary(
    scenario: &Scenario,
    policy: &Policy,
    axis: Axis,
    (low, high): (f64, f64),
    seeds: Range<u64>,
) -> Result<Boundary, InvalidScenario> {
    let recovers = |value: f64| {
        let trials = axis
            .set(scenario, value)
            .compare(std::slice::from_ref(policy), seeds.clone())?;
        Ok(trials[0].recovered.share > 0.5)
    };
    let (mut good, mut bad) = match (recovers(low)?, recovers(high)?) {
        (true, true) => return Ok(Boundary::Recovers),
        (false, false) => return Ok(Boundary::Fails),
        (true, false) => (low, high),
        (false, true) => (high, low),
    };
    while (good / bad).max(bad / good) > CLOSE && (axis != Axis::Clients || apart(good, bad)) {
        let middle = (good * bad).sqrt();
        if recovers(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(Boundary::Between(good, bad))
}

/// Returns whether there is a whole number between the two.
fn apart(good: f64, bad: f64) -> bool {
    (good.round() - bad.round()).abs() > 1.0
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between(good, bad) => write!(f, "recovers at {good:.0}, not at {bad:.0}"),
            Self::Recovers => f.write_str("recovers in the whole range"),
            Self::Fails => f.write_str("does not recover in the whole range"),
        }
    }
}
