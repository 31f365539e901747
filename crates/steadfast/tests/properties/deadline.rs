//! Law 3, and runs that repeat with the same seed.

use std::time::Duration;

use proptest::prelude::*;
use steadfast::{Backoff, BestEffort, Failure, Verdict, reason};

use crate::config;
use crate::failures::failures;
use crate::scripts::{Script, Try, scripts};
use crate::simulation::{End, Simulated, is_capped, run};
use crate::strategies::strategies;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_wait_passes_the_deadline_and_no_attempt_starts_at_or_after_it(
        strategy in strategies(), script in scripts(failures()), seed: u64,
    ) {
        let simulated = only(run(&*strategy.build().strategy, &[script], seed, |_, _, _| {}));
        let Some(deadline) = simulated.deadline else { return Ok(()) };
        for wait in &simulated.waits {
            prop_assert!(wait.from + wait.delay <= deadline, "{wait:?} passes {deadline:?}");
        }
        for start in &simulated.attempts {
            prop_assert!(*start < deadline, "an attempt at {start:?}, after {deadline:?}");
        }
        if simulated.script.cut {
            prop_assert!(simulated.ended <= deadline, "ended {:?}, after {deadline:?}", simulated.ended);
        }
    }

    #[test]
    fn nothing_follows_a_capped_wait_but_the_timeout(
        strategy in strategies(), script in scripts(failures()), seed: u64,
    ) {
        let simulated = only(run(&*strategy.build().strategy, &[script], seed, |_, _, _| {}));
        let Some(capped) = simulated.events.iter().position(is_capped) else {
            return Ok(());
        };
        prop_assert_eq!(capped, simulated.events.len() - 1, "an event after the capped wait");
        let wait = simulated.waits.last().expect("a capped delay is waited for");
        prop_assert_eq!(Some(wait.from + wait.delay), simulated.deadline);
        prop_assert_eq!(simulated.attempts.len(), wait.after_attempts, "an attempt followed");
        match &simulated.end {
            Some(End::GaveUp(Verdict::TimedOut(_), report)) => {
                prop_assert!(report.refusal().is_none());
            }
            Some(End::Dropped) => {}
            Some(End::GaveUp(Verdict::Failed(_), _)) if simulated.was_cancelled() => {}
            other => prop_assert!(false, "ended with {other:?}"),
        }
    }
}

/// Too rare to be drawn.
#[test]
fn a_wait_that_ends_exactly_at_the_deadline_is_capped() {
    let wait = Duration::from_millis(100);
    let failure = Failure::not_sent(&reason::NOT_AVAILABLE);
    let fails = Try {
        takes: Duration::ZERO,
        failure: Some(failure),
    };
    let script = Script {
        idempotent: false,
        timeout: Some(3 * wait),
        starts: Duration::ZERO,
        tries: vec![fails; 10],
        cut: true,
        woken_early: false,
        left: None,
    };
    let strategy = BestEffort::new(Backoff::constant(wait));
    let simulated = only(run(&strategy, &[script], 0, |_, _, _| {}));
    let capped: Vec<bool> = simulated.events.iter().map(is_capped).collect();
    assert_eq!(capped, [false, false, true]);
    assert_eq!(simulated.attempts, [Duration::ZERO, wait, 2 * wait]);
    assert_eq!(simulated.ended, 3 * wait);
}

pub(crate) fn only(requests: Vec<Simulated>) -> Simulated {
    let [simulated] = <[Simulated; 1]>::try_from(requests).expect("one script, one simulated");
    simulated
}
