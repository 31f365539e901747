//! The wall clock.
#![expect(clippy::disallowed_methods, reason = "this is the one place")]

use std::time::SystemTime;

/// Returns the wall-clock time, for hints that are dates.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
