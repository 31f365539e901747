//! Counts the bytes of responses that slow readers have not taken.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cluster::shared::Shared;

/// How many bytes of answers may wait for a slow reader before its requests are not read.
pub(super) const MAX_UNSENT: usize = 4 * 1024 * 1024;
/// How many bytes of answers all connections together may have waiting. Beyond it, each keeps
/// what fits [`MIN_UNSENT`].
pub(super) const MAX_UNSENT_TOGETHER: usize = 256 * 1024 * 1024;
pub(super) const MIN_UNSENT: usize = 64 * 1024;

/// The unsent bytes of a connection, as a part of the sum over all connections.
pub(super) struct Unsent {
    bytes: usize,
    shared: Arc<Shared>,
}

impl Unsent {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let shared = shared.clone();
        Self { bytes: 0, shared }
    }

    /// Returns whether a connection with so many unsent bytes may have more.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes < MIN_UNSENT
            || (bytes < MAX_UNSENT
                && self.shared.unsent.load(Ordering::Relaxed) < MAX_UNSENT_TOGETHER)
    }

    /// Brings the sum up to date.
    pub(super) fn update(&mut self, bytes: usize) {
        if self.bytes != bytes {
            self.shared.unsent.fetch_add(bytes, Ordering::Relaxed);
            self.shared.unsent.fetch_sub(self.bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.update(0);
    }
}
