//! Law 3, and that the same seed makes the same course.

use std::time::Duration;

use proptest::prelude::*;
use steadfast::{Backoff, BestEffort, Failure, Verdict, reason};

use crate::config;
use crate::course::{Course, End, Event, run};
use crate::failures::failures;
use crate::policies::policies;
use crate::scripts::{Script, Try, scripts};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_wait_passes_the_deadline_and_no_attempt_starts_at_or_after_it(
        policy in policies(), script in scripts(failures()), seed: u64,
    ) {
        let course = only(run(&*policy.build().strategy, &[script], seed, |_, _, _| {}));
        let Some(deadline) = course.deadline else { return Ok(()) };
        for wait in &course.waits {
            prop_assert!(wait.from + wait.delay <= deadline, "{wait:?} passes {deadline:?}");
        }
        for start in &course.attempts {
            prop_assert!(*start < deadline, "an attempt at {start:?}, after {deadline:?}");
        }
        if course.script.cut {
            prop_assert!(course.ended <= deadline, "ended {:?}, after {deadline:?}", course.ended);
        }
    }

    #[test]
    fn nothing_follows_a_capped_wait_but_the_timeout(
        policy in policies(), script in scripts(failures()), seed: u64,
    ) {
        let course = only(run(&*policy.build().strategy, &[script], seed, |_, _, _| {}));
        let Some(capped) = course.events.iter().position(|event| event.is_capped()) else {
            return Ok(());
        };
        prop_assert_eq!(capped, course.events.len() - 1, "an event after the capped wait");
        let wait = course.waits.last().expect("a capped delay is waited for");
        prop_assert_eq!(Some(wait.from + wait.delay), course.deadline);
        prop_assert_eq!(course.attempts.len(), wait.after_attempts, "an attempt followed");
        match &course.end {
            Some(End::GaveUp(Verdict::TimedOut(_), report)) => {
                prop_assert!(report.refusal().is_none());
            }
            Some(End::Dropped) => {}
            Some(End::GaveUp(Verdict::Failed(_), _)) if course.was_cancelled() => {}
            other => prop_assert!(false, "ended with {other:?}"),
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_course(
        policy in policies(),
        scripts in prop::collection::vec(scripts(failures()), 1..5),
        seed: u64,
    ) {
        let outlines = || -> Vec<String> {
            let courses = run(&*policy.build().strategy, &scripts, seed, |_, _, _| {});
            courses.iter().map(Course::outline).collect()
        };
        prop_assert_eq!(outlines(), outlines());
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
    let course = only(run(&strategy, &[script], 0, |_, _, _| {}));
    let capped: Vec<bool> = course.events.iter().map(Event::is_capped).collect();
    assert_eq!(capped, [false, false, true]);
    assert_eq!(course.attempts, [Duration::ZERO, wait, 2 * wait]);
    assert_eq!(course.ended, 3 * wait);
}

pub(crate) fn only(courses: Vec<Course>) -> Course {
    let [course] = <[Course; 1]>::try_from(courses).expect("one script, one course");
    course
}
