//! Where the integrations get the wall-clock time from.
#![expect(clippy::disallowed_methods, reason = "this is the one place")]

use std::time::SystemTime;

/// The time now, for hints that are dates.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
