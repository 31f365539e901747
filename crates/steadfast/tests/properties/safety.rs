//! Laws 1, 6 and 7: what is not sent again, when at the earliest, and what is
//! said of it at the end.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use steadfast::failure::Safety;
use steadfast::report::Outcome;
use steadfast::strategy::RetryAfter;
use steadfast::world::RecordedEvent;
use steadfast::{BestEffort, Failure, Stage};

use crate::config;
use crate::deadline::only;
use crate::failures::failures;
use crate::scripts::scripts;
use crate::simulation::{is_retry, run};
use crate::strategies::strategies;

/// Whether nothing proves that the attempt was not applied.
fn unproven(failure: &Failure) -> bool {
    matches!(failure.stage, Stage::InFlight | Stage::Inconclusive)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_must_not_be_sent_again_never_is(
        strategy in strategies(), script in scripts(failures()), seed: u64,
    ) {
        let simulated = only(run(&*strategy.build().strategy, &[script], seed, |_, _, _| {}));
        let idempotent = simulated.script.idempotent;
        for event in simulated.events.iter().filter(|event| is_retry(event)) {
            let failure = &event.failure;
            let reason = failure.reason;
            prop_assert!(!reason.never_retry(), "{reason} was retried");
            prop_assert!(failure.safety != Safety::No, "an error that says no was retried");
            let safe = match failure.stage {
                Stage::NotSent => true,
                Stage::InFlight | Stage::Inconclusive => idempotent,
                Stage::Responded if reason.always_retry() => true,
                // A "maybe" is not the reason's yes (D35).
                Stage::Responded => {
                    let says_yes = failure.safety == Safety::Yes;
                    idempotent || reason.allows_non_idempotent_retry() && says_yes
                }
            };
            prop_assert!(safe, "retried: {failure:?}");
        }
        // Said the other way round, without the engine's own word for it: of a
        // request that is not idempotent, only the last attempt may have been applied.
        let earlier = simulated.attempts.len().saturating_sub(1);
        for one in simulated.script.tries.iter().take(earlier) {
            let lost = one.failure.as_ref().is_some_and(unproven);
            prop_assert!(idempotent || !lost, "sent again after {one:?}");
        }
    }

    #[test]
    fn the_end_is_ambiguous_if_and_only_if_a_write_may_have_been_applied(
        strategy in strategies(), script in scripts(failures()), seed: u64,
    ) {
        let simulated = only(run(&*strategy.build().strategy, &[script], seed, |_, _, _| {}));
        let Some(report) = simulated.report() else { return Ok(()) };
        let lost = simulated.events.iter().any(|event| unproven(&event.failure));
        let ambiguous = lost && !simulated.script.idempotent;
        prop_assert_eq!(report.verdict().is_ambiguous(), ambiguous);
        prop_assert_eq!(report.request().may_have_been_applied(), lost);
    }

    #[test]
    fn nobody_comes_back_before_the_peer_asked_them_to(
        script in scripts(failures()), seed: u64,
    ) {
        let strategy = BestEffort::default().retry_after(RetryAfter::Floor);
        let simulated = only(run(&strategy, &[script], seed, |_, _, _| {}));
        for event in &simulated.events {
            if let (Outcome::Retry { delay, capped: false }, Some(hint)) =
                (event.outcome, event.failure.hint)
            {
                prop_assert!(delay >= hint, "{delay:?} after a hint of {hint:?}");
            }
        }
    }
}

/// A property says nothing about attempts that no case reaches.
#[test]
fn one_write_in_ten_is_lost_in_its_third_attempt_or_later() {
    let config = config();
    let cases = config.cases;
    let mut runner = TestRunner::new(config);
    let lost_late = Cell::new(0);
    let cases_of = (strategies(), scripts(failures()), any::<u64>());
    let ran = runner.run(&cases_of, |(strategy, script, seed)| {
        let simulated = only(run(
            &*strategy.build().strategy,
            &[script],
            seed,
            |_, _, _| {},
        ));
        let late = |event: &RecordedEvent| event.attempt >= 3 && unproven(&event.failure);
        let is_write = !simulated.script.idempotent;
        if is_write && simulated.events.iter().any(late) {
            lost_late.set(lost_late.get() + 1);
        }
        Ok(())
    });
    ran.unwrap();
    // Half of the cases are writes.
    let lost_late = lost_late.get();
    assert!(lost_late * 20 >= cases, "{lost_late} of {cases} cases");
}
