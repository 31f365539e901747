//! Tests of the brake as a strategy, in virtual time.

use std::time::Duration;

use super::*;
use crate::call::Call;
use crate::explain::{Planned, explain};
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::{NOT_AVAILABLE, OPERATION_FAILED, THROTTLED, TIMEOUT};
use crate::report::Verdict;
use crate::strategy::{
    Adaptive, Cause, FailFast, RetryStrategy, Standard, StrategyExt, WhenLimited,
};
use crate::testing::{begun, get, gives_up};
use crate::world::{Roll, VirtualWorld};

const MS: Duration = Duration::from_millis(1);
const TIMEOUT_MS: u32 = 100;

type Braked = WithBrake<FailFast>;

#[test]
fn a_cancelled_attempt_teaches_no_attempt_timeout() {
    let world = VirtualWorld::new();
    let strategy = FailFast::new().with_brake(Brake::new());
    let mut request = begun(&strategy, get(), &world);
    world.advance(5 * MS);
    let _ = request.handle_cancel(&world);
    assert_eq!(strategy.brake().state().attempt_timeout, None);
}

fn braked() -> Braked {
    let brake = Brake::for_attempt_timeout(TIMEOUT_MS * MS).expect("it is positive");
    FailFast::new().with_brake(brake)
}

fn timed_out() -> Failure {
    Failure::in_flight(&TIMEOUT).timed_out()
}

/// Makes a request whose attempt takes so long and then ends so. False if it was shed.
fn request(strategy: &Braked, millis: u32, failure: Option<Failure>, world: &VirtualWorld) -> bool {
    let mut request = Orchestrator::new(strategy, get());
    match request.begin(world) {
        Step::Attempt => {}
        Step::GiveUp(verdict) => {
            assert_eq!(verdict, Verdict::Shed);
            return false;
        }
        other => panic!("{other:?}"),
    }
    world.advance(millis * MS);
    match failure {
        Some(failure) => drop(gives_up(request.handle_failure(failure, world))),
        None => request.handle_success(world),
    }
    true
}

/// Makes requests that take so long, and returns how many were admitted.
fn requests(
    strategy: &Braked,
    count: u32,
    millis: u32,
    failure: Option<Failure>,
    world: &VirtualWorld,
) -> u32 {
    let made = (0..count).map(|_| request(strategy, millis, failure.clone(), world));
    made.map(u32::from).sum()
}

#[test]
fn a_brake_admits_everything_while_all_is_well() {
    let (strategy, world) = (braked(), VirtualWorld::new().rolling(Roll::ONE));
    assert_eq!(requests(&strategy, 1000, 5, None, &world), 1000);
    assert_eq!(strategy.brake().state().admitted, 1.0);
}

#[test]
fn timeouts_brake_and_quick_successes_release() {
    let world = VirtualWorld::new().seeded(1);
    let strategy = braked();
    requests(&strategy, 100, 5, None, &world);
    // Each brings a timeout, one attempt timeout after the other.
    requests(&strategy, 30, TIMEOUT_MS, Some(timed_out()), &world);
    let state = strategy.brake().state();
    assert!(state.admitted < 0.3, "{state:?}");

    // One shed request leads to the next at once: the probes are 100 ms apart.
    let mut shed = 0;
    while request(&strategy, 5, None, &world) || strategy.brake().state().admitted < 1.0 {
        world.advance(5 * MS);
        shed += 1;
        if strategy.brake().state().admitted >= 1.0 {
            break;
        }
        assert!(shed < 200, "{:?}", strategy.brake().state());
    }
}

#[test]
fn one_attempt_is_admitted_for_each_attempt_timeout() {
    let world = VirtualWorld::new().rolling(Roll::ONE); // The dice admit nothing.
    let strategy = braked();
    requests(&strategy, 30, TIMEOUT_MS, Some(timed_out()), &world);
    assert!(strategy.brake().state().admitted < 1.0);
    let mut admitted = 0;
    for _ in 0..100 {
        admitted += u32::from(request(&strategy, 1, Some(timed_out()), &world));
        world.advance(9 * MS);
    }
    assert!((8..=11).contains(&admitted), "{admitted} in a second");
}

#[test]
fn throttling_brakes_later_than_timeouts() {
    let world = VirtualWorld::new().seeded(1);
    let throttled = || Failure::responded(&THROTTLED).throttling();
    let strategy = braked();
    requests(&strategy, 8, TIMEOUT_MS, Some(throttled()), &world);
    assert_eq!(strategy.brake().state().admitted, 1.0);
    requests(&strategy, 12, TIMEOUT_MS, Some(throttled()), &world);
    assert!(strategy.brake().state().admitted < 1.0);
}

#[test]
fn plain_errors_and_unsent_attempts_never_brake() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    for failure in [
        Failure::responded(&OPERATION_FAILED),
        Failure::inconclusive(&OPERATION_FAILED),
        Failure::in_flight(&OPERATION_FAILED),
        Failure::not_sent(&NOT_AVAILABLE),
    ] {
        let strategy = braked();
        assert_eq!(requests(&strategy, 500, 5, Some(failure), &world), 500);
        assert_eq!(strategy.brake().state().admitted, 1.0);
    }
}

#[test]
fn steady_latency_below_the_timeout_sheds_nothing() {
    for percent in [55, 70, 90] {
        let latency = TIMEOUT_MS * percent / 100;
        for brake in [braked().brake().clone(), Brake::new()] {
            let world = VirtualWorld::new().rolling(Roll::ONE);
            let strategy = FailFast::new().with_brake(brake);
            // It knows quick responses, and it knows the timeout.
            requests(&strategy, 100, 5, None, &world);
            requests(&strategy, 1, TIMEOUT_MS, Some(timed_out()), &world);
            let admitted = requests(&strategy, 1000, latency, None, &world);
            assert_eq!(admitted, 1000, "latency of {percent} % of the timeout");
        }
    }
}

#[test]
fn slow_successes_release() {
    let world = VirtualWorld::new().rolling(Roll::ONE); // Only probes are admitted.
    let strategy = braked();
    requests(&strategy, 30, TIMEOUT_MS, Some(timed_out()), &world);
    assert!(strategy.brake().state().admitted < 1.0);
    for _ in 0..40 {
        world.advance(TIMEOUT_MS * MS);
        requests(&strategy, 1, TIMEOUT_MS * 9 / 10, None, &world);
    }
    assert_eq!(strategy.brake().state().admitted, 1.0);
}

#[test]
fn a_burst_of_timeouts_of_a_busy_client_does_not_brake() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let brake = Brake::for_attempt_timeout(1000 * MS).expect("it is positive");
    let strategy = FailFast::new().with_brake(brake);
    requests(&strategy, 1000, 1, None, &world); // One per millisecond.
    let open: Vec<_> = (0..15).map(|_| begun(&strategy, get(), &world)).collect();
    requests(&strategy, 1000, 1, None, &world);
    for mut request in open {
        gives_up(request.handle_failure(timed_out(), &world));
        world.advance(MS);
    }
    assert_eq!(strategy.brake().state().admitted, 1.0);
}

#[test]
fn slow_responses_among_quick_ones_shed_nothing() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let strategy = braked();
    for _ in 0..100 {
        requests(&strategy, 5, TIMEOUT_MS * 8 / 10, None, &world);
        requests(&strategy, 5, 5, None, &world);
        assert_eq!(strategy.brake().state().admitted, 1.0);
    }
}

#[test]
fn the_attempt_timeout_is_learnt_from_attempts_that_time_out() {
    let world = VirtualWorld::new().seeded(1);
    let strategy = FailFast::new().with_brake(Brake::new());
    assert_eq!(strategy.brake().state().attempt_timeout, None);
    requests(&strategy, 20, 250, Some(timed_out()), &world);
    let learnt = strategy
        .brake()
        .state()
        .attempt_timeout
        .expect("it is known");
    assert!((240..260).contains(&learnt.as_millis()), "{learnt:?}");
    assert!(strategy.brake().state().admitted < 1.0);
}

#[test]
fn few_calls_are_measured_while_all_is_well() {
    let world = VirtualWorld::new();
    let strategy = braked();
    let measured = || strategy.brake().lock().measured();
    for _ in 0..100_000 {
        let mut request = begun(&strategy, get(), &world);
        world.advance(Duration::from_micros(10));
        request.handle_success(&world);
    }
    let measured = measured();
    // A second has passed. It takes a while to find the right period.
    assert!((10..200).contains(&measured), "{measured}");
}

#[test]
fn a_shed_request_says_when_to_try_again_and_explain_says_that_it_brakes() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let strategy = Standard::fleet().with_brake(braked().brake().clone());
    let inner = FailFast::new().with_brake(strategy.brake().clone());
    requests(&inner, 30, TIMEOUT_MS, Some(timed_out()), &world);
    world.advance(MS);
    assert!(request(&inner, 1, Some(timed_out()), &world), "a probe");
    let mut shed = Orchestrator::new(&strategy, Call::new("get"));
    assert_eq!(gives_up(shed.begin(&world)), Verdict::Shed);
    let refusal = shed.take_report();
    let later = refusal.refusal().and_then(|refusal| refusal.delay());
    assert_eq!(later, Some(150 * MS));

    let explanation = explain(&strategy, &get(), &timed_out()).expect("it can be copied");
    assert!(explanation.to_string().contains("% now"), "{explanation}");
    assert_ne!(explanation.decided(), Planned::Refused(Cause::Shed));
}

#[test]
fn a_dropped_request_leaves_the_brake_as_it_is() {
    let (strategy, world) = (braked(), VirtualWorld::new());
    for _ in 0..100 {
        drop(begun(&strategy, get(), &world));
    }
    assert_eq!(strategy.brake().state().admitted, 1.0);
}

#[test]
fn a_brake_for_one_peer_ignores_failures_that_name_another() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let brake = braked().brake().for_peer("10.0.0.7:11210");
    let strategy = FailFast::new().with_brake(brake);
    let at = |peer: &'static str| Some(timed_out().with_peer(peer));
    assert_eq!(
        requests(&strategy, 30, TIMEOUT_MS, at("10.0.0.8:11210"), &world),
        30
    );
    assert_eq!(strategy.brake().state().admitted, 1.0);
    requests(&strategy, 30, TIMEOUT_MS, at("10.0.0.7:11210"), &world);
    assert!(strategy.brake().state().admitted < 1.0);
}

/// Brakes as far as it can, and returns a request in the next probe.
fn probe<'s, S: RetryStrategy>(
    strategy: &'s WithBrake<S>,
    world: &VirtualWorld,
) -> Orchestrator<&'s WithBrake<S>> {
    let inner = FailFast::new().with_brake(strategy.brake().clone());
    requests(&inner, 30, TIMEOUT_MS, Some(timed_out()), world);
    world.advance(TIMEOUT_MS * MS);
    begun(strategy, get(), world)
}

#[test]
fn while_it_brakes_a_retry_is_shed_like_a_first_attempt() {
    let throttled = || Failure::responded(&THROTTLED).throttling();
    let plain = || Failure::responded(&OPERATION_FAILED);
    for (roll, failure, is_shed) in [
        (Roll::ONE, timed_out(), true),
        (Roll::ONE, throttled(), true),
        (Roll::ONE, plain(), true),
        // Nothing was sent, so the peer was not loaded.
        (Roll::ONE, Failure::not_sent(&NOT_AVAILABLE), false),
        (Roll::ZERO, timed_out(), false),
    ] {
        let world = VirtualWorld::new().rolling(roll);
        let strategy = Standard::guidance().with_brake(braked().brake().clone());
        let mut request = probe(&strategy, &world);
        let refused = match request.handle_failure(failure, &world) {
            Step::GiveUp(_) => request.refusal().map(|refusal| refusal.cause()),
            _ => None,
        };
        assert_eq!(refused == Some(Cause::Shed), is_shed, "{roll:?}");
        let error = crate::Error::from_parts(request.take_report(), None::<String>);
        assert_eq!(error.is_shed(), is_shed, "{error}");
        assert!(error.report().attempts() > 0);
        assert_eq!(error.try_again_in().is_some(), is_shed);
    }
}

#[test]
fn the_inner_strategy_hears_of_a_failure_whose_retry_is_shed() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let inner = Adaptive::new(Standard::guidance(), WhenLimited::Wait);
    let strategy = inner.clone().with_brake(braked().brake().clone());
    let mut request = probe(&strategy, &world);
    let throttled = Failure::responded(&THROTTLED).throttling();
    gives_up(request.handle_failure(throttled, &world));
    assert!(inner.rate().is_some(), "the limiter did not hear of it");
}
