//! Wall-clock time.

use std::time::SystemTime;

use crate::platform::current;

/// Returns the wall-clock time.
pub fn wall_clock() -> SystemTime {
    current().map_or_else(SystemTime::now, |platform| platform.wall_clock())
}
