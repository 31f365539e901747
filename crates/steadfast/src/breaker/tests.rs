use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::call::Call;
use crate::strategy::BestEffort;
use crate::testing::{attempts, begun, waits};
use crate::world::{VirtualWorld, World};

/// A breaker, and a clock that is moved by hand.
struct Scene {
    breaker: CircuitBreaker,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        Self {
            breaker: CircuitBreaker::new(BreakerSettings::default())
                .expect("the defaults are valid"),
            now: VirtualWorld::new().now(),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn allow(&self) -> Result<BreakerPermit, BreakerOpen> {
        self.breaker.allow(self.now)
    }

    fn attempt(&self, signal: Signal) -> bool {
        match self.allow() {
            Ok(permit) => {
                self.breaker.record(permit, signal, self.now);
                true
            }
            Err(_) => false,
        }
    }

    fn attempts(&self, count: usize, signal: Signal) -> usize {
        (0..count).filter(|_| self.attempt(signal)).count()
    }

    fn opened() -> Self {
        let scene = Self::new();
        assert_eq!(scene.attempts(100, Signal::Failed), 20);
        scene
    }

    fn is_closed(&self) -> bool {
        self.attempts(100, Signal::Alive) == 100
    }
}

use Signal::{Alive, Failed, NotMade};

#[test]
fn the_breaker_opens_at_the_configured_volume_and_share() {
    let scene = Scene::new();
    assert_eq!(scene.attempts(19, Failed), 19);
    assert!(scene.attempt(Failed), "the twentieth is still allowed");
    assert_eq!(
        scene.allow(),
        Err(BreakerOpen {
            until: scene.now + Duration::from_secs(5)
        })
    );

    let scene = Scene::new();
    scene.attempts(51, Alive);
    assert_eq!(scene.attempts(50, Failed), 50, "50 of 101 are not half");
    assert!(scene.attempt(Failed), "51 of 102 are");
    assert!(scene.allow().is_err());
}

#[test]
fn old_failures_are_forgotten() {
    let mut scene = Scene::new();
    scene.attempts(19, Failed);
    scene.pass(61);
    assert_eq!(scene.attempts(19, Failed), 19);
    scene.pass(30);
    assert!(scene.attempt(Failed), "those of half a window ago count");
    assert!(scene.allow().is_err());
}

#[test]
fn a_successful_canary_closes_the_breaker_and_clears_its_counts() {
    let mut scene = Scene::opened();
    scene.pass(4);
    assert!(scene.allow().is_err() && scene.breaker.is_open(scene.now));
    scene.pass(1);
    let canary = scene.allow().unwrap();
    assert!(scene.allow().is_err(), "one canary at a time");
    scene.breaker.record(canary, Alive, scene.now);
    assert!(!scene.breaker.is_open(scene.now));
    assert_eq!(
        scene.attempts(19, Failed),
        19,
        "the failures of before are gone"
    );
    assert!(scene.attempt(Failed) && scene.allow().is_err());
}

#[test]
fn a_failed_canary_keeps_the_breaker_open_for_another_window() {
    let mut scene = Scene::opened();
    scene.pass(5);
    assert!(scene.attempt(Failed));
    scene.pass(4);
    assert!(scene.allow().is_err());
    scene.pass(1);
    assert!(scene.attempt(Alive));
    assert!(scene.is_closed());
}

#[test]
fn a_lost_canary_is_replaced() {
    let mut scene = Scene::opened();
    scene.pass(5);
    let lost = scene.allow().unwrap();
    scene.pass(4);
    assert!(scene.allow().is_err());
    scene.pass(1);
    let second = scene.allow().unwrap();
    // The first one's signal, should it come after all, decides nothing.
    scene.breaker.record(lost, Alive, scene.now);
    assert!(scene.allow().is_err());
    scene.breaker.record(second, Alive, scene.now);
    assert!(scene.is_closed());
}

#[test]
fn attempts_begun_before_the_breaker_opened_do_not_count() {
    let mut scene = Scene::new();
    let early: Vec<BreakerPermit> = (0..50).map(|_| scene.allow().unwrap()).collect();
    scene.attempts(20, Failed);
    scene.pass(5);
    let canary = scene.allow().unwrap();
    for permit in early {
        scene.breaker.record(permit, Failed, scene.now);
    }
    scene.breaker.record(canary, Alive, scene.now);
    assert!(scene.is_closed());
}

#[test]
fn an_invalid_setting_is_named() {
    let valid = BreakerSettings::default();
    let field = |settings| {
        CircuitBreaker::new(settings)
            .unwrap_err()
            .field()
            .to_owned()
    };
    for (settings, expected) in [
        (
            BreakerSettings {
                sleep_window: Duration::ZERO,
                ..valid
            },
            "breaker.sleep_window",
        ),
        (
            BreakerSettings {
                canary_timeout: Duration::MAX,
                ..valid
            },
            "breaker.canary_timeout",
        ),
        (
            BreakerSettings {
                volume_threshold: 0,
                ..valid
            },
            "breaker.volume_threshold",
        ),
        (
            BreakerSettings {
                error_percentage: 101,
                ..valid
            },
            "breaker.error_percentage",
        ),
    ] {
        assert_eq!(field(settings), expected);
    }
}

/// A request under a strategy waits for the canary's turn, by the hint.
#[test]
fn a_rejected_attempt_is_retried_when_the_next_canary_may_be_sent() {
    let scene = Scene::opened();
    let open = scene.allow().unwrap_err();
    let world = VirtualWorld::starting_at(scene.now);
    let call = Call::new("upsert");
    let mut request = begun(BestEffort::default(), call, &world);
    let delay = waits(request.handle_failure(open.failure(world.now()), &world));
    assert_eq!(
        delay,
        Duration::from_secs(5),
        "also for a write: nothing was sent"
    );
    world.advance(delay);
    attempts(request.handle_waited(&world));
    assert!(scene.breaker.allow(world.now()).is_ok());
}

#[test]
fn a_response_shows_that_the_peer_is_alive_and_silence_that_it_failed() {
    use crate::reason::{NOT_AVAILABLE, THROTTLED, TIMEOUT};
    let of = |failure| Signal::of::<()>(&Err(failure));
    assert_eq!(Signal::of(&Ok(())), Alive);
    assert_eq!(of(Failure::responded(&THROTTLED)), Alive);
    assert_eq!(of(Failure::inconclusive(&THROTTLED)), Alive);
    assert_eq!(of(Failure::in_flight(&TIMEOUT)), Failed);
    assert_eq!(of(Failure::not_sent(&NOT_AVAILABLE)), NotMade);
}

proptest! {
    /// Whatever happens, and however many permits are lost, an endpoint that has
    /// recovered is found to have within the sleep window and a canary's time.
    #[test]
    fn it_never_stays_open_for_ever(
        steps in proptest::collection::vec((0_u8..4, 0_u64..70), 0..200),
    ) {
        let mut scene = Scene::new();
        let mut held = Vec::new();
        for (step, seconds) in steps {
            match step {
                0 => held.extend(scene.allow()),
                1 => held.pop().into_iter().for_each(|permit| {
                    scene.breaker.record(permit, Failed, scene.now);
                }),
                2 => { scene.attempts(30, Failed); }
                _ => scene.pass(seconds % 7),
            }
        }
        scene.pass(10);
        prop_assert!(scene.attempt(Alive));
        // In the closed state old failures may be counted still, but one success
        // never opens it.
        prop_assert!(scene.allow().is_ok());
    }
}

#[test]
fn an_unsent_canary_allows_the_next_at_once() {
    let mut scene = Scene::opened();
    scene.pass(5);
    let canary = scene.allow().unwrap();
    assert!(scene.allow().is_err());
    scene.breaker.record(canary, NotMade, scene.now);
    assert!(scene.attempt(Alive));
    assert!(scene.is_closed());
}

#[test]
fn attempts_that_were_not_made_do_not_count() {
    let scene = Scene::new();
    scene.attempts(1000, NotMade);
    assert_eq!(scene.attempts(19, Failed), 19);
    assert!(scene.attempt(Failed));
    assert!(scene.allow().is_err());
}
