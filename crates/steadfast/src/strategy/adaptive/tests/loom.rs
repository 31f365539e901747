//! Every interleaving of requests at the limiter, tried out by loom.

use std::time::{Duration, Instant};

use loom::sync::Arc;
use loom::thread;

use crate::strategy::adaptive::WhenLimited;
use crate::strategy::adaptive::limiter::{Limiter, Permit};
use crate::world::any_instant;

/// What one attempt takes at the lowest rate, at which a limiter stands that
/// was throttled before anything was measured.
const ONE: Duration = Duration::from_secs(2);

#[test]
fn no_two_attempts_are_given_the_same_turn() {
    loom::model(|| {
        let (limiter, now) = throttled();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                thread::spawn(move || wait(&limiter, now))
            })
            .collect();
        let mut waits: Vec<Duration> = threads.into_iter().map(joined).collect();
        waits.sort_unstable();
        assert_eq!(waits, [ONE, 2 * ONE, 3 * ONE]);
    });
}

#[test]
fn permits_that_come_back_at_once_all_come_back() {
    loom::model(|| {
        let (limiter, now) = throttled();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                thread::spawn(move || {
                    wait(&limiter, now);
                    limiter.release();
                })
            })
            .collect();
        let held = wait(&limiter, now);
        assert!(held >= ONE && held <= 3 * ONE, "{held:?}");
        threads.into_iter().for_each(joined);
        // One permit is held, by this thread; so the next turn is the second.
        assert_eq!(wait(&limiter, now), 2 * ONE);
    });
}

#[test]
fn the_first_throttling_answer_wakes_the_limiter_once_whoever_brings_it() {
    loom::model(|| {
        let (limiter, now) = (Arc::new(Limiter::new()), any_instant());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                thread::spawn(move || limiter.update(now, true))
            })
            .collect();
        let early = limiter.acquire(now, WhenLimited::Wait, None);
        threads.into_iter().for_each(joined);
        let taken = match early {
            Permit::NotNeeded => Duration::ZERO,
            Permit::Granted { wait } => wait,
            Permit::TooLate { .. } | Permit::Refused { .. } => {
                panic!("those who wait are not refused")
            }
        };
        assert!(taken.is_zero() || taken == ONE, "{taken:?}");
        assert_eq!(wait(&limiter, now), taken + ONE);
    });
}

fn throttled() -> (Arc<Limiter>, Instant) {
    let (limiter, now) = (Limiter::new(), any_instant());
    limiter.update(now, true);
    (Arc::new(limiter), now)
}

fn wait(limiter: &Limiter, now: Instant) -> Duration {
    match limiter.acquire(now, WhenLimited::Wait, None) {
        Permit::Granted { wait } => wait,
        Permit::NotNeeded | Permit::TooLate { .. } | Permit::Refused { .. } => {
            panic!("it is limited, and waits")
        }
    }
}

fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    thread.join().expect("no thread panics")
}
