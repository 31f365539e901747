//! Tests of what a load-aware strategy sheds, in virtual time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::explain::{Planned, explain};
use crate::failure::Failure;
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::{NOT_AVAILABLE, OPERATION_FAILED, THROTTLED, TIMEOUT};
use crate::report::Verdict;
use crate::strategy::{Adaptive, Cause, FailFast, LoadAware, Standard, WhenLimited};
use crate::testing::{begun, get, gives_up};
use crate::world::{Roll, VirtualWorld, World};

const MS: Duration = Duration::from_millis(1);
const TIMEOUT_MS: u32 = 100;

/// A strategy that never retries.
fn braked() -> LoadAware {
    LoadAware::new().around(FailFast::new())
}

/// Returns the share of first attempts that a strategy admits.
fn admitted(strategy: &LoadAware, world: &VirtualWorld) -> f64 {
    strategy.state(world.now()).admitted
}

#[test]
fn a_cancelled_attempt_teaches_no_attempt_timeout() {
    let world = VirtualWorld::new();
    let strategy = braked();
    let mut request = begun(&strategy, get(), &world);
    world.advance(5 * MS);
    let _ = request.handle_cancel(&world);
    assert_eq!(strategy.state(world.now()).attempt_timeout, None);
}

fn timed_out() -> Failure {
    Failure::in_flight(&TIMEOUT).timed_out()
}

/// Makes a request whose attempt takes so long and then ends so. False if it was shed.
fn request(
    strategy: &LoadAware,
    millis: u32,
    failure: Option<Failure>,
    world: &VirtualWorld,
) -> bool {
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
    strategy: &LoadAware,
    count: u32,
    millis: u32,
    failure: Option<Failure>,
    world: &VirtualWorld,
) -> u32 {
    let made = (0..count).map(|_| request(strategy, millis, failure.clone(), world));
    made.map(u32::from).sum()
}

#[test]
fn timeouts_brake_and_quick_successes_release() {
    let world = VirtualWorld::new().seeded(1);
    let strategy = braked();
    requests(&strategy, 100, 5, None, &world);
    // Each brings a timeout, one attempt timeout after the other.
    requests(&strategy, 30, TIMEOUT_MS, Some(timed_out()), &world);
    let state = strategy.state(world.now());
    assert!(state.admitted < 0.3, "{state:?}");

    // One shed request leads to the next at once: the probes are 100 ms apart.
    let mut shed = 0;
    while request(&strategy, 5, None, &world) || admitted(&strategy, &world) < 1.0 {
        world.advance(5 * MS);
        shed += 1;
        if admitted(&strategy, &world) >= 1.0 {
            break;
        }
        assert!(shed < 200, "{:?}", strategy.state(world.now()));
    }
}

#[test]
fn one_attempt_is_admitted_for_each_attempt_timeout() {
    let world = VirtualWorld::new().rolling(Roll::ONE); // The dice admit nothing.
    let strategy = braked();
    requests(&strategy, 30, TIMEOUT_MS, Some(timed_out()), &world);
    assert!(admitted(&strategy, &world) < 1.0);
    let mut admitted = 0;
    for _ in 0..100 {
        let error = Failure::inconclusive(&OPERATION_FAILED);
        admitted += u32::from(request(&strategy, 1, Some(error), &world));
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
    assert_eq!(admitted(&strategy, &world), 1.0);
    requests(&strategy, 12, TIMEOUT_MS, Some(throttled()), &world);
    assert!(admitted(&strategy, &world) < 1.0);
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
        assert_eq!(admitted(&strategy, &world), 1.0);
    }
}

#[test]
fn steady_latency_below_the_timeout_sheds_nothing() {
    for percent in [55, 70, 90] {
        let latency = TIMEOUT_MS * percent / 100;
        let world = VirtualWorld::new().rolling(Roll::ONE);
        let strategy = braked();
        // It knows quick responses, and it knows the timeout.
        requests(&strategy, 100, 5, None, &world);
        requests(&strategy, 1, TIMEOUT_MS, Some(timed_out()), &world);
        let admitted = requests(&strategy, 1000, latency, None, &world);
        assert_eq!(admitted, 1000, "latency of {percent} % of the timeout");
    }
}

#[test]
fn slow_successes_release() {
    let world = VirtualWorld::new().rolling(Roll::ONE); // Only probes are admitted.
    let strategy = braked();
    requests(&strategy, 30, TIMEOUT_MS, Some(timed_out()), &world);
    assert!(admitted(&strategy, &world) < 1.0);
    for _ in 0..40 {
        world.advance(TIMEOUT_MS * MS);
        requests(&strategy, 1, TIMEOUT_MS * 9 / 10, None, &world);
    }
    assert_eq!(admitted(&strategy, &world), 1.0);
}

#[test]
fn a_burst_of_timeouts_of_a_busy_client_does_not_brake() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let strategy = braked();
    requests(&strategy, 1000, 1, None, &world); // One per millisecond.
    let open: Vec<_> = (0..15).map(|_| begun(&strategy, get(), &world)).collect();
    requests(&strategy, 1000, 1, None, &world);
    for mut request in open {
        gives_up(request.handle_failure(timed_out(), &world));
        world.advance(MS);
    }
    assert_eq!(admitted(&strategy, &world), 1.0);
}

/// Counts how often the time is read.
struct Clock(VirtualWorld, Cell<u32>);

impl World for Clock {
    fn now(&self) -> Instant {
        self.1.set(self.1.get() + 1);
        self.0.now()
    }

    fn roll(&self) -> Roll {
        self.0.roll()
    }
}

#[test]
fn few_calls_read_the_clock_while_all_is_well() {
    let clock = Clock(VirtualWorld::new(), Cell::new(0));
    let strategy = LoadAware::new();
    for _ in 0..100_000 {
        let mut request = begun(&strategy, get(), &clock);
        clock.0.advance(Duration::from_micros(10));
        request.handle_success(&clock);
    }
    // A second has passed. It takes a while to find the right period.
    let read = clock.1.get();
    assert!((20..400).contains(&read), "{read}");
}

#[test]
fn a_shed_request_says_when_to_try_again_and_explain_says_that_it_brakes() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let strategy = LoadAware::fleet();
    let inner = strategy.around(FailFast::new());
    requests(&inner, 30, TIMEOUT_MS, Some(timed_out()), &world);
    world.advance(MS);
    assert!(request(&inner, 1, Some(timed_out()), &world), "a probe");
    let mut shed = Orchestrator::new(&strategy, Call::new("get"));
    assert_eq!(gives_up(shed.begin(&world)), Verdict::Shed);
    let refusal = shed.take_report();
    let later = refusal.refusal().and_then(|refusal| refusal.delay());
    let timeout = strategy.state(world.now()).attempt_timeout;
    assert_eq!(later, timeout.map(|timeout| timeout * 3 / 2));

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
    assert_eq!(admitted(&strategy, &world), 1.0);
}

#[test]
fn a_brake_for_one_peer_ignores_failures_that_name_another() {
    let world = VirtualWorld::new().rolling(Roll::ONE);
    let strategy = braked().for_peer("10.0.0.7:11210");
    let at = |peer: &'static str| Some(timed_out().with_peer(peer));
    assert_eq!(
        requests(&strategy, 30, TIMEOUT_MS, at("10.0.0.8:11210"), &world),
        30
    );
    assert_eq!(admitted(&strategy, &world), 1.0);
    requests(&strategy, 30, TIMEOUT_MS, at("10.0.0.7:11210"), &world);
    assert!(admitted(&strategy, &world) < 1.0);
}

/// Brakes as far as it can, and returns a request in the next probe.
fn probe<'s>(strategy: &'s LoadAware, world: &VirtualWorld) -> Orchestrator<&'s LoadAware> {
    let inner = strategy.around(FailFast::new());
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
        let strategy = LoadAware::new().around(Standard::guidance());
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
    let strategy = LoadAware::new().around(inner.clone());
    let mut request = probe(&strategy, &world);
    let throttled = Failure::responded(&THROTTLED).throttling();
    gives_up(request.handle_failure(throttled, &world));
    assert!(inner.rate().is_some(), "the limiter did not hear of it");
}
