//! When documents vanish, as the protocol has it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Up to this many seconds the protocol takes an expiry for a span of time, and
/// beyond for a moment since 1970.
const LONGEST_SPAN: u64 = 30 * 24 * 60 * 60;

/// A span of time from now on. Less than a second would be "never" on the wire,
/// so it is one second; only zero is never.
pub(super) fn after(span: Duration) -> u32 {
    match span.as_secs() {
        0 if span.is_zero() => 0,
        0 => 1,
        seconds if seconds < LONGEST_SPAN => seconds as u32,
        seconds => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let moment = now.unwrap_or_default().as_secs().saturating_add(seconds);
            u32::try_from(moment).unwrap_or(u32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_never_taken_for_never_nor_for_a_moment() {
        assert_eq!(after(Duration::ZERO), 0);
        assert_eq!(after(Duration::from_millis(3)), 1);
        assert_eq!(after(Duration::from_secs(60)), 60);
        let month = after(Duration::from_secs(LONGEST_SPAN));
        assert!(u64::from(month) > LONGEST_SPAN * 100);
        assert_eq!(after(Duration::MAX), u32::MAX);
    }
}
