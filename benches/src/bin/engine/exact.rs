//! Exact numbers, which do not depend on the load of the machine.

use steadfast_benches::measure::{Unmeasured, allocations_per_call, instructions_per_call};

use crate::contenders::{CLOCK, Contender, named};
use crate::scenario::Scenario;

/// The argument by which the program tells itself to make calls and no more.
pub(crate) const CALLS: &str = "calls";

/// What one call takes, whenever it is made.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    pub(crate) allocations: f64,
    pub(crate) instructions: Result<f64, Unmeasured>,
}

impl Exact {
    pub(crate) fn measure(contender: &Contender, scenario: Scenario) -> Self {
        Self {
            allocations: allocations_per_call(&contender.workload(scenario)),
            instructions: instructions_per_call(|calls| {
                vec![
                    CALLS.to_owned(),
                    contender.name.to_owned(),
                    scenario.to_string(),
                    calls.to_string(),
                ]
            }),
        }
    }
}

/// The instructions that one look at the clock takes.
pub(crate) fn price_of_the_clock() -> Result<f64, Unmeasured> {
    let clock = named(CLOCK).expect("the clock is among the contenders");
    Exact::measure(&clock, Scenario::FirstTry).instructions
}

/// Makes calls, so that somebody else can count what they take.
pub(crate) fn make_calls(name: &str, scenario: &str, calls: &str) -> Result<(), String> {
    let contender = named(name).ok_or_else(|| format!("no contender is called {name:?}"))?;
    let scenario =
        Scenario::named(scenario).ok_or_else(|| format!("no scenario is called {scenario:?}"))?;
    let calls = calls
        .parse()
        .map_err(|error| format!("{calls:?} is no number of calls: {error}"))?;
    contender.workload(scenario)(calls);
    Ok(())
}
