//! The stated worst case of a strategy is never exceeded.

use std::time::Duration;

use proptest::prelude::*;
use steadfast::budget::Load;
use steadfast::explain::plan;
use steadfast::strategy::{Limits, RetryAfter};
use steadfast::{
    Backoff, BestEffort, Call, Failure, Orchestrator, RetryStrategy, Standard, Step, VirtualWorld,
    reason,
};

use crate::deadline::only;
use crate::failures::{failures, failures_that_ask};
use crate::scripts::{Script, scripts};
use crate::simulation::{is_granted_retry, run};
use crate::strategies::{strategies, strategies_with_budgets};
use crate::{config, config_for_many};

const HOUR: Duration = Duration::from_secs(3600);

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_request_stays_within_the_worst_case(
        strategy in strategies(),
        script in scripts(failures_that_ask()).prop_map(Script::unhurried),
        seed: u64,
    ) {
        let built = strategy.build();
        let slowest = script.tries.iter().map(|one| one.takes).max();
        let stated = built.strategy.info().worst_case(&Limits {
            timeout: script.timeout,
            attempt_timeout: slowest,
            attempts: None,
        });
        let simulated = only(run(&*built.strategy, &[script], seed, |_, _, _| {}));
        if let Some(most) = stated.attempts {
            prop_assert!(simulated.attempts.len() <= most as usize, "{} attempts: {stated}", simulated.attempts.len());
        }
        if let Some(most) = stated.waiting {
            let waited: Duration = simulated.waits.iter().map(|wait| wait.delay).sum();
            prop_assert!(waited <= most, "waited {waited:?}: {stated}");
        }
        if let Some(most) = stated.wall_time {
            let took = simulated.ended - simulated.script.starts;
            prop_assert!(took <= most, "took {took:?}: {stated}");
        }
    }
}

proptest! {
    #![proptest_config(config_for_many())]

    #[test]
    fn all_requests_together_add_no_more_load_than_stated(
        strategy in strategies_with_budgets(),
        scripts in prop::collection::vec(scripts(failures()), 1..30),
        seed: u64,
    ) {
        let built = strategy.build();
        let stated = built.strategy.info().worst_case(&Limits::default()).load;
        let load = stated.expect("every retry is paid for");
        let mut seen = Vec::new();
        run(&*built.strategy, &scripts, seed, |simulated, events, _| {
            if events.iter().any(is_granted_retry) {
                seen.push(Seen::Retry);
            }
            if simulated.succeeded() {
                seen.push(Seen::Success);
            }
        });
        // Over any stretch of time, not only from the beginning.
        for place in 0..seen.len() {
            let (mut retries, mut successes) = (0.0, 0.0);
            for what in &seen[place..] {
                match what {
                    Seen::Retry => retries += 1.0,
                    Seen::Success => successes += 1.0,
                }
                let most = allowed(load, successes);
                prop_assert!(retries <= most, "{retries} retries, {most} allowed: {load:?}");
            }
        }
    }
}

/// Too rare to be drawn: the one wait there is, longer than is allowed without
/// a deadline, and shorter than the deadline.
#[test]
fn a_hint_of_hours_is_within_the_worst_case_too() {
    let (strategy, world) = (Standard::aws_2_0(), VirtualWorld::new());
    let strategy = strategy.to_builder().retry_after(RetryAfter::Floor);
    let strategy = strategy.max_attempts(2).build().expect("possible");
    let (timeout, hint) = (24 * HOUR, 23 * HOUR);
    let stated = strategy.info().worst_case(&Limits {
        timeout: Some(timeout),
        ..Limits::default()
    });

    let mut request = Orchestrator::new(&strategy, Call::new("op").timeout(timeout));
    assert!(matches!(request.begin(&world), Step::Attempt));
    let failure = Failure::not_sent(&reason::NOT_AVAILABLE).with_hint(hint);
    let Step::Wait { delay, .. } = request.handle_failure(failure, &world) else {
        panic!("a hint within the deadline is waited for");
    };
    assert!(delay >= hint);
    assert!(stated.waiting.is_some_and(|most| delay <= most), "{stated}");
}

/// Too rare to be drawn: delays of one backoff that are shorter at first, and
/// of the other that are shorter later.
#[test]
fn failures_that_alternate_between_two_backoffs_stay_within_the_worst_case_too() {
    let second = Duration::from_secs(1);
    let growing = Backoff::linear(second, second, HOUR).expect("possible");
    let strategy = Standard::builder()
        .max_attempts(100)
        .backoff(growing)
        .throttling_backoff(Backoff::constant(2 * second))
        .build()
        .expect("possible");
    let timeout = 10 * second;
    let stated = strategy.info().worst_case(&Limits {
        timeout: Some(timeout),
        ..Limits::default()
    });

    let plain = Failure::not_sent(&reason::NOT_AVAILABLE);
    let throttled = plain.clone().throttling();
    let failures = std::iter::once(plain).chain(std::iter::repeat(throttled));
    let call = Call::new("op").timeout(timeout);
    let attempts = plan(&strategy, &call, failures).expect("ours can be explained");
    // After 0, 1, 3, 5, 7 and 9 s; either backoff alone has room for fewer.
    assert_eq!(attempts.rows().len(), 6);
    assert_eq!(stated.attempts, Some(6));
}

#[test]
fn limits_that_leave_no_attempt_are_no_underflow() {
    let none = Limits {
        attempts: Some(0),
        ..Limits::default()
    };
    for stated in [
        Standard::guidance().info().worst_case(&none),
        BestEffort::default().info().worst_case(&none),
    ] {
        assert_eq!(stated.attempts, Some(0));
        assert_eq!(stated.waiting, Some(Duration::ZERO));
    }
}

enum Seen {
    Retry,
    Success,
}

fn allowed(load: Load, successes: f64) -> f64 {
    let rounding = 1e-6;
    load.burst as f64 + load.per_success * successes + rounding
}
