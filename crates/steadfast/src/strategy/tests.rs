//! The published numbers, row by row, and what the combinators do.

use std::time::Duration;

use super::*;
use crate::backoff::{Backoff, Jitter};
use crate::budget::{Costs, Load, Refund};
use crate::call::Call;
use crate::failure::FaultSide;
use crate::law::MaybeRule;
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::{OPERATION_FAILED, Reason, THROTTLED, TIMEOUT};
use crate::testing::*;
use crate::world::VirtualWorld;

const S: Duration = Duration::from_secs(1);

/// What happens at one step of a row.
#[derive(Debug, PartialEq)]
enum Seen {
    /// Retried: the bucket then, and the delay.
    R(u32, Duration),
    /// Attempts used up: the bucket then.
    Max(u32),
    /// Budget empty: the bucket then.
    Quota(u32),
    /// Succeeded: the bucket then.
    Ok(u32),
}
use Seen::{Max, Ok as Okay, Quota, R};

fn server_error() -> Failure {
    Failure::responded(&OPERATION_FAILED).with_fault(FaultSide::Server)
}

fn throttled() -> Failure {
    Failure::responded(&THROTTLED)
        .with_fault(FaultSide::Client)
        .throttling()
}

fn timed_out() -> Failure {
    Failure::in_flight(&TIMEOUT).timed_out()
}

fn token_of(strategy: &dyn RetryStrategy, world: &VirtualWorld) -> RetryToken {
    let admission = strategy.acquire_initial_token(&get().request(), world);
    admission.into_token().expect("it is admitted")
}

/// Runs one request through failures, then a success if it is still alive,
/// with jitter factor 1.
fn row(
    strategy: &Standard,
    failures: impl IntoIterator<Item = Failure>,
    success: bool,
) -> Vec<Seen> {
    let world = VirtualWorld::new();
    let level = || strategy.budget().level(world.now());
    let mut seen = Vec::new();
    let mut request = Orchestrator::new(strategy, get());
    let mut step = request.begin(&world);
    for failure in failures {
        assert!(matches!(step, Step::Attempt), "{step:?} after {seen:?}");
        step = match request.handle_failure(failure, &world) {
            Step::Wait { delay, .. } => {
                seen.push(R(level(), delay));
                world.advance(delay);
                request.handle_waited(&world)
            }
            Step::GiveUp(_) => {
                let report = request.take_report();
                seen.push(match report.refusal().map(Refusal::cause) {
                    Some(Cause::AttemptsUsedUp { .. }) => Max(level()),
                    Some(Cause::BudgetEmpty) => Quota(level()),
                    other => panic!("{other:?}"),
                });
                return seen;
            }
            other => panic!("{other:?}"),
        };
    }
    if success {
        request.handle_success(&world);
        seen.push(Okay(level()));
    }
    seen
}

/// The preset, with so much left in its budget.
fn bucket_at(preset: Standard, level: u32) -> Standard {
    let world = VirtualWorld::new();
    preset.budget().pay(500 - level, &world).unwrap();
    preset
}

#[test]
fn aws_2_1_succeeds_on_its_last_attempt_and_gets_the_last_cost_back() {
    let strategy = Standard::aws_2_1();
    let seen = row(&strategy, [server_error(), server_error()], true);
    assert_eq!(seen, [R(486, 50 * MS), R(472, 100 * MS), Okay(486)]);
}

#[test]
fn aws_2_1_gives_up_after_three_attempts_without_paying_for_a_fourth() {
    let strategy = Standard::aws_2_1();
    let seen = row(&strategy, std::iter::repeat_n(server_error(), 3), false);
    assert_eq!(seen, [R(486, 50 * MS), R(472, 100 * MS), Max(472)]);
}

#[test]
fn aws_2_1_is_refused_by_an_empty_bucket_at_once() {
    let strategy = bucket_at(Standard::aws_2_1(), 14);
    let seen = row(&strategy, std::iter::repeat_n(server_error(), 2), false);
    assert_eq!(seen, [R(0, 50 * MS), Quota(0)]);
    let strategy = bucket_at(Standard::aws_2_1(), 0);
    assert_eq!(row(&strategy, [server_error()], false), [Quota(0)]);
}

#[test]
fn aws_2_1_backs_off_twice_as_long_each_time_up_to_the_cap() {
    let strategy = Standard::aws_2_1()
        .to_builder()
        .max_attempts(5)
        .build()
        .unwrap();
    assert_eq!(
        row(&strategy, std::iter::repeat_n(server_error(), 5), false),
        [
            R(486, 50 * MS),
            R(472, 100 * MS),
            R(458, 200 * MS),
            R(444, 400 * MS),
            Max(444)
        ]
    );
    let strategy = Standard::aws_2_1()
        .to_builder()
        .max_attempts(5)
        .max_backoff(200 * MS)
        .build()
        .unwrap();
    assert_eq!(
        row(&strategy, std::iter::repeat_n(server_error(), 5), false),
        [
            R(486, 50 * MS),
            R(472, 100 * MS),
            R(458, 200 * MS),
            R(444, 200 * MS),
            Max(444)
        ]
    );
}

#[test]
fn aws_2_1_waits_longer_after_throttling_and_pays_less() {
    let strategy = Standard::aws_2_1();
    assert_eq!(row(&strategy, [throttled()], true), [R(495, S), Okay(500)]);
}

#[test]
fn aws_2_1_clamps_the_hint_between_its_own_delay_and_five_seconds_more() {
    for (hint, expected) in [
        (Some(1500), 1500),
        (Some(0), 50),
        (Some(10_000), 5050),
        (None, 50),
    ] {
        let mut failure = server_error();
        failure.hint = hint.map(Duration::from_millis);
        let seen = row(&Standard::aws_2_1(), [failure], false);
        assert_eq!(
            seen,
            [R(486, Duration::from_millis(expected))],
            "hint {hint:?}"
        );
    }
}

#[test]
fn aws_2_1_for_dynamodb_as_published() {
    let strategy = Standard::aws_2_1_dynamodb();
    assert_eq!(
        row(&strategy, std::iter::repeat_n(server_error(), 4), false),
        [R(486, 25 * MS), R(472, 50 * MS), R(458, 100 * MS), Max(458)]
    );
    let throttled = Failure::responded(&THROTTLED).throttling();
    assert_eq!(
        row(&Standard::aws_2_1_dynamodb(), [throttled], true),
        [R(495, S), Okay(500)]
    );
}

#[test]
fn aws_2_0_as_published() {
    let strategy = Standard::aws_2_0();
    assert_eq!(
        row(&strategy, [server_error(), server_error()], true),
        [R(495, S), R(490, 2 * S), Okay(495)]
    );
    let strategy = bucket_at(Standard::aws_2_0(), 5);
    assert_eq!(
        row(&strategy, std::iter::repeat_n(server_error(), 2), false),
        [R(0, S), Quota(0)]
    );
    let strategy = Standard::aws_2_0()
        .to_builder()
        .max_attempts(5)
        .max_backoff(3 * S)
        .build()
        .unwrap();
    assert_eq!(
        row(&strategy, std::iter::repeat_n(server_error(), 5), false),
        [
            R(495, S),
            R(490, 2 * S),
            R(485, 3 * S),
            R(480, 3 * S),
            Max(480)
        ]
    );
    let hinted = |seconds| server_error().with_hint(seconds * S);
    assert_eq!(
        row(&Standard::aws_2_0(), [hinted(7)], false),
        [R(495, 7 * S)]
    );
    assert_eq!(
        row(&Standard::aws_2_0(), [hinted(70)], false),
        [R(495, 20 * S)]
    );
}

#[test]
fn the_guidance_as_published() {
    let strategy = Standard::guidance();
    assert_eq!(
        row(&strategy, [server_error(), server_error()], true),
        [R(495, S), R(490, 2 * S), Okay(491)]
    );
    assert_eq!(
        row(&Standard::guidance(), [timed_out()], false),
        [R(490, S)]
    );
    let [R(_, delay)] = row(
        &Standard::guidance(),
        [server_error().with_hint(30 * S)],
        false,
    )[..] else {
        panic!()
    };
    assert!(delay >= 30 * S);
    assert_eq!(
        row(
            &Standard::guidance(),
            std::iter::repeat_n(server_error(), 5),
            false
        )
        .last(),
        Some(&Max(480)),
        "five attempts in all, the first included"
    );
}

#[test]
fn twenty_requests_that_each_fail_once_and_then_succeed_leave_an_aws_bucket_where_it_was() {
    let strategy = Standard::aws_2_0();
    let world = VirtualWorld::new();
    let call = || get();
    let mut requests: Vec<_> = (0..20)
        .map(|_| Orchestrator::new(&strategy, call()))
        .collect();
    for request in &mut requests {
        let _ = request.begin(&world);
        let _ = request.handle_failure(server_error(), &world);
    }
    assert_eq!(strategy.budget().level(world.now()), 400);
    for request in &mut requests {
        let _ = request.handle_waited(&world);
        request.handle_success(&world);
    }
    assert_eq!(strategy.budget().level(world.now()), 500);
}

#[test]
fn a_variation_for_one_request_pays_from_the_same_budget() {
    let client = Standard::guidance();
    let this_call = client.to_builder().max_attempts(2).build().unwrap();
    row(&this_call, [server_error()], false);
    assert_eq!(client.budget().level(VirtualWorld::new().now()), 495);
}

#[test]
fn an_empty_budget_says_how_long_the_wait_would_have_been_and_what_is_left() {
    let strategy = bucket_at(Standard::guidance(), 3);
    let world = VirtualWorld::new();
    let call = get();
    let token = token_of(&strategy, &world);
    let decision = strategy.refresh_retry_token(token, &call.request(), &server_error(), &world);
    let refusal = refused(decision);
    assert_eq!(refusal.cause(), Cause::BudgetEmpty);
    assert_eq!(refusal.delay(), Some(S));
    assert_eq!(refusal.budget_left(), Some(3));
}

#[test]
fn an_initial_token_is_issued_on_an_empty_budget_too() {
    let strategy = bucket_at(Standard::guidance(), 0);
    let call = Call::new("op");
    let admission = strategy.acquire_initial_token(&call.request(), &VirtualWorld::new());
    assert!(admission.into_token().is_some());
}

#[test]
fn hints_are_a_floor_with_jitter_above_and_never_without_bound() {
    let world = VirtualWorld::new().seeded(17);
    let strategy = Standard::guidance();
    let failure = server_error().with_hint(2 * S);
    let call = get();
    let mut delays = std::collections::HashSet::new();
    for _ in 0..50 {
        let token = token_of(&strategy, &world);
        let decision = strategy.refresh_retry_token(token, &call.request(), &failure, &world);
        let token = granted(decision);
        assert!(
            token.delay() >= 2 * S && token.delay() < 3 * S,
            "seed 17: {:?}",
            token.delay()
        );
        delays.insert(token.delay());
    }
    assert!(
        delays.len() > 45,
        "a fleet told 2 s must not come back as one"
    );

    let token = token_of(&strategy, &world);
    let endless = server_error().with_hint(Duration::MAX);
    let decision = strategy.refresh_retry_token(token, &call.request(), &endless, &world);
    let refusal = refused(decision);
    assert_eq!(refusal.cause(), Cause::HintTooLong);

    // Under a deadline, the deadline ends the wait (D36).
    let patient = get().timeout(S).when_too_late(WhenTooLate::Wait);
    let mut request = begun(&strategy, patient, &world);
    let endless = server_error().with_hint(Duration::MAX);
    let delay = waits(request.handle_failure(endless, &world));
    assert_eq!(delay, S);
}

#[test]
fn a_hint_is_combined_with_the_backoff_by_the_rule() {
    let failure = server_error().with_hint(3 * S);
    let call = Call::new("op");
    let apply = |policy: RetryAfter| policy.apply(S, false, &call.request(), &failure).unwrap();
    assert_eq!(apply(RetryAfter::Floor), 3 * S);
    assert_eq!(apply(RetryAfter::Clamp(S)), 2 * S);
    assert_eq!(apply(RetryAfter::Cap(2 * S)), 2 * S);
    assert_eq!(apply(RetryAfter::Ignore), S);
}

#[test]
fn maybe_with_the_clients_fault_is_not_retried_unless_the_rule_allows_it() {
    let failure = || Failure::responded(&OPERATION_FAILED).with_fault(FaultSide::Client);
    let retried = |strategy: &Standard| {
        let world = VirtualWorld::new();
        let mut request = begun(strategy, get(), &world);
        matches!(request.handle_failure(failure(), &world), Step::Wait { .. })
    };
    assert!(!retried(&Standard::guidance()));
    let wider = Standard::builder()
        .retry_maybe(MaybeRule::Always)
        .build()
        .unwrap();
    assert!(retried(&wider));
}

#[test]
fn a_foreign_token_is_refused_by_every_strategy() {
    let world = VirtualWorld::new();
    let call = get();
    let stranger = StrategyId::unique();
    let foreign = || RetryToken::issued_by(&stranger);
    let strategies: [Box<dyn RetryStrategy>; 6] = [
        Box::new(BestEffort::default()),
        Box::new(Standard::guidance()),
        Box::new(Adaptive::new(Standard::guidance(), WhenLimited::Wait)),
        Box::new(FailFast::new()),
        Box::new(from_fn(|_, _| crate::strategy::RetryAction::no_retry())),
        Box::new(
            BestEffort::default()
                .max_attempts(9)
                .unwrap()
                .when(|_, _| true),
        ),
    ];
    for strategy in strategies {
        let decision =
            strategy.refresh_retry_token(foreign(), &call.request(), &server_error(), &world);
        let refusal = refused(decision);
        assert_eq!(refusal.cause(), Cause::ForeignToken);
        assert_eq!(
            strategy.record_success(Some(foreign()), &world),
            Err(ForeignToken)
        );
    }
}

#[test]
fn strategies_apply_the_law_without_an_orchestrator() {
    let world = VirtualWorld::new();
    let strategies: [Box<dyn RetryStrategy>; 4] = [
        Box::new(BestEffort::default()),
        Box::new(Standard::guidance()),
        Box::new(Adaptive::new(Standard::guidance(), WhenLimited::Wait)),
        Box::new(BestEffort::default().max_attempts(9).unwrap()),
    ];
    for strategy in strategies {
        for call in [Call::new("put"), get()] {
            let token = token_of(&*strategy, &world);
            let in_flight = Failure::in_flight(&OPERATION_FAILED).with_fault(FaultSide::Server);
            let decision = strategy.refresh_retry_token(token, &call.request(), &in_flight, &world);
            match (call.request().is_idempotent(), decision) {
                (true, Decision::Ready(Ok(_))) => {}
                (_, decision) => assert_eq!(refused(decision).cause(), Cause::Unsafe),
            }
        }
    }
}

#[test]
fn a_foreign_token_costs_a_budget_around_a_strategy_nothing() {
    let world = VirtualWorld::new();
    let call = get();
    let budget = Budget::builder().build().unwrap();
    let strategy = BestEffort::default().with_budget(budget.clone());
    let token = RetryToken::issued_by(&StrategyId::unique());
    let _ = strategy.refresh_retry_token(token, &call.request(), &server_error(), &world);
    assert_eq!(budget.level(world.now()), 500);
}

#[test]
fn max_attempts_counts_the_first() {
    let strategy = BestEffort::default().max_attempts(2).unwrap();
    let world = VirtualWorld::new();
    let mut request = begun(&strategy, get(), &world);
    waits(request.handle_failure(server_error(), &world));
    let _ = request.handle_waited(&world);
    gives_up(request.handle_failure(server_error(), &world));
    let problem = BestEffort::default().max_attempts(0).unwrap_err();
    assert_eq!(problem.field(), "max_attempts");
    assert!(Standard::builder().max_attempts(0).build().is_err());
}

#[test]
fn two_budgets_are_both_paid_and_both_refunded() {
    let world = VirtualWorld::new();
    let outer = Budget::builder()
        .capacity(50)
        .costs(Costs::new(7, 7, 7))
        .refund(Refund::LastCostOr(1))
        .build()
        .unwrap();
    let inner = Standard::aws_2_0();
    let strategy = inner.clone().with_budget(outer.clone());
    let levels = || (inner.budget().level(world.now()), outer.level(world.now()));
    let mut request = begun(&strategy, get(), &world);
    let _ = request.handle_failure(server_error(), &world);
    assert_eq!(levels(), (495, 43));
    let _ = request.handle_waited(&world);
    request.handle_success(&world);
    assert_eq!(levels(), (500, 50));
}

#[test]
fn a_retry_that_the_inner_strategy_refuses_is_not_paid_from_the_outer_budget() {
    let world = VirtualWorld::new();
    let outer = Budget::builder().build().unwrap();
    let strategy = BestEffort::default()
        .max_attempts(1)
        .unwrap()
        .with_budget(outer.clone());
    let mut request = begun(&strategy, get(), &world);
    gives_up(request.handle_failure(server_error(), &world));
    assert_eq!(outer.level(world.now()), 500);
}

#[test]
fn a_terminal_reason_fails_at_once_with_the_error_that_it_becomes() {
    static NO_ENTRY: Reason = Reason::new("NO_ENTRY").allowing_non_idempotent_retry();
    let strategy = FastFailOnTerminalError::new(
        BestEffort::default(),
        vec![Terminal::new(&NO_ENTRY, |request, _| {
            format!("{}: no entry", request.operation()).into()
        })],
    );
    let world = VirtualWorld::new();
    let mut request = begun(&strategy, get(), &world);
    waits(request.handle_failure(server_error(), &world));
    let _ = request.handle_waited(&world);
    gives_up(request.handle_failure(Failure::not_sent(&NO_ENTRY), &world));
    let report = request.take_report();
    let refusal = report.refusal().unwrap();
    assert_eq!(refusal.cause(), Cause::Terminal);
    assert_eq!(refusal.raised().unwrap().to_string(), "get: no entry");
}

#[test]
fn adaptive_limits_after_throttling_and_waits_or_fails_fast() {
    for when_limited in [WhenLimited::Wait, WhenLimited::FailFast] {
        let world = VirtualWorld::new();
        let strategy = Adaptive::new(Standard::guidance(), when_limited);
        let call = || get();
        assert_eq!(strategy.rate(), None);
        let mut request = begun(&strategy, call(), &world);
        let step = request.handle_failure(throttled(), &world);
        assert_eq!(strategy.rate(), Some(0.5));
        match when_limited {
            // The backoff of 1 s is shorter than the 2 s that a rate of 0.5/s asks for.
            WhenLimited::Wait => {
                assert!(matches!(step, Step::Wait { delay, .. } if delay == 2 * S))
            }
            WhenLimited::FailFast => {
                gives_up(step);
                let refusal = request.take_report();
                assert_eq!(
                    refusal.refusal().map(Refusal::cause),
                    Some(Cause::RateLimited)
                );
                assert_eq!(strategy.standard().budget().level(world.now()), 500);
            }
        }
    }
}

#[test]
fn adaptive_learns_from_every_outcome_the_final_failure_included() {
    let world = VirtualWorld::new();
    let standard = Standard::guidance()
        .to_builder()
        .max_attempts(1)
        .build()
        .unwrap();
    let strategy = Adaptive::new(standard, WhenLimited::Wait);
    let mut request = begun(&strategy, get(), &world);
    gives_up(request.handle_failure(throttled(), &world));
    assert!(strategy.rate().is_some());

    // Also when the law refuses before the strategy is asked.
    let strategy = Adaptive::new(Standard::guidance(), WhenLimited::Wait);
    let mut request = begun(&strategy, Call::new("op"), &world);
    let _ = request.handle_failure(Failure::in_flight(&THROTTLED).throttling(), &world);
    assert!(strategy.rate().is_some());
}

#[test]
fn a_request_dropped_before_its_attempt_gives_the_permit_back_and_in_it_does_not() {
    for (attempt_made, expected) in [(false, Duration::ZERO), (true, 2 * S)] {
        let world = VirtualWorld::new();
        let strategy = Adaptive::new(Standard::guidance(), WhenLimited::Wait);
        strategy.record_end(
            token_of(&strategy, &world),
            Ending::failed(&throttled()),
            &world,
        );
        world.advance(2 * S); // one permit has accrued
        let token = token_of(&strategy, &world);
        assert_eq!(token.delay(), Duration::ZERO);
        strategy.record_end(token, Ending::abandoned(attempt_made), &world);
        let token = token_of(&strategy, &world);
        assert_eq!(token.delay(), expected);
        strategy.record_end(token, Ending::abandoned(false), &world);
    }
}

#[test]
fn worst_cases_are_stated_before_anything_is_sent() {
    let timeout = Limits {
        timeout: Some(2500 * MS),
        ..Limits::default()
    };
    let best = BestEffort::default().worst_case(&timeout);
    assert_eq!(best.attempts, Some(13));
    assert_eq!(best.wall_time, Some(2500 * MS));
    assert_eq!(
        BestEffort::default()
            .worst_case(&Limits::default())
            .attempts,
        None
    );

    let ignoring = Standard::builder()
        .retry_after(RetryAfter::Ignore)
        .build()
        .unwrap();
    let each = Limits {
        attempt_timeout: Some(3 * S),
        ..Limits::default()
    };
    let worst = ignoring.worst_case(&each);
    assert_eq!(worst.attempts, Some(5));
    assert_eq!(worst.waiting, Some(15 * S)); // 1 + 2 + 4 + 8
    assert_eq!(worst.wall_time, Some(30 * S));
    assert_eq!(
        worst.load,
        Some(Load {
            burst: 100,
            per_success: 0.2,
            per_second: 0.0
        })
    );

    let narrowed = BestEffort::default()
        .max_attempts(3)
        .unwrap()
        .worst_case(&timeout);
    assert_eq!(narrowed.attempts, Some(3));
    // Nothing is known of a jittered delay but that it may be nothing.
    let jittered = BestEffort::new(Backoff::best_effort().with_jitter(Jitter::Full));
    assert_eq!(jittered.worst_case(&timeout).attempts, None);
}

#[test]
fn worst_cases_of_extreme_policies_do_not_overflow() {
    let limits = Limits {
        timeout: Some(Duration::MAX),
        ..Limits::default()
    };
    let tiny = BestEffort::new(Backoff::constant(Duration::from_nanos(1)));
    assert_eq!(tiny.worst_case(&limits).attempts, Some(u32::MAX));
    let many = Standard::builder().max_attempts(u32::MAX).build().unwrap();
    assert!(many.worst_case(&Limits::default()).waiting.is_some());
}

#[test]
fn a_strategy_describes_itself() {
    let strategy = Standard::guidance().with_budget(Budget::builder().build().unwrap());
    let text = Described(&strategy).to_string();
    assert!(
        text.starts_with("standard, 5 attempts (backoff 1s × 2ⁿ up to 20s, full jitter;"),
        "{text}"
    );
}

#[test]
fn a_soft_hint_counts_up_to_the_longest_delay_of_the_backoff() {
    let world = VirtualWorld::new();
    let delay = |strategy: BestEffort, hint| {
        let token = token_of(&strategy, &world);
        let failure = server_error().with_soft_hint(hint);
        let call = get();
        granted(strategy.refresh_retry_token(token, &call.request(), &failure, &world)).delay()
    };
    let ms = Duration::from_millis;
    assert_eq!(delay(BestEffort::default(), ms(20)), ms(20));
    assert_eq!(delay(BestEffort::default(), 3600 * S), ms(500));
    let obeying = BestEffort::default().retry_after(RetryAfter::Obey);
    assert_eq!(delay(obeying, 3600 * S), 3600 * S);
}
