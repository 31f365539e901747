//! Tests of long polls on an empty budget (D50).

use super::*;
use crate::budget::Budget;
use crate::failure::Failure;

fn poll() -> Call {
    Call::new("ReceiveMessage")
        .idempotent(true)
        .long_polling(true)
}

/// AWS's behaviour 2.1 on an empty budget.
fn broke() -> Standard {
    let budget = Standard::aws_2_1().budget().clone();
    while budget.pay(5).is_ok() {}
    Standard::aws_2_1()
        .to_builder()
        .max_attempts(5)
        .budget(budget)
        .build()
        .expect("valid settings")
}

fn server_error() -> Failure {
    Failure::responded(&OPERATION_FAILED)
}

#[track_caller]
fn refused_for_its_budget<S: RetryStrategy>(request: &mut Orchestrator<S>, step: Step) {
    assert_eq!(gives_up(step), Verdict::Failed(Certainty::Unambiguous));
    let report = request.take_report();
    let cause = report.refusal().map(Refusal::cause);
    assert_eq!(cause, Some(Cause::BudgetEmpty));
    assert_eq!((report.attempts(), report.retries()), (1, 0));
}

#[test]
fn the_refusal_of_a_long_poll_comes_after_the_delay_of_the_retry() {
    let throttled = Failure::responded(&THROTTLED).throttling();
    for (failure, delay) in [(server_error(), 50 * MS), (throttled, 1000 * MS)] {
        let world = VirtualWorld::new().recording();
        let mut request = begun(broke(), poll(), &world);
        assert_eq!(waits(request.handle_failure(failure, &world)), delay);
        assert_eq!(world.take_events().len(), 1, "the refusal's event");
        assert_eq!(
            request.refusal().map(Refusal::cause),
            Some(Cause::BudgetEmpty)
        );
        world.advance(delay);
        let step = request.handle_waited(&world);
        refused_for_its_budget(&mut request, step);
        assert!(world.take_events().is_empty());
    }
}

#[test]
fn another_operation_learns_of_the_refusal_at_once() {
    let world = VirtualWorld::new();
    let mut request = begun(broke(), poll().long_polling(false), &world);
    let step = request.handle_failure(server_error(), &world);
    refused_for_its_budget(&mut request, step);
}

#[test]
fn a_long_poll_waits_for_the_deadline_at_most_and_then_reports_the_refusal() {
    let world = VirtualWorld::new();
    let mut request = begun(broke(), poll().timeout(30 * MS), &world);
    let step = request.handle_failure(server_error(), &world);
    assert!(
        matches!(step, Step::Wait { delay, capped: false } if delay == 30 * MS),
        "{step:?}"
    );
    world.advance(30 * MS);
    let step = request.handle_deadline(&world);
    refused_for_its_budget(&mut request, step);
}

#[test]
fn a_hint_is_part_of_the_delay_of_a_long_polls_refusal() {
    let world = VirtualWorld::new();
    let mut request = begun(broke(), poll(), &world);
    let failure = server_error().with_hint(3000 * MS);
    assert_eq!(waits(request.handle_failure(failure, &world)), 3000 * MS);
}

#[test]
fn used_up_attempts_and_final_failures_of_a_long_poll_are_reported_at_once() {
    let world = VirtualWorld::new();
    let once = broke().to_builder().max_attempts(1).build().unwrap();
    let mut request = begun(once, poll(), &world);
    gives_up(request.handle_failure(server_error(), &world));
    let mut request = begun(broke(), poll(), &world);
    gives_up(request.handle_failure(server_error().with_safety(Safety::No), &world));
}

/// These are not retried, so that only the caller's loop asks again.
#[test]
fn a_refusal_for_safety_or_of_a_rate_limiter_is_held_back_too() {
    let second = Duration::from_secs(1);
    let world = VirtualWorld::new();
    let mut request = begun(broke(), poll().idempotent(false), &world);
    let step = request.handle_failure(Failure::in_flight(&OPERATION_FAILED), &world);
    assert_eq!(waits(step), second);
    world.advance(second);
    let step = request.handle_waited(&world);
    assert_eq!(gives_up(step), Verdict::Failed(Certainty::Ambiguous));

    for (cause, delay) in [
        (Cause::RateLimited, 30 * MS),
        (Cause::HintTooLong, second),
        (Cause::NoToken, second),
    ] {
        let refusal = move || Refusal::new(cause).would_wait(30 * MS);
        let refusing = crate::strategy::from_decision(move |_, _, _| refusal().into());
        let mut request = begun(refusing, poll(), &world);
        let step = request.handle_failure(server_error(), &world);
        assert_eq!(waits(step), delay, "{cause:?}");
    }
}

#[test]
fn a_long_poll_with_tokens_left_is_retried_and_a_success_is_not_delayed() {
    let world = VirtualWorld::new();
    let mut request = begun(Standard::aws_2_1(), poll(), &world);
    assert!(fails(&mut request, server_error(), &world));
    let before = world.elapsed();
    request.handle_success(&world);
    assert_eq!(world.elapsed(), before);
    assert!(request.refusal().is_none());
}

#[test]
fn a_held_back_refusal_is_delivered_when_the_request_is_woken_or_cancelled() {
    let world = VirtualWorld::new();
    for end in [
        |request: &mut Orchestrator<Standard>, world: &VirtualWorld| request.handle_woken(world),
        |request: &mut Orchestrator<Standard>, world: &VirtualWorld| request.handle_cancel(world),
    ] {
        let mut request = begun(broke(), poll(), &world);
        waits(request.handle_failure(server_error(), &world));
        let step = end(&mut request, &world);
        refused_for_its_budget(&mut request, step);
        assert!(matches!(request.handle_waited(&world), Step::LeftAlone));
    }
}

#[test]
fn a_retry_that_an_outer_budget_refuses_costs_the_inner_one_nothing() {
    let world = VirtualWorld::new();
    let empty = Budget::builder().capacity(10).build().unwrap();
    empty.pay(10).expect("it is full");
    let within = Standard::guidance();
    let inner = within.budget().clone();
    let strategy = within.with_budget(empty.clone());
    let mut request = begun(strategy, poll().long_polling(false), &world);
    let step = request.handle_failure(server_error(), &world);
    refused_for_its_budget(&mut request, step);
    assert_eq!((inner.level(), empty.level()), (500, 0));
}
