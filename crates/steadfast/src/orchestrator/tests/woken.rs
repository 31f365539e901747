//! Tests of retries that the deadline prevents: they cost nothing, and a request that is
//! woken before its deadline pays for its attempt.

use super::*;
use crate::backoff::Backoff;
use crate::budget::Budget;
use crate::strategy::{Adaptive, WhenLimited, WhenTooLate, from_decision};

fn hurried() -> Call {
    get().timeout(100 * MS)
}

fn budget() -> Budget {
    Budget::builder().build().unwrap()
}

/// A strategy of somebody else, which always waits for two seconds.
fn foreign() -> impl RetryStrategy {
    from_fn(|_, _| RetryAction::with_duration(2000 * MS))
}

/// A strategy of somebody else, which takes its time and then waits for two seconds.
fn deliberate() -> impl RetryStrategy {
    from_decision(|token, _, _| Decision::pending(async move { Ok(token.next(2000 * MS)) }))
}

fn patient(budget: &Budget) -> Standard {
    Standard::builder()
        .backoff(Backoff::constant(2000 * MS))
        .when_too_late(WhenTooLate::Wait)
        .budget(budget.clone())
        .build()
        .unwrap()
}

/// Fails the attempt under way. Returns the step after a decision that takes time.
fn fail<S: RetryStrategy>(request: &mut Orchestrator<S>, world: &VirtualWorld) -> Step {
    match request.handle_failure(locked(), world) {
        Step::Ask => decided(request, world),
        step => step,
    }
}

/// Strategies that pay from this budget and wait beyond the deadline.
fn strategies(budget: &Budget) -> [(&'static str, Box<dyn RetryStrategy>); 4] {
    let adaptive = Adaptive::new(patient(budget), WhenLimited::Wait);
    [
        ("standard", Box::new(patient(budget))),
        (
            "with a budget",
            Box::new(foreign().with_budget(budget.clone())),
        ),
        ("adaptive", Box::new(adaptive)),
        (
            "deliberate",
            Box::new(deliberate().with_budget(budget.clone())),
        ),
    ]
}

#[test]
fn a_retry_that_the_deadline_prevents_leaves_the_budget_as_it_was() {
    let budget = budget();
    for (name, strategy) in strategies(&budget) {
        let world = VirtualWorld::new();
        let level = || budget.level();
        let mut request = begun(&strategy, hurried(), &world);
        let step = fail(&mut request, &world);
        let (delay, capped) = (100 * MS, true);
        assert_eq!(step, Step::Wait { delay, capped }, "{name}");
        assert_eq!(level(), 500, "{name}: while it waits");
        world.advance(delay);
        assert!(gives_up(request.handle_waited(&world)).is_timeout());
        drop(request);
        assert_eq!(level(), 500, "{name}: in the end");
    }
}

#[test]
fn a_request_that_is_woken_pays_once_and_makes_its_attempt() {
    let budget = budget();
    let mut left = 500;
    for (name, strategy) in strategies(&budget) {
        let world = VirtualWorld::new();
        let level = || budget.level();
        let mut request = begun(&strategy, hurried(), &world);
        waits(fail(&mut request, &world));
        world.advance(30 * MS);
        let step = match request.handle_woken(&world) {
            Step::Ask => decided(&mut request, &world),
            step => step,
        };
        assert_eq!(step, Step::Attempt, "{name}");
        left -= 5;
        assert_eq!(level(), left, "{name}");

        // The next retry is prevented, and only that one is taken back.
        waits(fail(&mut request, &world));
        assert_eq!(level(), left, "{name}");
        world.advance(70 * MS);
        assert!(gives_up(request.handle_waited(&world)).is_timeout());
        let report = request.take_report();
        assert_eq!((report.attempts(), report.retries()), (2, 1), "{name}");
        assert_eq!(level(), left, "{name}");
    }
}

#[test]
fn a_prevented_retry_returns_its_permit_and_a_woken_one_takes_another() {
    let world = VirtualWorld::new();
    let adaptive = Adaptive::new(patient(&budget()), WhenLimited::Wait);
    let throttled = || Failure::responded(&THROTTLED).throttling();
    let mut requests: Vec<_> = (0..4).map(|_| begun(&adaptive, get(), &world)).collect();
    let mut hurried = begun(&adaptive, get().timeout(9000 * MS), &world);
    let mut turn = |request: usize| waits(requests[request].handle_failure(throttled(), &world));
    let first = turn(0);
    // The permit comes in time, but the backoff does not.
    let late = throttled().with_hint(10_000 * MS);
    waits(hurried.handle_failure(late, &world));
    assert_eq!(turn(1), 2 * first, "the prevented retry has no place");
    attempts(hurried.handle_woken(&world));
    assert_eq!(turn(2), 4 * first, "it has one now");
}

#[test]
fn a_woken_request_reports_its_failure_once() {
    let throttled = || Failure::responded(&THROTTLED).throttling();
    let rate_after = |is_woken: bool| {
        let world = VirtualWorld::new();
        let adaptive = Adaptive::new(patient(&budget()), WhenLimited::Wait);
        for _ in 0..200 {
            world.advance(10 * MS);
            begun(&adaptive, get(), &world).handle_success(&world);
        }
        let mut first = begun(&adaptive, get(), &world);
        let mut request = begun(&adaptive, get().timeout(20_000 * MS), &world);
        waits(first.handle_failure(throttled(), &world));
        let failure = throttled().with_hint(30_000 * MS);
        waits(request.handle_failure(failure, &world));
        if is_woken {
            attempts(request.handle_woken(&world));
        }
        adaptive.rate()
    };
    assert_eq!(rate_after(true), rate_after(false));
}

#[test]
fn a_strategy_sees_that_it_is_asked_again() {
    use std::sync::{Arc, Mutex};
    let asked: Arc<Mutex<Vec<_>>> = Arc::default();
    let strategy = {
        let asked = Arc::clone(&asked);
        from_fn(move |request, _| {
            let seen = (request.is_asked_again(), request.retries());
            asked.lock().unwrap().push(seen);
            RetryAction::with_duration(2000 * MS)
        })
    };
    let world = VirtualWorld::new();
    let mut request = begun(&strategy, hurried(), &world);
    waits(request.handle_failure(locked(), &world));
    attempts(request.handle_woken(&world));
    waits(request.handle_failure(locked(), &world));
    let expected = [(false, 0), (true, 0), (false, 1)];
    assert_eq!(*asked.lock().unwrap(), expected);
}
#[test]
fn an_awaited_decision_whose_delay_no_longer_fits_costs_nothing_in_the_end() {
    for rule in [WhenTooLate::Wait, WhenTooLate::FailFast] {
        let (world, budget) = (VirtualWorld::new(), budget());
        let slow = from_decision(move |token, _, _| {
            Decision::pending(async move { Ok(token.next(60 * MS).when_too_late(rule)) })
        });
        let mut request = begun(slow.with_budget(budget.clone()), hurried(), &world);
        assert_eq!(request.handle_failure(locked(), &world), Step::Ask);
        world.advance(50 * MS);
        match decided(&mut request, &world) {
            Step::Wait { delay, capped } => {
                assert!(capped && rule == WhenTooLate::Wait);
                world.advance(delay);
                gives_up(request.handle_waited(&world));
            }
            step => {
                gives_up(step);
                assert_eq!(rule, WhenTooLate::FailFast);
            }
        }
        assert_eq!(budget.level(), 500, "{rule:?}");
    }
}

/// A decision that comes late is no way around the deadline.
#[test]
fn law_3_a_decision_after_the_deadline_makes_no_attempt() {
    let world = VirtualWorld::new();
    let mut request = begun(deliberate(), hurried(), &world);
    waits(fail(&mut request, &world));
    assert_eq!(request.handle_woken(&world), Step::Ask);
    world.advance(200 * MS);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let decided = request.poll_decision(&mut context, &world);
    assert!(decided.is_ready());
    assert_ne!(decided, std::task::Poll::Ready(Step::Attempt));
    assert!(matches!(request.handle_waited(&world), Step::GiveUp(_)));
    assert_eq!(request.request().attempts(), 1);
}
