//! Durations in two bytes.

use std::time::Duration;

/// The time that the server took: exact to the microsecond where that matters and coarse
/// where it does not. The number `n` stands for `n^1.74 / 2` microseconds, so two bytes reach two
/// minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerDuration(u16);

const EXPONENT: f64 = 1.74;

impl ServerDuration {
    /// From the number on the wire.
    pub const fn from_code(code: u16) -> Self {
        Self(code)
    }

    /// The number on the wire.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Returns the closest value to `duration`.
    pub fn nearest(duration: Duration) -> Self {
        let micros = duration.as_secs_f64() * 1e6;
        // A float is cut to the target's range when it is converted.
        Self((micros * 2.0).powf(EXPONENT.recip()).round() as u16)
    }

    /// The time span.
    pub fn duration(self) -> Duration {
        let micros = f64::from(self.0).powf(EXPONENT) / 2.0;
        // The greatest is about 1.2e8 microseconds; the conversion cuts to whole nanoseconds.
        Duration::from_nanos((micros * 1e3) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_round_trips() {
        for code in 0..=u16::MAX {
            let duration = ServerDuration::from_code(code);
            assert_eq!(ServerDuration::nearest(duration.duration()), duration);
        }
    }

    #[test]
    fn the_formula_holds_at_known_points() {
        let micros = |code| ServerDuration::from_code(code).duration().as_nanos() as f64 / 1e3;
        assert_eq!(micros(0), 0.0);
        assert_eq!(micros(1), 0.5);
        // 100^1.74 = 10^3.48, a little over 3019.95.
        assert!((micros(100) - 1509.976).abs() < 0.01, "{}", micros(100));
        // 65535^1.74 / 2: two minutes.
        assert!(
            (micros(u16::MAX) / 1e6 - 120.125).abs() < 0.001,
            "{}",
            micros(u16::MAX)
        );
    }

    #[test]
    fn longer_than_can_be_said_is_the_longest() {
        assert_eq!(ServerDuration::nearest(Duration::MAX).code(), u16::MAX);
        assert_eq!(
            ServerDuration::nearest(Duration::from_secs(121)).code(),
            u16::MAX
        );
    }
}
