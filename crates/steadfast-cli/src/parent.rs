//! The end of the parent process.
//!
//! A test that is killed cannot stop the cluster that it started. The kernel gives an
//! orphan another parent, so a change of the parent's number is the sign to stop.

use std::time::Duration;

/// How often the parent is looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// The process that started this one.
pub(crate) struct Parent {
    /// None if it is not watched.
    #[cfg(unix)]
    id: Option<u32>,
}

impl Parent {
    /// Remembers the parent. Call it first: one that has ended before cannot be noticed.
    #[cfg(unix)]
    pub(crate) fn new(watched: bool) -> Self {
        let id = watched.then(std::os::unix::process::parent_id);
        Self { id }
    }

    /// Returns a parent that never ends: only Unix tells.
    #[cfg(not(unix))]
    pub(crate) fn new(_watched: bool) -> Self {
        Self {}
    }

    /// Resolves when the parent has ended; never if it is not watched.
    ///
    /// Cancel-safe: it only waits.
    pub(crate) async fn ended(&self) {
        while !self.has_ended() {
            tokio::time::sleep(PERIOD).await;
        }
    }

    #[cfg(unix)]
    fn has_ended(&self) -> bool {
        self.id
            .is_some_and(|id| id != std::os::unix::process::parent_id())
    }

    #[cfg(not(unix))]
    fn has_ended(&self) -> bool {
        false
    }
}
