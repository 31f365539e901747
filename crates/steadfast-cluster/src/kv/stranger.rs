//! Connections whose clients have not authenticated, of KV and of HTTP.
//!
//! Idle connections cost a descriptor each. Without a limit, whoever opens enough of them locks
//! everybody out, without a password. At the limit the oldest one is closed: a client that wants
//! to log in does so within moments, so those that wait longest are idle.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The most connections whose clients have not authenticated: half of the descriptors that a
/// process usually may have.
const MAX_STRANGERS: usize = 500;

/// How long a client may take to authenticate.
const LOGIN_TIME: Duration = Duration::from_secs(30);

/// The connections without a user, by number; the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<BTreeMap<u64, CancellationToken>>);

/// A connection whose client has not authenticated. Dropping it makes room for another.
pub(crate) struct Stranger {
    all: Arc<Strangers>,
    connection: u64,
    displaced: CancellationToken,
}

impl Stranger {
    /// Adds a new connection, and displaces the oldest one if there are too many.
    pub(crate) fn enter(all: &Arc<Strangers>, connection: u64) -> Self {
        let displaced = CancellationToken::new();
        let mut inside = all.0.lock();
        inside.insert(connection, displaced.clone());
        if inside.len() > MAX_STRANGERS
            && let Some((_, oldest)) = inside.pop_first()
        {
            oldest.cancel();
        }
        drop(inside);
        Self {
            all: all.clone(),
            connection,
            displaced,
        }
    }

    /// Resolves when the connection must make room for another.
    ///
    /// Cancel-safe.
    pub(crate) async fn displaced(this: Option<&Self>) {
        match this {
            Some(stranger) => stranger.displaced.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.connection);
    }
}

/// The limits of a KV client that has not authenticated.
pub(super) struct Login {
    /// Counts the client among the strangers.
    _stranger: Stranger,
    displaced: Pin<Box<WaitForCancellationFutureOwned>>,
    timeout: Pin<Box<Sleep>>,
}

impl Login {
    pub(super) fn new(stranger: Stranger) -> Self {
        Self {
            displaced: Box::pin(stranger.displaced.clone().cancelled_owned()),
            timeout: Box::pin(tokio::time::sleep(LOGIN_TIME)),
            _stranger: stranger,
        }
    }

    /// Resolves to the reason when the connection must close. A client is only timed out while it
    /// is slow.
    pub(super) fn poll_over(&mut self, is_slow: bool, cx: &mut Context<'_>) -> Poll<&'static str> {
        if self.displaced.as_mut().poll(cx).is_ready() {
            Poll::Ready("too many clients without a login")
        } else if is_slow && self.timeout.as_mut().poll(cx).is_ready() {
            Poll::Ready("the client did not log in")
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_the_oldest_connection_makes_room() {
        let all: Arc<Strangers> = Arc::default();
        let limit = MAX_STRANGERS as u64;
        let mut inside: Vec<Stranger> = (0..limit).map(|at| Stranger::enter(&all, at)).collect();
        let displaced = |inside: &[Stranger]| -> Vec<u64> {
            let displaced = inside.iter().filter(|one| one.displaced.is_cancelled());
            displaced.map(|one| one.connection).collect()
        };
        assert!(displaced(&inside).is_empty());
        inside.push(Stranger::enter(&all, limit));
        assert_eq!(displaced(&inside), [0]);
        // One that logs in or leaves makes room without harm to others.
        inside.remove(5);
        inside.push(Stranger::enter(&all, limit + 1));
        assert_eq!(displaced(&inside), [0]);
        inside.push(Stranger::enter(&all, limit + 2));
        assert_eq!(displaced(&inside), [0, 1]);
        drop(inside);
        assert!(all.0.lock().is_empty());
    }
}
