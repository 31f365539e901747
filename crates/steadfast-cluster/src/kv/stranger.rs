//! Connections whose clients have not authenticated, of KV and of HTTP.
//!
//! Idle connections cost a descriptor each. Without a limit, whoever opens enough of them locks
//! everybody out, without a password. At the limit the oldest one is closed: a client that wants
//! to log in does so within moments, so those that wait longest are idle.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The most connections whose clients have not authenticated: half of the descriptors that a
/// process usually may have.
const MAX_STRANGERS: usize = 500;

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

    /// Resolves when the connection must make room for another. Borrows nothing.
    pub(super) fn displaced_owned(&self) -> WaitForCancellationFutureOwned {
        self.displaced.clone().cancelled_owned()
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
