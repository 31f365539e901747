//! Tests of retries whose delay reaches the deadline (D40), and of how they are counted.

use super::*;
use crate::backoff::{Backoff, Jitter};
use crate::budget::Budget;
use crate::strategy::{Adaptive, WhenLimited, WhenTooLate};

/// A failure after which the peer asks for two seconds.
fn busy() -> Failure {
    Failure::responded(&THROTTLED)
        .throttling()
        .with_hint(2000 * MS)
}

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

#[track_caller]
fn failed_at_once<S: RetryStrategy>(request: &mut Orchestrator<S>, step: Step, delay: Duration) {
    assert_eq!(gives_up(step), Verdict::Failed(Certainty::Unambiguous));
    let report = request.take_report();
    let refusal = report.refusal().expect("it was refused");
    assert_eq!(
        (refusal.cause(), refusal.delay()),
        (Cause::Deadline, Some(delay))
    );
    assert_eq!(report.retries(), 0);
}

/// Lets 400 requests fail once. Returns whether they timed out after the deadline.
#[track_caller]
fn four_hundred(strategy: &dyn RetryStrategy) -> bool {
    let world = VirtualWorld::new();
    let mut timed_out = 0;
    for _ in 0..400 {
        let started = world.now();
        let mut request = begun(strategy, hurried(), &world);
        let verdict = match request.handle_failure(busy(), &world) {
            Step::Wait { delay, .. } => {
                world.advance(delay);
                assert_eq!(world.now() - started, 100 * MS);
                gives_up(request.handle_waited(&world))
            }
            step => gives_up(step),
        };
        assert_eq!(request.take_report().attempts(), 1);
        timed_out += u32::from(verdict.is_timeout());
    }
    assert!(timed_out == 0 || timed_out == 400);
    timed_out == 400
}

#[test]
fn a_retry_that_would_miss_the_deadline_is_not_paid_for() {
    let standard = Standard::guidance();
    assert!(!four_hundred(&standard), "Smithy strategies fail at once");
    assert_eq!(standard.budget().level(), 500);

    let patient = standard.to_builder().when_too_late(WhenTooLate::Wait);
    assert!(four_hundred(&patient.build().unwrap()));
    assert_eq!(standard.budget().level(), 500);

    let (outer, middle) = (budget(), budget());
    for strategy in [
        Box::new(BestEffort::default().with_budget(outer.clone())) as Box<dyn RetryStrategy>,
        Box::new(
            foreign()
                .with_budget(middle.clone())
                .with_budget(outer.clone()),
        ),
    ] {
        assert!(four_hundred(&strategy), "RFC 0049's strategies time out");
        assert_eq!((outer.level(), middle.level()), (500, 500));
    }
    let nested = standard.clone().with_budget(outer.clone());
    assert!(!four_hundred(&nested));
    assert_eq!((outer.level(), standard.budget().level()), (500, 500));
}

#[test]
fn smithy_strategies_fail_at_once_and_say_how_long_they_would_have_waited() {
    let world = VirtualWorld::new().rolling(Roll::ZERO).recording();
    let adaptive = Adaptive::new(Standard::guidance(), WhenLimited::Wait);
    for strategy in [
        Box::new(Standard::guidance()) as Box<dyn RetryStrategy>,
        Box::new(Standard::aws_2_0()),
        Box::new(Standard::aws_2_1()),
        Box::new(adaptive),
        Box::new(Standard::guidance().when(|_, _| true)),
    ] {
        let mut request = begun(strategy, hurried(), &world);
        let step = request.handle_failure(busy(), &world);
        failed_at_once(&mut request, step, 2000 * MS);
        let told = events(&world);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("refused deadline"), "{told:?}");
    }
}

#[test]
fn a_call_overrides_the_rule_of_its_strategy() {
    let world = VirtualWorld::new().rolling(Roll::ZERO);
    let fail = hurried().when_too_late(WhenTooLate::FailFast);
    for strategy in [
        Box::new(BestEffort::default()) as Box<dyn RetryStrategy>,
        Box::new(foreign()),
        Box::new(BestEffort::default().with_budget(budget())),
    ] {
        let mut request = begun(strategy, fail.clone(), &world);
        let step = request.handle_failure(busy(), &world);
        failed_at_once(&mut request, step, 2000 * MS);
    }
    let wait = hurried().when_too_late(WhenTooLate::Wait);
    let mut request = begun(Standard::guidance(), wait, &world);
    assert_eq!(waits(request.handle_failure(busy(), &world)), 100 * MS);

    let mut request = begun(BestEffort::default(), fail, &world);
    let moved = moved().with_prescribed_delay(300 * MS);
    let step = request.handle_failure(moved, &world);
    failed_at_once(&mut request, step, 300 * MS);
}

#[test]
fn a_long_poll_that_would_miss_its_deadline_waits_for_it() {
    let world = VirtualWorld::new();
    let poll = hurried().long_polling(true);
    let mut request = begun(Standard::guidance(), poll, &world);
    assert_eq!(waits(request.handle_failure(busy(), &world)), 100 * MS);
}

#[test]
fn a_retry_that_would_miss_the_deadline_holds_no_permit() {
    let world = VirtualWorld::new();
    let at_once = Backoff::constant(MS);
    for rule in [WhenTooLate::Wait, WhenTooLate::FailFast] {
        let standard = Standard::builder()
            .backoff(at_once.clone())
            .when_too_late(rule);
        let adaptive = Adaptive::new(standard.build().unwrap(), WhenLimited::Wait);
        // All begin before the first throttled one starts the limiter.
        let mut first = begun(&adaptive, get(), &world);
        let mut last = begun(&adaptive, get(), &world);
        let timeout = get().timeout(4500 * MS);
        let mut late: Vec<_> = (0..50)
            .map(|_| begun(&adaptive, timeout.clone(), &world))
            .collect();
        let throttled = || Failure::responded(&THROTTLED).throttling();
        let before = waits(first.handle_failure(throttled(), &world));
        assert!(2 * before < 4500 * MS, "the next has its turn in time");
        for request in &mut late {
            let _ = request.handle_failure(throttled().with_hint(5000 * MS), &world);
        }
        let after = waits(last.handle_failure(throttled(), &world));
        assert_eq!(after, 2 * before, "{rule:?}: one turn after the first");
    }
}

#[test]
fn what_an_earlier_retry_cost_is_not_returned_with_the_last_wait() {
    let world = VirtualWorld::new();
    let strategy = Standard::builder()
        .backoff(Backoff::constant(60 * MS))
        .when_too_late(WhenTooLate::Wait)
        .build()
        .unwrap();
    let mut request = begun(&strategy, hurried(), &world);
    assert!(fails(&mut request, locked(), &world));
    assert!(!fails(&mut request, locked(), &world));
    assert_eq!(strategy.budget().level(), 495);

    // Nor after a reason that is always retried.
    let mut request = begun(&strategy, hurried(), &world);
    assert!(fails(&mut request, locked(), &world));
    assert!(!fails(
        &mut request,
        moved().with_prescribed_delay(90 * MS),
        &world
    ));
    assert_eq!(strategy.budget().level(), 490);
}

#[test]
fn law_4_a_wait_that_the_deadline_ends_is_not_counted_as_a_retry() {
    let world = VirtualWorld::new().recording();
    let backoff = Backoff::constant(30 * MS);
    let mut request = begun(BestEffort::new(backoff), hurried(), &world);
    while fails(&mut request, locked(), &world) {}
    let report = request.take_report();
    assert_eq!((report.attempts(), report.retries()), (4, 3));
    assert_eq!(report.reasons().times(&LOCKED), 4, "each has its reason");
    let told = events(&world);
    assert!(told[2].contains("capped=false retries=3"), "{told:?}");
    assert!(told[3].contains("capped=true retries=3"), "{told:?}");
}

#[test]
fn law_4_a_retry_whose_wait_is_cancelled_or_overslept_is_not_counted_in_the_end() {
    let world = VirtualWorld::new();
    for overslept in [true, false] {
        let mut request = begun(BestEffort::default(), hurried(), &world);
        waits(request.handle_failure(locked(), &world));
        assert_eq!(request.request().retries(), 1, "counted before the sleep");
        if overslept {
            world.advance(100 * MS);
            gives_up(request.handle_waited(&world));
        } else {
            gives_up(request.handle_cancel(&world));
        }
        let report = request.take_report();
        assert_eq!((report.attempts(), report.retries()), (1, 0));
    }
}

#[test]
fn an_explanation_says_that_a_retry_would_miss_the_deadline() {
    let text = crate::explain(&Standard::guidance(), &hurried(), &busy())
        .unwrap()
        .to_string();
    assert!(
        text.contains("the deadline leaves no time for a retry, it would have waited"),
        "{text}"
    );
    let patient = Standard::builder().when_too_late(WhenTooLate::Wait);
    let patient = patient.build().unwrap();
    let text = crate::explain(&patient, &hurried(), &busy())
        .unwrap()
        .to_string();
    assert!(text.contains("cut by the deadline"), "{text}");
    assert!(
        text.contains("waiting for the deadline if a retry would miss it"),
        "{text}"
    );

    // With a jitter that may or may not fit, both are possible.
    let half = Backoff::constant(200 * MS).with_jitter(Jitter::Full);
    let perhaps = Standard::builder().backoff(half).build().unwrap();
    let explanation = crate::explain(&perhaps, &hurried(), &locked()).unwrap();
    assert_eq!(
        explanation.decided(),
        crate::explain::Planned::Retry {
            shortest: Duration::ZERO,
            longest: 200 * MS,
            capped: true
        }
    );
}
