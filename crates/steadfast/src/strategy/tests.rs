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

/// Presets and changes of them; failures; the bucket and the delay in ms after each retry; the
/// end, and the bucket then. `E` is a server error, `T` throttling, `S` a timeout, and `E@7` a
/// server error whose hint is 7 ms. After the failures comes a success, unless the request has
/// ended. The jitter is 1.
const PUBLISHED: &[&str] = &[
    "2.1                      | E E       | 486:50 472:100                 | ok 486",
    "2.1                      | E E E     | 486:50 472:100                 | max 472",
    "2.1 bucket=14            | E E       | 0:50                           | quota 0",
    "2.1 bucket=0             | E         |                                | quota 0",
    "2.1 attempts=5           | E E E E E | 486:50 472:100 458:200 444:400 | max 444",
    "2.1 attempts=5 cap=200   | E E E E E | 486:50 472:100 458:200 444:200 | max 444",
    "2.1                      | T         | 495:1000                       | ok 500",
    // The hint is clamped between the own delay and five seconds more.
    "2.1                      | E@1500    | 486:1500                       | ok 500",
    "2.1                      | E@0       | 486:50                         | ok 500",
    "2.1                      | E@10000   | 486:5050                       | ok 500",
    "dynamodb                 | E E E E   | 486:25 472:50 458:100          | max 458",
    "dynamodb                 | T         | 495:1000                       | ok 500",
    "2.0                      | E E       | 495:1000 490:2000              | ok 495",
    "2.0 bucket=5             | E E       | 0:1000                         | quota 0",
    "2.0 attempts=5 cap=3000  | E E E E E | 495:1000 490:2000 485:3000 480:3000 | max 480",
    "2.0                      | E@7000    | 495:7000                       | ok 500",
    "2.0                      | E@70000   | 495:20000                      | ok 500",
    "guidance                 | E E       | 495:1000 490:2000              | ok 491",
    "guidance                 | S         | 490:1000                       | ok 491",
    // The jitter is added to the hint.
    "guidance                 | E@30000   | 495:31000                      | ok 496",
    "guidance                 | E E E E E | 495:1000 490:2000 485:4000 480:8000 | max 480",
];

#[test]
fn the_presets_as_published() {
    for row in PUBLISHED {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [preset, failures, retries, end] = columns[..] else {
            panic!("{row}")
        };
        let strategy = published(preset);
        let failures = failures.split(' ').map(failure);
        assert_eq!(
            seen(&strategy, failures),
            format!("{retries} {end}").trim(),
            "{row}"
        );
    }
}

fn published(preset: &str) -> Standard {
    let mut words = preset.split(' ');
    let preset = match words.next() {
        Some("2.1") => Standard::aws_2_1(),
        Some("2.0") => Standard::aws_2_0(),
        Some("dynamodb") => Standard::aws_2_1_dynamodb(),
        _ => Standard::guidance(),
    };
    let mut builder = preset.to_builder();
    for (setting, value) in words.filter_map(|word| word.split_once('=')) {
        let value: u32 = value.parse().unwrap();
        builder = match setting {
            "attempts" => builder.max_attempts(value),
            "cap" => builder.max_backoff(value * MS),
            _ => {
                preset.budget().pay(500 - value).unwrap();
                builder
            }
        };
    }
    builder.build().unwrap()
}

fn failure(text: &str) -> Failure {
    let (kind, hint) = text.split_once('@').unzip();
    let failure = match kind.unwrap_or(text) {
        "T" => throttled(),
        "S" => timed_out(),
        _ => server_error(),
    };
    match hint {
        Some(hint) => failure.with_hint(Duration::from_millis(hint.parse().unwrap())),
        None => failure,
    }
}

/// Runs one request through failures, then a success if it is still alive.
fn seen(strategy: &Standard, failures: impl Iterator<Item = Failure>) -> String {
    let world = VirtualWorld::new();
    let level = || strategy.budget().level();
    let mut seen = Vec::new();
    let mut request = begun(strategy, get(), &world);
    for failure in failures {
        match request.handle_failure(failure, &world) {
            Step::Wait { delay, .. } => {
                seen.push(format!("{}:{}", level(), delay.as_millis()));
                world.advance(delay);
                attempts(request.handle_waited(&world));
            }
            step => {
                gives_up(step);
                let end = match request.refusal().map(Refusal::cause) {
                    Some(Cause::AttemptsUsedUp { .. }) => "max",
                    Some(Cause::BudgetEmpty) => "quota",
                    other => panic!("{other:?}"),
                };
                seen.push(format!("{end} {}", level()));
                return seen.join(" ");
            }
        }
    }
    request.handle_success(&world);
    seen.push(format!("ok {}", level()));
    seen.join(" ")
}

/// The preset, with so much left in its budget.
fn bucket_at(preset: Standard, level: u32) -> Standard {
    preset.budget().pay(500 - level).unwrap();
    preset
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
    assert_eq!(strategy.budget().level(), 400);
    for request in &mut requests {
        let _ = request.handle_waited(&world);
        request.handle_success(&world);
    }
    assert_eq!(strategy.budget().level(), 500);
}

#[test]
fn a_variation_for_one_request_pays_from_the_same_budget() {
    let client = Standard::guidance();
    let this_call = client.to_builder().max_attempts(2).build().unwrap();
    let world = VirtualWorld::new();
    waits(begun(&this_call, get(), &world).handle_failure(server_error(), &world));
    assert_eq!(client.budget().level(), 495);
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
        let recorded = strategy.record_success(Some(foreign()), &world);
        assert_eq!(
            recorded.map_err(|refusal| refusal.cause()),
            Err(Cause::ForeignToken)
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
    let levels = || (inner.budget().level(), outer.level());
    let mut request = begun(&strategy, get(), &world);
    let _ = request.handle_failure(server_error(), &world);
    assert_eq!(levels(), (495, 43));
    let _ = request.handle_waited(&world);
    request.handle_success(&world);
    assert_eq!(levels(), (500, 50));
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
                assert_eq!(strategy.standard().budget().level(), 500);
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
            per_success: 0.2
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
