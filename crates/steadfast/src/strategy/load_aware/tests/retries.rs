//! Tests of what a load-aware strategy retries, in virtual time.

use std::time::Duration;

use crate::call::Call;
use crate::failure::Failure;
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::{NOT_AVAILABLE, OPERATION_FAILED, THROTTLED, TIMEOUT};
use crate::strategy::{
    BestEffort, Cause, Decision, LoadAware, LoadState, RetryStrategy, StrategyExt, WhenTooLate,
};
use crate::testing::{attempts, begun, get, gives_up, waits};
use crate::world::{Roll, VirtualWorld, World};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn error() -> Failure {
    Failure::inconclusive(&OPERATION_FAILED)
}

fn timed_out() -> Failure {
    Failure::in_flight(&TIMEOUT).timed_out()
}

fn unsent() -> Failure {
    Failure::not_sent(&NOT_AVAILABLE)
}

fn throttled() -> Failure {
    Failure::responded(&THROTTLED).throttling()
}

fn patient() -> Call {
    get().timeout(30 * SECOND)
}

/// Makes a call whose first attempt fails after this time, and any other succeeds at once.
/// Returns how long it waited for its retry.
fn recovers(
    strategy: &LoadAware,
    call: Call,
    failure: Failure,
    after: Duration,
    world: &VirtualWorld,
) -> Option<Duration> {
    let mut request = begun(strategy, call, world);
    world.advance(after);
    match request.handle_failure(failure, world) {
        Step::Wait { delay, .. } => {
            world.advance(delay);
            assert!(matches!(request.handle_waited(world), Step::Attempt));
            request.handle_success(world);
            Some(delay)
        }
        _ => None,
    }
}

fn succeeds(strategy: &LoadAware, calls: u32, every: Duration, world: &VirtualWorld) {
    for _ in 0..calls {
        let mut request = begun(strategy, get(), world);
        world.advance(every);
        request.handle_success(world);
    }
}

#[test]
fn the_first_failure_of_a_new_client_is_retried() {
    for seed in 0..50 {
        for (failure, after, shortest, longest) in [
            (error(), MS, Duration::ZERO, 100 * MS),
            (unsent(), MS, 500 * MS, SECOND),
            (throttled(), MS, 500 * MS, SECOND),
            (timed_out(), SECOND, 5 * SECOND, 16 * SECOND),
        ] {
            let (strategy, world) = (LoadAware::new(), VirtualWorld::new().seeded(seed));
            let waited = recovers(&strategy, patient(), failure.clone(), after, &world);
            let waited = waited.unwrap_or_else(|| panic!("seed {seed}: {failure:?}"));
            assert!(
                (shortest..=longest).contains(&waited),
                "{failure:?}: {waited:?}"
            );
        }
    }
}

/// A program that makes few calls would not earn a retry for hours.
#[test]
fn a_client_that_gave_up_retries_again_after_ten_quiet_minutes() {
    for (failure, after) in [
        (error(), MS),
        (unsent(), MS),
        (throttled(), MS),
        (timed_out(), SECOND),
    ] {
        let (strategy, world) = (LoadAware::new(), VirtualWorld::new().seeded(1));
        // Every attempt of these calls fails, so nothing is paid back.
        for _ in 0..5 {
            let mut request = begun(&strategy, patient(), &world);
            loop {
                world.advance(after);
                match request.handle_failure(failure.clone(), &world) {
                    Step::Wait { delay, .. } => world.advance(delay),
                    _ => break,
                }
                assert!(matches!(request.handle_waited(&world), Step::Attempt));
            }
        }
        let recovered = || recovers(&strategy, patient(), failure.clone(), after, &world);
        assert_eq!(recovered(), None, "{failure:?}");
        world.advance(600 * SECOND);
        assert!(recovered().is_some(), "{failure:?}");
    }
}

#[test]
fn in_a_fleet_a_timeout_needs_recent_successes_and_other_failures_do_not() {
    let world = VirtualWorld::new().rolling(Roll::from_bits(1 << 63));
    for failure in [error(), unsent(), throttled()] {
        let strategy = LoadAware::fleet();
        assert!(recovers(&strategy, patient(), failure, MS, &world).is_some());
    }
    let strategy = LoadAware::fleet();
    assert!(recovers(&strategy, patient(), timed_out(), SECOND, &world).is_none());
    // 100 calls a second have earned 30 retries in 3 s.
    succeeds(&strategy, 1000, 10 * MS, &world);
    let waited = recovers(&strategy, patient(), timed_out(), SECOND, &world);
    assert!(
        waited.is_some_and(|waited| waited <= 100 * MS),
        "{waited:?}"
    );
}

#[test]
fn an_error_that_comes_late_is_a_slow_failure() {
    let world = VirtualWorld::new().rolling(Roll::from_bits(1 << 63));
    for (after, is_retried) in [(200 * MS, true), (300 * MS, false)] {
        let strategy = LoadAware::fleet();
        let waited = recovers(&strategy, patient(), error(), after, &world);
        assert_eq!(waited.is_some(), is_retried, "{after:?}");
    }
    // The attempt timeout is 400 ms, so quick is within 100 ms.
    let strategy = LoadAware::fleet();
    recovers(&strategy, patient(), timed_out(), 400 * MS, &world);
    assert!(recovers(&strategy, patient(), error(), 101 * MS, &world).is_none());
    assert!(recovers(&strategy, patient(), error(), 99 * MS, &world).is_some());
}

#[test]
fn an_unfunded_slow_retry_is_refused_if_the_deadline_is_nearer_and_keeps_its_saving() {
    let (strategy, world) = (LoadAware::new(), VirtualWorld::new());
    let call = get().timeout(4 * SECOND);
    let mut request = begun(&strategy, call, &world);
    world.advance(SECOND);
    gives_up(request.handle_failure(timed_out(), &world));
    let cause = request.refusal().map(|refusal| refusal.cause());
    assert_eq!(cause, Some(Cause::Deadline));
    assert_eq!(strategy.state(world.now()).saved_slow, 1.0);
}

#[test]
fn at_most_four_attempts_are_made() {
    let (strategy, world) = (LoadAware::new(), VirtualWorld::new());
    succeeds(&strategy, 1000, 10 * MS, &world);
    let mut request = begun(&strategy, get(), &world);
    for _ in 0..3 {
        world.advance(waits(request.handle_failure(error(), &world)));
        assert!(matches!(request.handle_waited(&world), Step::Attempt));
    }
    gives_up(request.handle_failure(error(), &world));
    let cause = request.refusal().map(|refusal| refusal.cause());
    assert_eq!(cause, Some(Cause::AttemptsUsedUp { limit: 4 }));
}

#[test]
fn retries_end_while_everything_fails() {
    for (failure, takes, most) in [
        (error(), MS, 4),
        (unsent(), MS, 3),
        (timed_out(), SECOND, 1),
    ] {
        let world = VirtualWorld::new().seeded(3);
        let strategy = LoadAware::new();
        let mut retries = 0;
        for _ in 0..100 {
            let mut request = Orchestrator::new(&strategy, patient());
            let mut step = request.begin(&world);
            while matches!(step, Step::Attempt) {
                world.advance(takes);
                step = match request.handle_failure(failure.clone(), &world) {
                    Step::Wait { delay, .. } => {
                        retries += 1;
                        world.advance(delay);
                        request.handle_waited(&world)
                    }
                    end => end,
                };
            }
        }
        assert!(retries <= most, "{retries} retries after {failure:?}");
    }
}

#[test]
fn a_retry_that_succeeds_is_free() {
    let (strategy, world) = (LoadAware::new(), VirtualWorld::new());
    for failure in [error(), unsent(), throttled(), timed_out()] {
        for _ in 0..5 {
            world.advance(SECOND * 60);
            let waited = recovers(&strategy, patient(), failure.clone(), MS, &world);
            assert!(waited.is_some(), "{failure:?}");
        }
    }
    let state = strategy.state(world.now());
    assert_eq!((state.saved_quick, state.saved_slow), (1.0, 1.0));
}

#[test]
fn around_another_strategy_it_pays_for_what_was_sent_and_not_for_waits() {
    let world = VirtualWorld::new();
    let guard = LoadAware::fleet();
    let strategy = guard.around(BestEffort::default());
    let mut request = begun(&strategy, get(), &world);
    for _ in 0..20 {
        world.advance(waits(request.handle_failure(unsent(), &world)));
        assert!(matches!(request.handle_waited(&world), Step::Attempt));
    }
    assert_eq!(guard.state(world.now()).saved_quick, 1.0);
    world.advance(waits(request.handle_failure(error(), &world)));
    assert_eq!(guard.state(world.now()).saved_quick, 0.75);
}

/// A strategy that asks another service pays when it has the answer.
#[tokio::test]
async fn around_a_strategy_that_asks_it_pays_for_what_was_granted() {
    use crate::strategy::{RetryAction, from_async_fn};
    let world = VirtualWorld::new();
    let guard = LoadAware::new();
    let asks = from_async_fn(|_, _| async { RetryAction::Retry(MS) });
    let strategy = guard.around(asks);
    let call = get();
    let token = strategy.acquire_initial_token(&call.request(), &world);
    let token = token.into_token().expect("it admits everything");
    let decision = strategy.refresh_retry_token(token, &call.request(), &error(), &world);
    let Decision::Pending(pending) = decision else {
        panic!("{decision:?}");
    };
    assert_eq!(guard.state(world.now()).saved_quick, 1.0);
    let token = pending.await.expect("it is granted");
    assert_eq!(guard.state(world.now()).saved_quick, 0.75);
    strategy
        .record_success(Some(token), &world)
        .expect("it is its own");
    assert_eq!(guard.state(world.now()).saved_quick, 1.0);
}

/// Another strategy around it may take a granted retry back.
#[test]
fn a_retry_that_is_withdrawn_is_free() {
    let (strategy, world) = (LoadAware::new(), VirtualWorld::new());
    let empty = crate::budget::Budget::builder().initial(0).build();
    let outer = strategy.clone().with_budget(empty.expect("it is valid"));
    let mut request = begun(&outer, get(), &world);
    gives_up(request.handle_failure(error(), &world));
    assert_eq!(strategy.state(world.now()).saved_quick, 1.0);
}

#[test]
fn a_strategy_for_another_peer_shares_nothing() {
    let world = VirtualWorld::new();
    let strategy = LoadAware::new();
    let other = strategy.for_peer("10.0.0.8:80");
    let mut request = begun(&strategy, get(), &world);
    waits(request.handle_failure(error(), &world));
    assert_eq!(strategy.state(world.now()).saved_quick, 0.75);
    assert_eq!(other.state(world.now()).saved_quick, 1.0);
}

/// Calls fail like this, and want a retry after their deadline. If they are woken, they make
/// it, 500 ms after they began. Returns what the strategy knows then, and the wait after one
/// more timeout.
fn after_late_retries(failure: &Failure, after: Duration, woken: bool) -> (LoadState, Duration) {
    let world = VirtualWorld::new().rolling(Roll::from_bits(1 << 63));
    let strategy = LoadAware::new();
    succeeds(&strategy, 100, Duration::ZERO, &world);
    let late = failure.clone().with_hint(15 * SECOND);
    let hurried = || get().timeout(5 * SECOND).when_too_late(WhenTooLate::Wait);
    let mut requests = [(); 7].map(|()| begun(&strategy, hurried(), &world));
    world.advance(after);
    for request in &mut requests {
        waits(request.handle_failure(late.clone(), &world));
    }
    world.advance(500 * MS - after);
    for request in requests.iter_mut().filter(|_| woken) {
        attempts(request.handle_woken(&world));
    }
    let state = strategy.state(world.now());
    let waited = recovers(&strategy, patient(), timed_out(), MS, &world);
    (state, waited.expect("it is retried"))
}

#[test]
fn a_failure_counts_once_also_if_the_request_is_woken() {
    let (_, waited) = after_late_retries(&timed_out(), MS, true);
    assert_eq!(waited, after_late_retries(&timed_out(), MS, false).1);
}

#[test]
fn a_quick_error_stays_one_when_the_request_is_woken() {
    let (left, _) = after_late_retries(&error(), MS, false);
    let (state, _) = after_late_retries(&error(), MS, true);
    assert_eq!(state.saved_slow, left.saved_slow);
    assert_eq!(state.saved_quick, left.saved_quick - 1.75, "seven retries");
}
