//! Limits on what an integration adds to a call that succeeds at the first attempt.
//! `--check` fails if one is exceeded, on any machine, however busy.
//!
//! Allocations have no slack. Instructions have 3 %, because they move a little from
//! build to build. They hold for x86-64 and for the compiler of the workspace.

use std::fmt;

use crate::exact::{self, Added};
use crate::groups::GROUPS;
use crate::runtime;
use crate::server::Server;

const SLACK: f64 = 1.03;

/// The most that a contender may add to the bare client.
struct Limit {
    group: &'static str,
    contender: &'static str,
    allocations: f64,
    instructions: f64,
}

const LIMITS: [Limit; 13] = [
    limit("memory", "steadfast, HttpRetryLayer", 0.0, 1256.0),
    limit(
        "memory",
        "steadfast, HttpRetryLayer, time limit",
        0.0,
        1308.0,
    ),
    limit("memory", "steadfast, RetryLayer", 1.0, 1975.0),
    limit("hyper", "steadfast, HttpRetryLayer", 1.0, 2829.0),
    limit(
        "hyper",
        "steadfast, HttpRetryLayer, time limit",
        2.0,
        4443.0,
    ),
    limit("reqwest", "steadfast, send_with_retry", 1.0, 2966.0),
    limit(
        "reqwest",
        "steadfast, send_with_retry, time limit",
        2.0,
        4011.0,
    ),
    limit("reqwest", "steadfast, RetryMiddleware", 4.0, 5482.0),
    limit(
        "reqwest",
        "steadfast, RetryMiddleware, time limit",
        5.0,
        6661.0,
    ),
    // Here only allocations are checked: the instructions of the bare clients vary by more
    // from run to run than 3 % of what is added.
    limit("tonic", "steadfast, RetryChannel", 2.0, f64::INFINITY),
    limit(
        "tonic",
        "steadfast, RetryChannel, time limit",
        3.0,
        f64::INFINITY,
    ),
    limit("tonic", "steadfast, StatusClassifier", 1.0, f64::INFINITY),
    limit("aws", "steadfast, AwsRetry", 4.0, f64::INFINITY),
];

const fn limit(
    group: &'static str,
    contender: &'static str,
    allocations: f64,
    instructions: f64,
) -> Limit {
    Limit {
        group,
        contender,
        allocations,
        instructions,
    }
}

/// Prints what each integration adds, and returns whether all limits are kept. A limit
/// that could not be measured is not kept.
pub(crate) fn check() -> bool {
    let server = Server::start();
    let runtime = runtime();
    let mut kept = true;
    for group in &GROUPS {
        let contenders = group.contenders(&runtime, &server);
        let added = exact::measure(group, &contenders);
        for limit in LIMITS.iter().filter(|limit| limit.group == group.name) {
            let named = contenders.iter().zip(&added);
            let mut named = named.filter(|(contender, _)| contender.name == limit.contender);
            let (_, added) = named.next().expect("limits are for contenders there are");
            let is_kept = limit.is_kept(added);
            let word = if is_kept { "kept" } else { "EXCEEDED" };
            println!("{word:>8}  {limit}; {added}");
            kept &= is_kept;
        }
    }
    kept
}

impl Limit {
    fn is_kept(&self, added: &Added) -> bool {
        let instructions = added.instructions.as_ref();
        // Buffers of a connection grow once in hundreds of calls.
        let allocations = (added.allocations * 10.0).round() / 10.0;
        allocations <= self.allocations
            && instructions.is_ok_and(|added| *added <= self.instructions * SLACK)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            contender,
            allocations,
            instructions,
        } = self;
        write!(f, "{group}, {contender}: at most {allocations} allocations")?;
        if instructions.is_finite() {
            write!(f, " and {:.0} instructions", instructions * SLACK)?;
        }
        Ok(())
    }
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and ", self.allocations)?;
        match &self.instructions {
            Ok(instructions) => write!(f, "{instructions:.0}"),
            Err(why) => write!(f, "{why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_benches::measure::Unmeasured;

    use super::*;

    fn is_kept(allocations: f64, instructions: Result<f64, Unmeasured>) -> bool {
        let added = Added {
            allocations,
            instructions,
        };
        limit("any", "any", 2.0, 1000.0).is_kept(&added)
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
