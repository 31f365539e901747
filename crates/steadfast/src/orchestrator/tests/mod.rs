//! Tests for the laws, and the matrix of RFC 0049.

mod idle;
mod long_polling;
mod protocol;
mod shed;
mod tokens;
mod too_late;
mod woken;

use std::time::Duration;

use super::*;
use crate::FailFast;
use crate::failure::Safety;
use crate::reason::{
    NOT_AVAILABLE, OPERATION_FAILED, Reason, SOCKET_CLOSED_WHILE_IN_FLIGHT, THROTTLED, UNKNOWN,
};
use crate::report::{Certainty, Outcome, Verdict};
use crate::strategy::{
    BestEffort, Cause, Decision, Ending, Refusal, RetryAction, Standard, StrategyExt, StrategyId,
    from_fn,
};
use crate::testing::*;
use crate::world::{RecordedEvent, Roll, VirtualWorld};

static NOT_MY_PARTITION: Reason = Reason::new("NOT_MY_PARTITION")
    .allowing_non_idempotent_retry()
    .always_retried();

/// The recorded events, a line for each.
fn events(world: &VirtualWorld) -> Vec<String> {
    let line = |event: RecordedEvent| {
        let outcome = match event.outcome {
            Outcome::Retry { delay, capped } => format!("retry {delay:?} capped={capped}"),
            Outcome::Refused(cause) => format!("refused {}", cause.name()),
            Outcome::Undecided => unreachable!("an event is a decision"),
        };
        let (operation, attempt, reason) = (event.operation, event.attempt, event.failure.reason);
        let (retries, reasons) = (event.retries, event.reasons.len());
        format!("{operation} #{attempt} {reason} {outcome} retries={retries} reasons={reasons}")
    };
    world.take_events().into_iter().map(line).collect()
}

fn moved() -> Failure {
    Failure::responded(&NOT_MY_PARTITION)
}

#[test]
fn best_effort_retries_iff_idempotent_or_allowed_or_always_and_fail_fast_iff_always() {
    static MATRIX: [Reason; 4] = [
        Reason::new("NEITHER"),
        Reason::new("ALLOWS").allowing_non_idempotent_retry(),
        Reason::new("ALWAYS").always_retried(),
        Reason::new("BOTH")
            .allowing_non_idempotent_retry()
            .always_retried(),
    ];
    for idempotent in [true, false] {
        for reason in &MATRIX {
            let world = VirtualWorld::new();
            let call = || Call::new("op").idempotent(idempotent);
            let expected =
                idempotent || reason.allows_non_idempotent_retry() || reason.always_retry();
            for (strategy, expected) in [
                (
                    Box::new(BestEffort::default()) as Box<dyn RetryStrategy>,
                    expected,
                ),
                (Box::new(FailFast::new()), reason.always_retry()),
            ] {
                let mut request = begun(strategy, call(), &world);
                for _ in 0..3 {
                    let retried = fails(&mut request, Failure::responded(reason), &world);
                    assert_eq!(retried, expected, "idempotent {idempotent}, {reason}");
                    if !retried {
                        break;
                    }
                }
                let request = request.request();
                assert_eq!(request.retries(), if expected { 3 } else { 0 });
                assert_eq!(request.reasons().len(), usize::from(expected));
            }
        }
    }
}

#[test]
fn law_1_a_write_that_may_have_been_applied_is_not_sent_again_whatever_a_strategy_says() {
    let world = VirtualWorld::new();
    let reckless = from_fn(|_, _| RetryAction::with_duration(MS));
    for failure in [
        Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT),
        Failure::inconclusive(&OPERATION_FAILED),
        Failure::inconclusive(&LOCKED).with_safety(Safety::Yes),
    ] {
        for unsent in 0..4 {
            let mut request = begun(&reckless, Call::new("upsert"), &world);
            for _ in 0..unsent {
                let failure = Failure::not_sent(&OPERATION_FAILED);
                assert!(fails(&mut request, failure, &world));
            }
            let verdict = gives_up(request.handle_failure(failure.clone(), &world));
            assert_eq!(verdict, Verdict::Failed(Certainty::Ambiguous));
            let report = request.take_report();
            assert_eq!(report.refusal().map(Refusal::cause), Some(Cause::Unsafe));
        }
    }
}

#[test]
fn law_1_an_answer_whose_reason_does_not_allow_it_is_not_retried_for_a_write() {
    let world = VirtualWorld::new();
    let reckless = from_fn(|_, _| RetryAction::with_duration(MS));
    let mut request = begun(&reckless, Call::new("upsert"), &world);
    assert!(!fails(
        &mut request,
        Failure::responded(&OPERATION_FAILED),
        &world
    ));
}

#[test]
fn law_1_unknown_is_never_retried() {
    let world = VirtualWorld::new();
    let reckless = from_fn(|_, _| RetryAction::with_duration(MS));
    let mut request = begun(&reckless, get(), &world);
    assert!(!fails(&mut request, Failure::not_sent(&UNKNOWN), &world));
}

#[test]
fn law_2_an_always_retried_reason_does_not_ask_and_waits_by_the_controlled_backoff() {
    let world = VirtualWorld::new();
    let never = from_fn(|_, _| unreachable!("the strategy must not be asked"));
    let mut request = begun(never, Call::new("upsert"), &world);
    for expected in [1, 10, 50, 100, 500, 1000, 1000, 1000] {
        let failure = moved();
        let delay = waits(request.handle_failure(failure, &world));
        assert_eq!(delay, expected * MS);
        world.advance(delay);
        attempts(request.handle_waited(&world));
    }
}

#[test]
fn the_controlled_backoff_is_indexed_by_all_retries_made_before() {
    // D7: two strategy retries first, so the always-retry waits the third delay.
    let world = VirtualWorld::new();
    let mut request = begun(BestEffort::default(), get(), &world);
    assert!(fails(&mut request, locked(), &world));
    assert!(fails(&mut request, locked(), &world));
    let failure = moved();
    let delay = waits(request.handle_failure(failure, &world));
    assert_eq!(delay, 50 * MS);
}

#[test]
fn always_retried_attempts_count_for_the_strategy_too() {
    let world = VirtualWorld::new();
    let strategy = BestEffort::default();
    let mut request = begun(&strategy, get(), &world);
    assert!(fails(&mut request, moved(), &world));
    assert!(fails(&mut request, moved(), &world));
    let delay = waits(request.handle_failure(locked(), &world));
    assert_eq!(delay, 4 * MS);
}

#[test]
fn law_3_a_capped_sleep_ends_in_a_timeout_without_another_attempt() {
    let world = VirtualWorld::new().recording();
    let slow = from_fn(|_, _| RetryAction::with_duration(200 * MS));
    let call = get().timeout(10 * MS);
    let mut request = begun(slow, call, &world);
    let delay = waits(request.handle_failure(locked(), &world));
    assert_eq!(delay, 10 * MS);
    world.advance(delay);
    let verdict = gives_up(request.handle_waited(&world));
    assert_eq!(verdict, Verdict::TimedOut(Certainty::Unambiguous));
    let report = request.take_report();
    let outcome = report.history().last().map(|record| record.outcome);
    assert_eq!(
        outcome,
        Some(Outcome::Retry {
            delay: 10 * MS,
            capped: true
        })
    );
    assert_eq!((report.attempts(), report.retries()), (1, 0));
    assert_eq!(report.elapsed(), Some(10 * MS));
}

#[test]
fn law_3_two_seconds_into_two_and_a_half_a_second_becomes_half_a_second() {
    let world = VirtualWorld::new();
    let strategy = from_fn(|_, _| RetryAction::with_duration(1000 * MS));
    let call = get().timeout(2500 * MS);
    let mut request = begun(strategy, call, &world);
    world.advance(2000 * MS);
    let delay = waits(request.handle_failure(locked(), &world));
    assert_eq!(delay, 500 * MS);
    world.advance(delay);
    assert!(gives_up(request.handle_waited(&world)).is_timeout());
}

#[test]
fn law_3_always_retried_reasons_end_at_the_deadline_too() {
    let world = VirtualWorld::new();
    let call = Call::new("upsert").timeout(100 * MS);
    let mut request = begun(BestEffort::default(), call, &world);
    let mut attempts = 1;
    while fails(&mut request, moved(), &world) {
        attempts += 1;
    }
    // 1, 10, 50 and then 39 of 100 ms.
    assert_eq!(attempts, 4);
    assert_eq!(world.elapsed(), 100 * MS);
    assert!(request.take_report().verdict().is_timeout());
}

#[test]
fn law_4_each_retry_and_each_refusal_leaves_one_event_after_it_was_counted() {
    let world = VirtualWorld::new().recording();
    let strategy = BestEffort::default().max_attempts(3).unwrap();
    let mut request = begun(strategy, get(), &world);
    for _ in 0..3 {
        if let Step::Wait { delay, .. } = request.handle_failure(locked(), &world) {
            world.advance(delay);
            let _ = request.handle_waited(&world);
        }
    }
    assert_eq!(
        events(&world),
        [
            "get #1 LOCKED retry 1ms capped=false retries=1 reasons=1",
            "get #2 LOCKED retry 2ms capped=false retries=2 reasons=1",
            "get #3 LOCKED refused attempts_used_up retries=2 reasons=1",
        ]
    );
}

#[test]
fn law_4_refusals_by_law_leave_an_event_with_their_cause() {
    let world = VirtualWorld::new().recording();
    let mut request = begun(BestEffort::default(), Call::new("upsert"), &world);
    let _ = request.handle_failure(Failure::in_flight(&OPERATION_FAILED), &world);
    assert_eq!(
        events(&world),
        ["upsert #1 OPERATION_FAILED refused unsafe retries=0 reasons=0"]
    );
}

#[test]
fn law_6_a_hint_is_a_floor_for_always_retried_reasons_and_functions_and_ends_at_the_deadline() {
    let hinted = |reason| Failure::responded(reason).with_hint(300 * MS);
    let quick = || from_fn(|_, _| RetryAction::with_duration(MS));
    for reason in [&NOT_MY_PARTITION, &LOCKED] {
        let world = VirtualWorld::new();
        let mut request = begun(quick(), Call::new("op"), &world);
        let delay = waits(request.handle_failure(hinted(reason), &world));
        assert_eq!(delay, 300 * MS);
        let mut request = begun(quick(), Call::new("op").timeout(200 * MS), &world);
        let delay = waits(request.handle_failure(hinted(reason), &world));
        assert_eq!(delay, 200 * MS);
    }
}

#[test]
fn law_7_may_have_been_applied_stays_and_decides_ambiguity() {
    // An idempotent request is never ambiguous, however it ends.
    for (idempotent, certainty) in [
        (true, Certainty::Unambiguous),
        (false, Certainty::Ambiguous),
    ] {
        let world = VirtualWorld::new();
        let call = Call::new("op").idempotent(idempotent).timeout(MS);
        let mut request = begun(BestEffort::default(), call, &world);
        world.advance(MS);
        let verdict = gives_up(request.handle_deadline(&world));
        assert_eq!(verdict, Verdict::TimedOut(certainty));
    }
    // Sticky: a conclusive answer to a later attempt proves nothing of the earlier one.
    for unproven in [Failure::in_flight, Failure::inconclusive] {
        let world = VirtualWorld::new();
        let call = get();
        let mut request = begun(BestEffort::default(), call, &world);
        assert!(fails(&mut request, unproven(&OPERATION_FAILED), &world));
        assert!(fails(&mut request, locked(), &world));
        assert!(request.request().may_have_been_applied());
    }
}

#[test]
fn a_write_that_was_answered_every_time_times_out_unambiguously() {
    let world = VirtualWorld::new();
    let call = Call::new("upsert").timeout(300 * MS);
    let mut request = begun(BestEffort::default(), call, &world);
    while fails(&mut request, locked(), &world) {}
    let report = request.take_report();
    assert_eq!(report.verdict(), Verdict::TimedOut(Certainty::Unambiguous));
    assert_eq!(report.reasons().iter().collect::<Vec<_>>(), [&LOCKED]);
}

#[test]
fn law_9_a_finished_request_is_left_alone() {
    let world = VirtualWorld::new();
    for succeeds in [true, false] {
        let mut request = begun(BestEffort::default(), get(), &world);
        match succeeds {
            true => request.handle_success(&world),
            false => assert!(!fails(&mut request, Failure::responded(&UNKNOWN), &world)),
        }
        for step in [
            request.handle_failure(locked(), &world),
            request.handle_waited(&world),
            request.handle_deadline(&world),
            request.begin(&world),
        ] {
            assert!(matches!(step, Step::LeftAlone), "{step:?}");
        }
        let last = request.request().history().last();
        let reason = last.map(|last| last.failure.reason);
        assert_eq!(reason, (!succeeds).then_some(&UNKNOWN));
        assert_eq!(request.request().retries(), 0);
    }
}

/// Delays the first attempt, and takes its time to grant a retry.
fn slow() -> Own {
    Own::admitting(|id| Admission::Token(RetryToken::issued_by(id).after(5 * MS)))
        .deciding(|token| Decision::pending(async move { Ok(token.next(MS)) }))
}

/// Issues no initial token.
fn without_retries() -> Own {
    Own::admitting(|_| Admission::Refused(Refusal::new(Cause::Declined)))
}

/// Awaits a decision that is ready.
#[track_caller]
fn decided<S: RetryStrategy>(request: &mut Orchestrator<S>, world: &VirtualWorld) -> Step {
    let mut context = Context::from_waker(std::task::Waker::noop());
    match request.poll_decision(&mut context, world) {
        Poll::Ready(step) => step,
        Poll::Pending => panic!("the decision is not made"),
    }
}

#[test]
fn without_an_initial_token_one_attempt_is_made_and_no_more() {
    let world = VirtualWorld::new();
    let strategy = without_retries();
    let mut request = begun(&strategy, get(), &world);
    let step = request.handle_failure(locked(), &world);
    gives_up(step);
    assert_eq!(
        request.take_report().refusal().map(Refusal::cause),
        Some(Cause::NoToken)
    );
}

#[test]
fn without_an_initial_token_always_retried_reasons_are_retried_still() {
    let world = VirtualWorld::new();
    let strategy = without_retries();
    let mut request = begun(&strategy, Call::new("get"), &world);
    assert!(fails(&mut request, moved(), &world));
}

#[test]
fn even_the_first_attempt_may_have_to_wait_and_then_ends_at_the_deadline() {
    let world = VirtualWorld::new();
    let strategy = slow();
    let mut request = Orchestrator::new(&strategy, Call::new("get"));
    let delay = waits(request.begin(&world));
    assert_eq!(delay, 5 * MS);
    world.advance(delay);
    attempts(request.handle_waited(&world));

    let mut request = Orchestrator::new(&strategy, Call::new("get").timeout(2 * MS));
    let delay = waits(request.begin(&world));
    assert_eq!(delay, 2 * MS);
    world.advance(delay);
    let verdict = gives_up(request.handle_waited(&world));
    assert_eq!(verdict, Verdict::TimedOut(Certainty::Unambiguous));
    assert_eq!(request.take_report().attempts(), 0);
}

#[test]
fn a_decision_can_take_time_and_is_then_acted_on() {
    let world = VirtualWorld::new();
    let strategy = slow();
    let mut request = Orchestrator::new(&strategy, get());
    waits(request.begin(&world));
    let _ = request.handle_waited(&world);
    let step = request.handle_failure(locked(), &world);
    assert_eq!(step, Step::Ask);
    let delay = waits(decided(&mut request, &world));
    assert_eq!(delay, MS);
    assert_eq!(request.request().retries(), 1);
}

#[test]
fn a_deadline_during_a_decision_times_the_request_out_with_its_failure_on_record() {
    let world = VirtualWorld::new();
    let strategy = slow();
    let call = get().timeout(10 * MS);
    let mut request = Orchestrator::new(&strategy, call);
    waits(request.begin(&world));
    world.advance(5 * MS);
    let _ = request.handle_waited(&world);
    let _ = request.handle_failure(locked(), &world);
    world.advance(5 * MS);
    assert!(gives_up(request.handle_deadline(&world)).is_timeout());
    let report = request.take_report();
    assert_eq!(report.history().last().unwrap().failure.reason, &LOCKED);
    assert_eq!(report.refusal().map(Refusal::cause), Some(Cause::Deadline));
}

#[test]
fn law_8_a_dropped_request_is_reported_to_its_strategy_once() {
    let world = VirtualWorld::new();
    let strategy = slow();
    let mut request = Orchestrator::new(&strategy, Call::new("get"));
    waits(request.begin(&world));
    drop(request);
    assert_eq!(strategy.take_told(), [Told::Began, dropped(false)]);

    let mut request = Orchestrator::new(&strategy, Call::new("get"));
    waits(request.begin(&world));
    let _ = request.handle_waited(&world);
    request.handle_success(&world);
    drop(request);
    let free = false;
    assert_eq!(
        strategy.take_told(),
        [Told::Began, Told::Succeeded { free }]
    );
}

#[test]
fn a_free_first_attempt_has_a_token_only_if_it_fails() {
    let (world, strategy) = (VirtualWorld::new(), Own::admitting(|_| Admission::Free));
    let mut request = begun(&strategy, get(), &world);
    request.handle_success(&world);
    drop(request);
    let free = true;
    assert_eq!(
        strategy.take_told(),
        [Told::Began, Told::Succeeded { free }]
    );

    let mut request = begun(&strategy, get(), &world);
    assert!(fails(&mut request, locked(), &world));
    request.handle_success(&world);
    let free = false;
    assert_eq!(
        strategy.take_told(),
        [Told::Began, Told::Failed, Told::Succeeded { free }]
    );
}

#[test]
fn a_strategy_reads_the_users_context_and_a_request_brings_its_own_strategy() {
    struct Caller {
        robot: bool,
    }
    let strategy = BestEffort::default().when(|request, _| {
        !request
            .context::<Caller>()
            .is_some_and(|caller| caller.robot)
    });
    for (robot, expected) in [(true, false), (false, true)] {
        let world = VirtualWorld::new();
        let call = get().context(Caller { robot });
        let mut request = begun(&strategy, call, &world);
        assert_eq!(fails(&mut request, locked(), &world), expected);
    }
}

#[test]
fn strategies_are_object_safe_and_can_differ_per_request() {
    let client: Box<dyn RetryStrategy> = Box::new(FailFast::new());
    let this_request: Box<dyn RetryStrategy> = Box::new(BestEffort::default());
    for (strategy, expected) in [(client, false), (this_request, true)] {
        let world = VirtualWorld::new();
        let mut request = begun(strategy, get(), &world);
        assert_eq!(fails(&mut request, locked(), &world), expected);
    }
}

#[test]
fn an_error_that_says_no_is_not_retried_though_the_server_is_at_fault() {
    let world = VirtualWorld::new();
    let mut request = begun(Standard::guidance(), get(), &world);
    let failure = Failure::responded(&OPERATION_FAILED)
        .with_safety(Safety::No)
        .with_fault(crate::failure::FaultSide::Server);
    assert!(!fails(&mut request, failure, &world));
}

#[test]
fn requests_that_were_not_sent_are_all_retried() {
    for idempotent in [true, false] {
        let world = VirtualWorld::new();
        let call = Call::new("op").idempotent(idempotent);
        let mut request = begun(BestEffort::default(), call, &world);
        assert!(fails(
            &mut request,
            Failure::not_sent(&NOT_AVAILABLE),
            &world
        ));
        assert!(fails(
            &mut request,
            Failure::not_sent(&OPERATION_FAILED),
            &world
        ));
    }
}

#[test]
fn without_a_deadline_the_clock_is_not_looked_at_before_a_failure() {
    struct NoClock;
    impl World for NoClock {
        fn now(&self) -> Instant {
            panic!("the clock was read")
        }
        fn roll(&self) -> Roll {
            panic!("the dice were rolled")
        }
    }
    for strategy in [
        Box::new(BestEffort::default()) as Box<dyn RetryStrategy>,
        Box::new(Standard::guidance()),
    ] {
        let mut request = begun(strategy, Call::new("get"), &NoClock);
        request.handle_success(&NoClock);
    }
}

#[test]
fn a_throttled_write_may_be_retried_because_it_was_refused() {
    let world = VirtualWorld::new();
    let mut request = begun(Standard::aws_2_1(), Call::new("put"), &world);
    assert!(fails(
        &mut request,
        Failure::responded(&THROTTLED).throttling(),
        &world
    ));
}

#[test]
fn a_cancelled_request_says_whether_it_may_have_been_applied() {
    let world = VirtualWorld::new();
    let cancelled = |request: &mut Orchestrator<BestEffort>| {
        let verdict = gives_up(request.handle_cancel(&world));
        assert_eq!(
            request.take_report().refusal().map(Refusal::cause),
            Some(Cause::Cancelled)
        );
        verdict
    };
    // In its attempt: a write may have been applied, a read does not matter.
    let mut write = begun(BestEffort::default(), Call::new("put"), &world);
    assert_eq!(cancelled(&mut write), Verdict::Failed(Certainty::Ambiguous));
    let mut read = begun(BestEffort::default(), get(), &world);
    assert_eq!(
        cancelled(&mut read),
        Verdict::Failed(Certainty::Unambiguous)
    );
    // Parked in backoff after an answer: it was not.
    let mut parked = begun(BestEffort::default(), Call::new("put"), &world);
    let _ = parked.handle_failure(locked(), &world);
    assert_eq!(
        cancelled(&mut parked),
        Verdict::Failed(Certainty::Unambiguous)
    );
    assert!(matches!(parked.handle_waited(&world), Step::LeftAlone));
}
