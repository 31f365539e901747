//! Tracks whether the command may have changed something, for the end of the command.
//!
//! A command can end without knowing its result: its output is lost, or a signal stops it.
//! Then the exit status and the message depend on whether a change was requested.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Notes that a change is about to be requested.
pub(crate) fn begin() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Notes that the response proves that nothing was changed.
pub(crate) fn nothing_changed() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Decides whether something may have been changed.
pub(crate) fn may_have_changed() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
