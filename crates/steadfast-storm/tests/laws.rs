//! What holds in every storm, under every policy.

mod support;

use steadfast_storm::{Outcome, Policy, Storm, Trouble, Weather};

fn small() -> Storm {
    support::small().lasting(70.0)
}

fn run(storm: &Storm) -> Vec<Outcome> {
    storm.compare(&Policy::all()).expect("it fits")
}

#[test]
fn every_request_ends_and_ends_once() {
    for weather in Weather::all() {
        for outcome in run(&small().in_weather(weather.clone())) {
            let ended = outcome.succeeded + outcome.failed + outcome.timed_out;
            assert_eq!(outcome.requests, ended, "{weather}: {}", outcome.policy);
            assert!(outcome.requests > 6000);
        }
    }
}

#[test]
fn what_is_not_idempotent_is_never_sent_again_once_it_may_have_arrived() {
    let weather = Weather::calm().with(0.0, 70.0, Trouble::Silent);
    let storm = Storm {
        idempotent: 0.0,
        ..small().in_weather(weather)
    };
    for outcome in run(&storm) {
        assert_eq!(outcome.attempts, outcome.requests, "{}", outcome.policy);
        assert_eq!(outcome.ambiguous, outcome.requests, "{}", outcome.policy);
    }
}

#[test]
fn what_did_not_leave_is_sent_again_though_it_is_not_idempotent() {
    let storm = Storm {
        idempotent: 0.0,
        rate: 50.0, // So that what comes back after the blip finds room.
        ..small().in_weather(Weather::blip())
    };
    let [patient] = &storm.compare(&[Policy::best_effort()]).expect("it fits")[..] else {
        panic!("one for each policy");
    };
    assert_eq!(patient.succeeded, patient.requests);
    assert!(patient.attempts > patient.requests);
}

#[test]
fn the_same_seed_is_the_same_storm_and_the_same_requests_come_under_every_policy() {
    let storm = small().in_weather(Weather::brownout());
    let (first, second, other) = (run(&storm), run(&storm), run(&storm.clone().seeded(1)));
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.seconds, second.seconds, "{}", first.policy);
    }
    assert_ne!(first[0].seconds, other[0].seconds);
    let begun = |outcome: &Outcome| -> Vec<u64> {
        let seconds = outcome.seconds.iter().take(70);
        seconds.map(|second| second.begun).collect()
    };
    assert!(
        first
            .iter()
            .all(|outcome| begun(outcome) == begun(&first[0]))
    );
}

#[test]
fn in_calm_weather_no_policy_costs_anything() {
    for outcome in run(&small()) {
        assert_eq!(outcome.attempts, outcome.requests, "{}", outcome.policy);
        assert_eq!(outcome.succeeded, outcome.requests, "{}", outcome.policy);
        assert_eq!(outcome.back_after_seconds, Some(0.0));
    }
}
