//! Parallel dials while a dial hangs.
//!
//! A network can drop the packets of a dial, and TCP repeats them after 1, 3 and
//! 7 seconds. A short time limit would help, but slow servers could never be reached. So
//! the first dial keeps the whole time limit. In parallel, other dials with a short limit
//! are made, one at a time. The first dial that ends decides, whatever its result. So at
//! most two are under way, and a network that recovers is noticed within half a second
//! (decision D46 in docs/decisions.md).
//!
//! A dial that is connected waits in the server's queue, where a second one only makes the
//! queue longer. Therefore its limit is longer: a server that accepts slowly has time to
//! come to it.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use steadfast::{Backoff, BestEffort, Failure};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::reason::SOCKET_NOT_AVAILABLE;

/// The time after which a dial that is not connected hangs, and the time limit of each
/// other dial until then.
pub(crate) const HANGS: Duration = Duration::from_millis(500);

/// The same for a dial that is connected.
const IS_NOT_SERVED: Duration = Duration::from_secs(3);

/// Returns the strategy of the other dials. Like all retries, they go through the
/// orchestrator.
fn fresh_dials() -> &'static BestEffort {
    static FRESH: LazyLock<BestEffort> =
        LazyLock::new(|| BestEffort::new(Backoff::constant(Duration::from_millis(1))));
    &FRESH
}

/// Connects and does the handshake, and makes other dials in parallel while the first one
/// hangs. Returns the result of the first dial that ends; `None` after the time limit.
///
/// Cancel-safe if dialling is: dropping the future drops all dials.
pub(crate) async fn dial_hedged<S, T, E, C, H>(
    limit: Duration,
    connect: impl Fn() -> C,
    handshake: impl Fn(S) -> H,
) -> Option<Result<T, E>>
where
    C: Future<Output = Result<S, E>>,
    H: Future<Output = Result<T, E>>,
{
    let (connect, handshake) = (&connect, &handshake);
    let with_limits = || async move {
        match timeout(HANGS, connect()).await? {
            Ok(socket) => timeout(IS_NOT_SERVED, handshake(socket)).await,
            Err(error) => Ok(Err(error)),
        }
    };
    let connected = Notify::new();
    let fresh = async {
        if timeout(HANGS, connected.notified()).await.is_ok() {
            tokio::time::sleep(IS_NOT_SERVED).await;
        }
        let dialled = steadfast::retry(fresh_dials())
            .operation("dial")
            .idempotent(true)
            .classify(|_: &tokio::time::error::Elapsed| Failure::not_sent(&SOCKET_NOT_AVAILABLE))
            .run(|_| with_limits())
            .await;
        match dialled {
            Ok(ended) => ended,
            // Best effort ends only at a deadline, and there is none.
            Err(_) => std::future::pending().await,
        }
    };
    let patient = async {
        let socket = connect().await?;
        connected.notify_one();
        handshake(socket).await
    };
    let first = async {
        tokio::select! {
            biased;
            ended = patient => ended,
            ended = fresh => ended,
        }
    };
    timeout(limit, first).await.ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Dials whose results come after these times, and later ones never.
    async fn dial(limit: Duration, times: &[Option<u32>]) -> (Option<usize>, Duration, usize) {
        let (start, dials) = (Instant::now(), Cell::new(0));
        let connect = || {
            let number = dials.get();
            dials.set(number + 1);
            async move {
                match times.get(number).copied().flatten() {
                    Some(millis) => tokio::time::sleep(MS * millis).await,
                    None => std::future::pending().await,
                }
                Ok::<_, ()>(number)
            }
        };
        let dialled = dial_hedged(limit, connect, |number| async move { Ok(number) });
        let dialled = dialled.await.map(Result::unwrap);
        (dialled, start.elapsed(), dials.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_dial_is_the_only_one() {
        let dialled = dial(10_000 * MS, &[Some(499)]).await;
        assert_eq!(dialled, (Some(0), 499 * MS, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_network_is_tried_again_every_half_second_while_dials_hang() {
        let mut times = vec![None; 12];
        times.push(Some(5));
        let (dialled, took, _) = dial(10_000 * MS, &times).await;
        assert_eq!(dialled, Some(12));
        assert!(took <= 12 * (HANGS + 2 * MS) + 5 * MS, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_server_is_reached_by_the_first_dial() {
        let (dialled, took, _) = dial(10_000 * MS, &[Some(9_000)]).await;
        assert_eq!((dialled, took), (Some(0), 9_000 * MS));
    }
}
