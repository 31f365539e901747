//! Measures what a retry layer adds to a call that succeeds at the first attempt, and compares
//! it with the limits of ours.
//!
//! Allocations are counted in this process, in the calling thread. Instructions are
//! counted by callgrind in another run of this program, with the server on the calling
//! thread. Its share is the same for all contenders of a group, and falls out of the
//! difference to the bare client.

use steadfast_benches::{SLACK, Unmeasured, allocations_per_call, instructions_between};

use crate::groups::{Contender, GROUPS, Group};
use crate::runtime;
use crate::server::Server;

const FEW: u64 = 200;
const MANY: u64 = 1000;

/// The cost of a call.
struct Cost {
    allocations: f64,
    instructions: Result<f64, Unmeasured>,
}

/// Prints what each contender adds to the bare client, the first of its group. Returns whether
/// all limits are kept.
pub(crate) fn report() -> bool {
    let server = Server::start();
    let runtime = runtime();
    let mut kept = true;
    for group in &GROUPS {
        println!("\n{}\n", group.title);
        let contenders = group.contenders(&runtime, &server);
        let (bare, others) = contenders.split_first().expect("a group has a bare client");
        let bare = Cost::of(group, bare);
        for contender in others {
            let added = Cost::of(group, contender).beyond(&bare);
            let judged = contender
                .limit
                .map_or(Ok("no limit"), |(allocations, most)| {
                    added.judge(allocations, most)
                });
            kept &= judged.is_ok();
            let verdict = judged.unwrap_or_else(|problem| problem);
            let instructions = match &added.instructions {
                Ok(count) => format!("{count:.0}"),
                Err(why) => why.to_string(),
            };
            println!(
                "{:40} {:.2} allocations, {instructions:>5} instructions: {verdict}",
                contender.name, added.allocations
            );
        }
    }
    kept
}

/// Makes calls, so that callgrind can count what they take.
pub(crate) fn make_calls(group: &str, contender: &str, calls: u64) -> Result<(), String> {
    let found = GROUPS.iter().find(|each| each.name == group);
    let group = found.ok_or_else(|| format!("no group is called {group:?}"))?;
    let runtime = runtime();
    let server = Server::start_on(&runtime);
    let contenders = group.contenders(&runtime, &server);
    let found = contenders.iter().find(|each| each.name == contender);
    let contender = found.ok_or_else(|| format!("no contender is called {contender:?}"))?;
    (contender.calls)(calls);
    Ok(())
}

impl Cost {
    fn of(group: &Group, contender: &Contender<'_>) -> Self {
        let arguments = |calls: u64| {
            let calls = calls.to_string();
            [group.name, contender.name, &calls]
                .map(str::to_owned)
                .to_vec()
        };
        Self {
            allocations: allocations_per_call(&contender.calls),
            instructions: instructions_between(FEW, MANY, arguments),
        }
    }

    fn beyond(self, bare: &Self) -> Self {
        let bare_instructions = bare.instructions.clone();
        Self {
            allocations: self.allocations - bare.allocations,
            instructions: self
                .instructions
                .and_then(|each| bare_instructions.map(|bare| each - bare)),
        }
    }

    /// Says what exceeds a limit. Allocations have no slack, and what could not be measured is
    /// not kept.
    fn judge(&self, allocations: f64, instructions: f64) -> Result<&'static str, &'static str> {
        let Ok(measured) = self.instructions else {
            return Err("NOT MEASURED");
        };
        // Buffers of a connection grow once in hundreds of calls.
        if (self.allocations * 10.0).round() / 10.0 > allocations {
            Err("TOO MANY ALLOCATIONS")
        } else if measured > instructions * SLACK {
            Err("TOO MANY INSTRUCTIONS")
        } else {
            Ok("within its limit")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_kept(allocations: f64, instructions: Result<f64, Unmeasured>) -> bool {
        let added = Cost {
            allocations,
            instructions,
        };
        added.judge(2.0, 1000.0).is_ok()
    }

    #[test]
    fn instructions_have_three_percent_of_slack_and_allocations_none() {
        assert!(is_kept(2.0, Ok(1030.0)));
        assert!(is_kept(2.002, Ok(1000.0)));
        assert!(!is_kept(2.1, Ok(1000.0)));
        assert!(!is_kept(2.0, Ok(1031.0)));
    }

    #[test]
    fn a_limit_that_was_not_measured_is_not_kept() {
        assert!(!is_kept(0.0, Err(Unmeasured::NoValgrind)));
    }
}
