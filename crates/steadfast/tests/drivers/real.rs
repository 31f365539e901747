//! The one test of each driver that really waits.
#![expect(clippy::disallowed_methods, reason = "here the clock is the machine's")]

use std::thread;
use std::time::Instant;

use steadfast::strategy::Cause;
use steadfast::{Failure, retry};

use crate::{MS, unsent, waiting};

#[tokio::test]
async fn the_async_driver_sleeps_between_attempts_and_cuts_the_last() {
    let start = Instant::now();
    let mut starts = Vec::new();
    let error = retry(&waiting(5 * MS))
        .timeout(30 * MS)
        .classify(Failure::clone)
        .run(|attempt| {
            starts.push((start.elapsed(), attempt.remaining()));
            async move {
                match attempt.number() {
                    1 => Err::<(), _>(unsent()),
                    _ => std::future::pending().await,
                }
            }
        })
        .await
        .expect_err("the second attempt never ends");
    // How late a timer is depends on the machine; that it is not early does not.
    let elapsed = start.elapsed();
    assert!(elapsed >= 30 * MS, "{elapsed:?}");
    assert!(error.is_timeout());
    if let [first, second] = starts[..] {
        assert_eq!(first.1, Some(30 * MS));
        assert!(second.0 >= 5 * MS, "{second:?}");
        assert!(second.1 <= Some(25 * MS), "{second:?}");
    } else {
        // A machine so slow that the wait took all the time.
        assert_eq!(starts.len(), 1);
    }
}

#[test]
fn the_blocking_driver_sleeps_between_attempts_and_makes_none_after_the_deadline() {
    let start = Instant::now();
    let mut starts = Vec::new();
    let error = retry(&waiting(5 * MS))
        .timeout(30 * MS)
        .classify(Failure::clone)
        .run_blocking(|attempt| {
            starts.push((start.elapsed(), attempt.remaining()));
            if attempt.number() > 1 {
                // Outlasts the deadline, which nobody can keep it from.
                thread::sleep(30 * MS);
            }
            Err::<(), _>(unsent())
        })
        .expect_err("it never succeeds");
    let elapsed = start.elapsed();
    assert!(elapsed >= 30 * MS, "{elapsed:?}");
    assert!(error.is_timeout());
    if let [first, second] = starts[..] {
        assert!(first.1 <= Some(30 * MS), "{first:?}");
        assert!(second.0 >= 5 * MS, "{second:?}");
        assert!(second.1 <= Some(25 * MS), "{second:?}");
        assert!(error.was_refused_for(Cause::Deadline));
    } else {
        // A machine so slow that the wait took all the time.
        assert_eq!(starts.len(), 1);
    }
}
