//! Expiries on the wire.
//!
//! A client sends 32 bits. Up to thirty days they are seconds from now. A larger number
//! is a Unix time, possibly in the past, which deletes the document at once. Zero means
//! never. The store keeps absolute times only.

use crate::clock::Now;

/// The largest expiry that is read as relative: thirty days.
pub(crate) const RELATIVE_LIMIT: u32 = 30 * 24 * 60 * 60;

/// Turns an expiry from the wire into an absolute Unix time in seconds; zero is never.
pub(crate) fn absolute(expiry: u32, now: Now) -> u32 {
    match expiry {
        0 => 0,
        relative if relative <= RELATIVE_LIMIT => {
            u32::try_from(now.seconds().saturating_add(u64::from(relative))).unwrap_or(u32::MAX)
        }
        absolute => absolute,
    }
}

/// Returns whether a document with this absolute expiry is gone.
pub(crate) fn has_passed(expiry: u32, now: Now) -> bool {
    expiry != 0 && u64::from(expiry) <= now.seconds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Now = Now::since_epoch(Duration::from_secs(1_700_000_000));

    #[test]
    fn thirty_days_is_relative_and_one_second_more_is_a_date_in_1970() {
        assert_eq!(absolute(0, NOW), 0);
        assert_eq!(absolute(10, NOW), 1_700_000_010);
        assert_eq!(
            absolute(RELATIVE_LIMIT, NOW),
            1_700_000_000 + RELATIVE_LIMIT
        );
        assert_eq!(absolute(RELATIVE_LIMIT + 1, NOW), RELATIVE_LIMIT + 1);
        assert!(has_passed(absolute(RELATIVE_LIMIT + 1, NOW), NOW));
    }

    #[test]
    fn a_document_expires_in_the_second_of_its_expiry() {
        assert!(!has_passed(0, NOW));
        assert!(!has_passed(1_700_000_001, NOW));
        assert!(has_passed(1_700_000_000, NOW));
    }
}
