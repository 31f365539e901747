//! Limits on the allocations and instructions of the engine's calls. `--check` holds
//! the engine to them on any machine, however busy.
//!
//! Each row has an aim, which is what we set out to reach, and a limit, which is
//! what we did reach, and a little more for what moves from build to build. The
//! check fails above the limit; an aim that is missed is said and passes.
//!
//! They hold for x86-64 and the compiler that the workspace is built with; a
//! new compiler may move them by a few.

use steadfast_benches::measure::Unmeasured;

use crate::contenders::{BEST_EFFORT, LOAD_AWARE, STANDARD, STANDARD_DEADLINE, STANDARD_DYN};
use crate::exact::Exact;
use crate::finding::Finding;
use crate::scenario::Scenario::{self, FirstTry, OneFailure};

/// The most that one row may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) contender: &'static str,
    pub(crate) scenario: Scenario,
    aim: f64,
    instructions: f64,
    /// Looks at the clock that it may take on top.
    clock_reads: f64,
    allocations: f64,
}

pub(crate) const LIMITS: [Limit; 10] = [
    first_try(BEST_EFFORT, 120.0, 110.0, 0.0),
    first_try(STANDARD, 120.0, 123.0, 0.0),
    first_try(STANDARD_DYN, 170.0, 132.0, 0.0),
    first_try(STANDARD_DEADLINE, 130.0, 125.0, 1.0),
    first_try(LOAD_AWARE, 180.0, 152.0, 0.0),
    one_failure(BEST_EFFORT, 350.0, 452.0),
    one_failure(STANDARD, 350.0, 616.0),
    one_failure(STANDARD_DYN, 350.0, 700.0),
    one_failure(STANDARD_DEADLINE, 500.0, 809.0),
    one_failure(LOAD_AWARE, 1600.0, 1533.0),
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
        let limit = self.instructions + self.clock_reads * clock;
        let aim = self.aim + self.clock_reads * clock;
        let measured = if instructions <= aim {
            format!("{instructions}, within the aim of {aim}")
        } else {
            format!(
                "{instructions}, {} more than the aim of {aim}",
                instructions - aim
            )
        };
        Finding::new(target, measured, instructions <= limit)
    }
}

const fn first_try(
    contender: &'static str,
    aim: f64,
    instructions: f64,
    clock_reads: f64,
) -> Limit {
    Limit {
        contender,
        scenario: FirstTry,
        aim,
        instructions,
        clock_reads,
        allocations: 0.0,
    }
}

/// With a deadline, its looks at the clock are part of the count.
const fn one_failure(contender: &'static str, aim: f64, instructions: f64) -> Limit {
    Limit {
        contender,
        scenario: OneFailure,
        aim,
        instructions,
        clock_reads: 0.0,
        allocations: 0.0,
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
    fn a_row_at_its_limit_is_within_it_and_one_more_is_not() {
        let limit = first_try(STANDARD, 150.0, 160.0, 0.0);
        assert_eq!(judged(&limit, 160.0, 0.0), [true, true]);
        assert_eq!(judged(&limit, 161.0, 0.0), [false, true]);
        assert_eq!(judged(&limit, 160.0, 0.001), [true, false]);
    }

    #[test]
    fn a_look_at_the_clock_is_allowed_on_top_where_it_is_needed() {
        let limit = first_try(STANDARD_DEADLINE, 150.0, 160.0, 1.0);
        assert_eq!(judged(&limit, 190.0, 0.0), [true, true]);
        assert_eq!(judged(&limit, 191.0, 0.0), [false, true]);
    }

    #[test]
    fn an_aim_that_is_missed_is_said_and_passes() {
        let exact = Exact {
            allocations: 0.0,
            instructions: Ok(155.0),
        };
        let findings = first_try(STANDARD, 150.0, 160.0, 0.0).judge(&exact, &Ok(30.0));
        assert!(findings[0].is_met());
        assert!(
            findings[0]
                .to_string()
                .contains("5 more than the aim of 150")
        );
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let exact = Exact {
            allocations: 0.0,
            instructions: Err(Unmeasured::NoValgrind),
        };
        let findings = first_try(STANDARD, 150.0, 160.0, 0.0).judge(&exact, &Ok(30.0));
        assert!(!findings[0].is_met());
        assert!(findings[0].to_string().contains("no valgrind"));
    }
}
