//! Budgets for the allocations and instructions of the engine's calls. `--check` holds the
//! engine to them on any machine, however busy, with 3 % of slack for what moves from build
//! to build.
//!
//! They hold for x86-64 and the compiler that the workspace is built with.

use steadfast_benches::measure::Unmeasured;

use crate::contenders::{
    BEST_EFFORT, LOAD_AWARE, OWN, STANDARD, STANDARD_DEADLINE, STANDARD_DYN, WRAPPER,
};
use crate::exact::Exact;
use crate::finding::Finding;
use crate::scenario::Scenario::{self, FirstTry, OneFailure};

/// The most that one row may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) contender: &'static str,
    pub(crate) scenario: Scenario,
    instructions: f64,
    /// Looks at the clock that it may take on top.
    clock_reads: f64,
    allocations: f64,
}

/// The part of a budget that may be exceeded.
const SLACK: f64 = 1.03;

pub(crate) const LIMITS: [Limit; 14] = [
    first_try(BEST_EFFORT, 250.0, 0.0),
    first_try(STANDARD, 260.0, 0.0),
    first_try(STANDARD_DYN, 320.0, 0.0),
    first_try(STANDARD_DEADLINE, 280.0, 1.0),
    first_try(LOAD_AWARE, 360.0, 0.0),
    first_try(OWN, 250.0, 0.0),
    first_try(WRAPPER, 260.0, 0.0),
    one_failure(BEST_EFFORT, 1250.0),
    one_failure(STANDARD, 1400.0),
    one_failure(STANDARD_DYN, 1450.0),
    one_failure(STANDARD_DEADLINE, 1850.0),
    Limit {
        // It is around a strategy with a budget, so its token notes two payments.
        allocations: 3.0,
        ..one_failure(LOAD_AWARE, 3600.0)
    },
    one_failure(OWN, 1100.0),
    one_failure(WRAPPER, 1400.0),
];

impl Limit {
    /// Holds what was measured against it, given the instructions that one look
    /// at the clock takes.
    pub(crate) fn judge(&self, exact: &Exact, clock: &Result<f64, Unmeasured>) -> Vec<Finding> {
        let row = format!("{}, {}", self.contender, self.scenario);
        let mut findings = vec![self.judge_instructions(&row, exact, clock)];
        findings.push(Finding::new(
            format!("{row}: at most {} allocations", self.allocations),
            format!("{}", exact.allocations),
            exact.allocations <= self.allocations,
        ));
        findings
    }

    fn judge_instructions(
        &self,
        row: &str,
        exact: &Exact,
        clock: &Result<f64, Unmeasured>,
    ) -> Finding {
        let on_top = match self.clock_reads {
            0.0 => String::new(),
            reads => format!(" and {reads} × the clock"),
        };
        let target = format!("{row}: at most {} instructions{on_top}", self.instructions);
        let (instructions, clock) = match (&exact.instructions, clock) {
            (Ok(instructions), Ok(clock)) => (instructions.round(), clock.round()),
            (Err(why), _) | (_, Err(why)) => return Finding::unmeasured(target, why),
        };
        let limit = (self.instructions + self.clock_reads * clock) * SLACK;
        Finding::new(target, format!("{instructions}"), instructions <= limit)
    }
}

const fn first_try(contender: &'static str, instructions: f64, clock_reads: f64) -> Limit {
    Limit {
        contender,
        scenario: FirstTry,
        instructions,
        clock_reads,
        allocations: 0.0,
    }
}

/// With a deadline, its looks at the clock are part of the count. The state of a request
/// that failed is one allocation.
const fn one_failure(contender: &'static str, instructions: f64) -> Limit {
    Limit {
        contender,
        scenario: OneFailure,
        instructions,
        clock_reads: 0.0,
        allocations: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(limit: &Limit, instructions: f64, allocations: f64) -> Vec<bool> {
        let exact = Exact {
            allocations,
            instructions: Ok(instructions),
        };
        let findings = limit.judge(&exact, &Ok(30.0));
        findings.iter().map(Finding::is_met).collect()
    }

    #[test]
    fn a_row_at_its_limit_is_within_it_and_more_is_not() {
        let limit = first_try(STANDARD, 260.0, 0.0);
        assert_eq!(judged(&limit, 103.0, 0.0), [true, true]);
        assert_eq!(judged(&limit, 104.0, 0.0), [false, true]);
        assert_eq!(judged(&limit, 100.0, 0.001), [true, false]);
    }

    #[test]
    fn a_look_at_the_clock_is_allowed_on_top_where_it_is_needed() {
        let limit = first_try(STANDARD_DEADLINE, 280.0, 1.0);
        assert_eq!(judged(&limit, 103.0, 0.0), [true, true]);
        assert_eq!(judged(&limit, 104.0, 0.0), [false, true]);
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let exact = Exact {
            allocations: 0.0,
            instructions: Err(Unmeasured::NoValgrind),
        };
        let findings = first_try(STANDARD, 260.0, 0.0).judge(&exact, &Ok(30.0));
        assert!(!findings[0].is_met());
        assert!(findings[0].to_string().contains("no valgrind"));
    }
}
