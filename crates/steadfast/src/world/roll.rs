//! A fraction between zero and one, represented exactly.

use std::time::Duration;

/// A uniformly distributed fraction in `[0, 1)`, with which delays are jittered.
///
/// It is a count of 2⁻⁵³ parts, so that scaling a duration by it is integer
/// arithmetic: exact, without rounding surprises, for any duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Roll(u64);

const PARTS: u32 = 53;

impl Roll {
    /// The smallest roll.
    pub const ZERO: Roll = Roll(0);

    /// Exactly one, which is never rolled. Tests and plans use it for the longest delays.
    pub const ONE: Roll = Roll(1 << PARTS);

    /// Makes a roll of 64 random bits.
    pub const fn from_bits(bits: u64) -> Self {
        Roll(bits >> (64 - PARTS))
    }

    /// Returns this fraction of a duration, rounded down to whole nanoseconds.
    pub fn of(self, whole: Duration) -> Duration {
        // Durations beyond 584 years are not told apart: u64 nanoseconds times
        // 2^53 still fits into 128 bits, and no caller waits that long.
        Duration::from_nanos(self.of_nanos(nanos(whole)))
    }

    pub(crate) const fn of_nanos(self, nanos: u64) -> u64 {
        ((nanos as u128 * self.0 as u128) >> PARTS) as u64
    }
}

/// A duration as nanoseconds, the longest ones cut at 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_roll_is_the_whole_and_random_bits_stay_below_it() {
        let day = Duration::from_secs(86_400);
        assert_eq!(Roll::ONE.of(day), day);
        assert_eq!(Roll::ZERO.of(day), Duration::ZERO);
        assert!(Roll::from_bits(u64::MAX) < Roll::ONE);
        assert_eq!(Roll::from_bits(1 << 63).of(day), day / 2);
    }

    #[test]
    fn the_longest_duration_does_not_overflow() {
        assert_eq!(Roll::ONE.of(Duration::MAX), Duration::from_nanos(u64::MAX));
    }
}
