//! Exact numbers, which do not depend on the load of the machine.
//!
//! Allocations are counted in this process, in the calling thread. Instructions are
//! counted by callgrind in another run of this program, with the server on the calling
//! thread. Its share is the same for all contenders of a group, and falls out of the
//! difference to the bare client.

use steadfast_benches::measure::{Unmeasured, allocations_per_call, instructions_between};

use crate::groups::{Contender, GROUPS, Group};
use crate::runtime;
use crate::server::Server;

/// The argument by which the program tells itself to make calls and no more.
pub(crate) const CALLS: &str = "calls";

const FEW: u64 = 200;
const MANY: u64 = 1000;

/// The cost of one call on top of the bare client's.
pub(crate) struct Added {
    pub(crate) allocations: f64,
    pub(crate) instructions: Result<f64, Unmeasured>,
}

/// Measures all contenders of a group.
pub(crate) fn measure(group: &Group, contenders: &[Contender<'_>]) -> Vec<Added> {
    let costs: Vec<Added> = contenders
        .iter()
        .map(|contender| Added {
            allocations: allocations_per_call(&contender.calls),
            instructions: instructions(group, contender),
        })
        .collect();
    let Some(bare) = costs.first() else {
        return costs;
    };
    let (allocations, instructions) = (bare.allocations, bare.instructions.clone());
    let added = |cost: Added| Added {
        allocations: cost.allocations - allocations,
        instructions: cost
            .instructions
            .and_then(|each| instructions.clone().map(|bare| each - bare)),
    };
    costs.into_iter().map(added).collect()
}

fn instructions(group: &Group, contender: &Contender<'_>) -> Result<f64, Unmeasured> {
    instructions_between(FEW, MANY, |calls| {
        let calls = calls.to_string();
        [CALLS, group.name, contender.name, &calls]
            .map(str::to_owned)
            .to_vec()
    })
}

/// Makes calls, so that callgrind can count what they take.
pub(crate) fn make_calls(group: &str, contender: &str, calls: &str) -> Result<(), String> {
    let found = GROUPS.iter().find(|each| each.name == group);
    let group = found.ok_or_else(|| format!("no group is called {group:?}"))?;
    let calls = calls
        .parse()
        .map_err(|error| format!("{calls:?} is no number of calls: {error}"))?;
    let runtime = runtime();
    let server = Server::start_on(&runtime);
    let contenders = group.contenders(&runtime, &server);
    let found = contenders.iter().find(|each| each.name == contender);
    let contender = found.ok_or_else(|| format!("no contender is called {contender:?}"))?;
    (contender.calls)(calls);
    Ok(())
}
