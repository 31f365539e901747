//! Tests of what protocol clients need: early wakes, prescribed delays, final answers.

use super::*;

fn failing_request(timeout: Duration, world: &VirtualWorld) -> Orchestrator<BestEffort> {
    begun(
        BestEffort::default(),
        Call::new("set").timeout(timeout),
        world,
    )
}

#[test]
fn a_capped_wait_that_is_woken_early_makes_its_attempt() {
    let world = VirtualWorld::new();
    let mut request = failing_request(10 * MS, &world);
    let failure = moved().with_prescribed_delay(100 * MS);
    assert_eq!(waits(request.handle_failure(failure, &world)), 10 * MS);
    world.advance(9 * MS);
    attempts(request.handle_woken(&world));
    request.handle_success(&world);
}

#[test]
fn a_wait_that_is_woken_at_the_deadline_times_out() {
    let world = VirtualWorld::new();
    let mut request = failing_request(10 * MS, &world);
    let failure = moved().with_prescribed_delay(100 * MS);
    let _ = request.handle_failure(failure, &world);
    world.advance(10 * MS);
    let expected = Verdict::TimedOut(Certainty::Unambiguous);
    assert_eq!(gives_up(request.handle_woken(&world)), expected);
}

#[test]
fn a_prescribed_delay_takes_the_place_of_the_controlled_backoff_and_zero_is_at_once() {
    let world = VirtualWorld::new();
    let mut request = failing_request(1000 * MS, &world);
    let at_once = moved().with_prescribed_delay(Duration::ZERO);
    attempts(request.handle_failure(at_once, &world));
    // The next is again the controlled backoff's, of which one retry was made.
    let step = request.handle_failure(moved(), &world);
    assert_eq!(waits(step), 10 * MS);
    assert_eq!(request.request().retries(), 2);
}

#[test]
fn a_prescribed_delay_does_not_overrule_a_strategy() {
    static ASKED: Reason = Reason::new("ASKED").allowing_non_idempotent_retry();
    let world = VirtualWorld::new();
    let mut request = failing_request(1000 * MS, &world);
    let failure = Failure::responded(&ASKED).with_prescribed_delay(100 * MS);
    assert_eq!(waits(request.handle_failure(failure, &world)), MS);
}

#[test]
fn an_answer_that_is_final_fails_the_request_and_is_a_success_to_the_strategy() {
    let world = VirtualWorld::new();
    let strategy = Standard::guidance();
    let left = || strategy.info().budget_left();
    let full = left();
    let mut request = begun(&strategy, get(), &world);
    let busy = Failure::responded(&crate::reason::THROTTLED);
    let delay = waits(request.handle_failure(busy, &world));
    let paid = left();
    assert!(paid < full);
    world.advance(delay);
    attempts(request.handle_waited(&world));
    request.handle_final_response(Stage::Responded, &world);
    assert!(left() > paid);
    let report = request.take_report();
    assert_eq!(report.verdict(), Verdict::Failed(Certainty::Unambiguous));
    assert_eq!((report.attempts(), report.retries()), (2, 1));
    assert!(report.refusal().is_none());
}

#[test]
fn what_cannot_be_sent_is_neither_a_success_nor_a_failure_to_the_strategy() {
    let world = VirtualWorld::new();
    let strategy = Standard::guidance();
    let left = || strategy.info().budget_left();
    let mut request = begun(&strategy, Call::new("set"), &world);
    let full = left();
    request.handle_unsendable(&world);
    assert_eq!(left(), full, "nothing was paid");
    let busy = Failure::responded(&crate::reason::THROTTLED);
    let mut request = begun(&strategy, Call::new("set"), &world);
    let delay = waits(request.handle_failure(busy, &world));
    let paid = left();
    world.advance(delay);
    attempts(request.handle_waited(&world));
    request.handle_unsendable(&world);
    assert_eq!(left(), paid, "nothing was refunded");
    let report = request.take_report();
    assert_eq!(report.verdict(), Verdict::Failed(Certainty::Unambiguous));
    assert!(report.refusal().is_none());
    // And a request that is over stays so.
    request.handle_unsendable(&world);
}

#[test]
fn an_attempt_that_the_deadline_ended_is_a_timeout_also_where_a_retry_would_be_unlawful() {
    let world = VirtualWorld::new();
    let mut request = failing_request(10 * MS, &world);
    world.advance(10 * MS);
    let failure = Failure::in_flight(&crate::reason::TIMEOUT).timed_out();
    let step = request.handle_failure(failure, &world);
    let expected = Verdict::TimedOut(Certainty::Ambiguous);
    assert_eq!(gives_up(step), expected);
    // Before the deadline it is a failure like any other.
    let mut request = failing_request(20 * MS, &world);
    let failure = Failure::in_flight(&crate::reason::TIMEOUT).timed_out();
    let step = request.handle_failure(failure, &world);
    let expected = Verdict::Failed(Certainty::Ambiguous);
    assert_eq!(gives_up(step), expected);
}

#[test]
fn the_end_of_an_attempt_is_left_alone_unless_one_is_under_way() {
    let world = VirtualWorld::new();
    let unsent = || Failure::not_sent(&NOT_AVAILABLE);
    let panicked = || Refusal::new(Cause::StrategyFailed);
    let mut request = failing_request(1000 * MS, &world);
    let delay = waits(request.handle_failure(moved(), &world));
    let step = request.handle_cancelled_attempt(unsent(), &world);
    assert!(matches!(step, Step::LeftAlone), "{step:?}");
    let step = request.handle_unreadable(panicked(), &world);
    assert!(matches!(step, Step::LeftAlone), "{step:?}");
    world.advance(delay);
    attempts(request.handle_waited(&world));
    let verdict = gives_up(request.handle_cancelled_attempt(unsent(), &world));
    assert_eq!(verdict, Verdict::Failed(Certainty::Unambiguous));
    let refusal = request.refusal().map(Refusal::cause);
    assert_eq!(refusal, Some(Cause::Cancelled));

    let mut request = failing_request(1000 * MS, &world);
    let verdict = gives_up(request.handle_unreadable(panicked(), &world));
    assert_eq!(verdict, Verdict::Failed(Certainty::Ambiguous));
    let step = request.handle_unreadable(panicked(), &world);
    assert!(matches!(step, Step::LeftAlone), "it has ended: {step:?}");
}

#[test]
fn the_stage_of_a_final_response_says_whether_the_request_may_have_been_applied() {
    for (stage, certainty) in [
        (Stage::Responded, Certainty::Unambiguous),
        (Stage::Inconclusive, Certainty::Ambiguous),
    ] {
        let world = VirtualWorld::new();
        let mut request = failing_request(1000 * MS, &world);
        request.handle_final_response(stage, &world);
        let report = request.take_report();
        assert_eq!(report.verdict(), Verdict::Failed(certainty));
        assert!(report.ended_by_response());
    }
}

/// A free first attempt, and one with a token.
#[test]
fn a_free_first_attempt_fails_like_one_with_a_token() {
    let failures = [
        Failure::not_sent(&NOT_AVAILABLE),
        Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT),
        Failure::inconclusive(&OPERATION_FAILED),
        Failure::responded(&THROTTLED).throttling(),
        moved(),
    ];
    for idempotent in [true, false] {
        for failure in &failures {
            let run = |admit: fn(&StrategyId) -> Admission| {
                let (world, strategy) = (VirtualWorld::new().recording(), Own::admitting(admit));
                let call = Call::new("set").idempotent(idempotent).timeout(3000 * MS);
                let mut request = begun(&strategy, call, &world);
                let mut steps = Vec::new();
                for _ in 0..3 {
                    world.advance(20 * MS);
                    steps.push(request.handle_failure(failure.clone(), &world));
                    world.advance(1000 * MS);
                    steps.push(request.handle_waited(&world));
                }
                let attempts = request.take_report().attempts();
                drop(request);
                (steps, events(&world), strategy.take_told(), attempts)
            };
            let with_token = run(|id| Admission::Token(RetryToken::issued_by(id)));
            let told = format!("{failure:?}, idempotent: {idempotent}");
            assert_eq!(run(|_| Admission::Free), with_token, "{told}");
        }
    }
}
