//! The number of clients that have not authenticated.
//!
//! Idle connections cost a descriptor each. Without a limit, whoever opens enough of them locks
//! everybody out, without a password.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most connections whose clients have not authenticated.
const MAX_STRANGERS: usize = 1000;

/// A connection whose client has not authenticated.
pub(super) struct Stranger(Arc<AtomicUsize>);

impl Stranger {
    /// Counts a new connection, or refuses it.
    pub(super) fn enter(count: &Arc<AtomicUsize>) -> Option<Self> {
        let entered = Self(count.clone());
        // Dropping it takes it back.
        (count.fetch_add(1, Ordering::Relaxed) < MAX_STRANGERS).then_some(entered)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_beyond_the_limit_is_refused_until_another_leaves() {
        let count = Arc::default();
        let mut inside: Vec<Stranger> = std::iter::from_fn(|| Stranger::enter(&count)).collect();
        assert_eq!(inside.len(), MAX_STRANGERS);
        assert!(Stranger::enter(&count).is_none());
        inside.pop();
        assert!(Stranger::enter(&count).is_some());
    }
}
