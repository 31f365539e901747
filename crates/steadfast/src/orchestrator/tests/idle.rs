//! Tests of retries without a delay after attempts that did no I/O.

use super::*;
use crate::backoff::Backoff;

fn at_once() -> BestEffort {
    BestEffort::new(Backoff::none())
}

fn unsent() -> Failure {
    Failure::not_sent(&NOT_AVAILABLE)
}

/// The waits, in milliseconds, of a request whose attempts all end so. `None` for an
/// attempt that is made at once.
fn pauses(
    strategy: impl RetryStrategy,
    failures: impl IntoIterator<Item = (Failure, bool)>,
) -> Vec<Option<u128>> {
    let world = VirtualWorld::new();
    let mut request = begun(strategy, get(), &world);
    let mut pauses = Vec::new();
    for (failure, idle) in failures {
        if idle {
            request.handle_idle_attempt();
        }
        pauses.push(match request.handle_failure(failure, &world) {
            Step::Attempt => None,
            Step::Wait { delay, .. } => {
                world.advance(delay);
                attempts(request.handle_waited(&world));
                Some(delay.as_millis())
            }
            other => panic!("{other:?}"),
        });
    }
    pauses
}

#[test]
fn attempts_that_send_nothing_yield_and_then_wait_longer_and_longer() {
    let expected = [0, 0, 1, 2, 4, 8, 16, 32, 64, 64].map(Some);
    let unsent = || std::iter::repeat_n((unsent(), false), 11);
    let seen = pauses(at_once(), unsent());
    assert_eq!(seen[0], None);
    assert_eq!(seen[1..], expected);
    let short = BestEffort::new(Backoff::constant(Duration::from_nanos(1)));
    assert_eq!(
        pauses(short, unsent())[1..],
        expected,
        "as good as no delay"
    );
    let standard = Standard::builder()
        .max_attempts(100)
        .backoff(Backoff::none());
    assert_eq!(pauses(standard.build().unwrap(), unsent())[1..], expected);
}

#[test]
fn attempts_that_end_without_waiting_for_anything_are_paced_alike() {
    let seen = pauses(at_once(), std::iter::repeat_n((locked(), true), 5));
    assert_eq!(seen, [None, Some(0), Some(0), Some(1), Some(2)]);
}

#[test]
fn attempts_that_did_io_are_repeated_at_once_and_start_the_count_anew() {
    let seen = pauses(at_once(), std::iter::repeat_n((locked(), false), 50));
    assert_eq!(seen, [None; 50]);
    let mixed = (0..12).map(|n| match n % 4 {
        3 => (locked(), false),
        _ => (unsent(), false),
    });
    let thrice = [None, Some(0), Some(0), None].repeat(3);
    assert_eq!(pauses(at_once(), mixed), thrice);
}

#[test]
fn a_strategy_that_waits_is_left_alone() {
    let patient = BestEffort::new(Backoff::constant(3 * MS));
    let seen = pauses(patient, std::iter::repeat_n((unsent(), true), 20));
    assert_eq!(seen, [Some(3); 20]);
}

#[test]
fn law_2_an_unsent_attempt_that_is_always_retried_at_once_is_paced_too() {
    let moved = || Failure::not_sent(&NOT_MY_PARTITION).with_prescribed_delay(Duration::ZERO);
    let seen = pauses(at_once(), std::iter::repeat_n((moved(), false), 5));
    assert_eq!(seen, [None, Some(0), Some(0), Some(1), Some(2)]);
}

#[test]
fn a_pause_ends_at_the_deadline_and_can_be_woken() {
    let world = VirtualWorld::new();
    let mut request = begun(at_once(), get().timeout(2 * MS), &world);
    for _ in 0..3 {
        assert!(fails(&mut request, unsent(), &world));
    }
    assert_eq!(waits(request.handle_failure(unsent(), &world)), MS);
    attempts(request.handle_woken(&world));
    assert_eq!(waits(request.handle_failure(unsent(), &world)), 2 * MS);
    world.advance(2 * MS);
    assert!(gives_up(request.handle_waited(&world)).is_timeout());
    let report = request.take_report();
    assert_eq!((report.attempts(), report.retries()), (5, 4));
}
