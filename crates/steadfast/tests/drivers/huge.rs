//! Timeouts that no clock can represent count as none, and do not panic.

use std::time::Duration;

use steadfast::{Failure, retry};

use crate::{MS, error_of, failing, unsent, waiting};

#[tokio::test(start_paused = true)]
async fn a_call_with_all_the_time_in_the_world_is_made_and_retried() {
    for longest in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
        let answer = retry(&waiting(MS))
            .idempotent(true)
            .timeout(longest)
            .attempt_timeout(longest)
            .classify(Failure::clone)
            .run(async |attempt: steadfast::Attempt| {
                tokio::task::yield_now().await;
                match attempt.number() {
                    1 => Err(unsent()),
                    _ => Ok(42),
                }
            })
            .await;
        assert_eq!(answer.expect("it succeeds"), 42);
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_delay_is_cut_by_the_shortest_deadline() {
    let call = retry(waiting(Duration::MAX)).timeout(MS);
    let error = error_of(call, failing).await;
    assert!(error.is_timeout());
    assert_eq!(error.report().elapsed(), Some(MS));
}
