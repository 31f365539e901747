//! The cubic curve by which the rate recovers.

const BETA: f64 = 0.7;
const SCALE: f64 = 0.4;
const SMOOTH: f64 = 0.8;
const MIN_RATE: f64 = 0.5;

/// Measures the rate of attempts and decides what it should be.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    pub(super) last_max_rate: f64,
    pub(super) last_throttle: f64,
    measured: Measured,
}

/// The rate of attempts, smoothed over half-second slots.
#[derive(Clone, Debug)]
struct Measured {
    rate: f64,
    attempts: f64,
    slot: f64,
}

impl Cubic {
    pub(super) fn new(now: f64) -> Self {
        let measured = Measured {
            rate: 0.0,
            attempts: 0.0,
            slot: slot(now),
        };
        Self {
            last_max_rate: 0.0,
            last_throttle: now,
            measured,
        }
    }

    /// The rate to send at after this outcome. `current` is the rate in force,
    /// if one is.
    pub(super) fn update(&mut self, now: f64, throttled: bool, current: Option<f64>) -> f64 {
        self.measured.count(now);
        let wanted = if throttled {
            let rate = current.map_or(self.measured.rate, |rate| rate.min(self.measured.rate));
            self.last_max_rate = rate;
            self.last_throttle = now;
            rate * BETA
        } else {
            self.recovered(now)
        };
        // Never far above what is really sent, or the limit would mean nothing
        // by the time it is needed.
        wanted.min(2.0 * self.measured.rate).max(MIN_RATE)
    }

    /// The rate on the curve. It passes the rate that was last throttled after
    /// a time that depends on how high that was.
    pub(super) fn recovered(&self, now: f64) -> f64 {
        let plateau = (self.last_max_rate * (1.0 - BETA) / SCALE).cbrt();
        let since = (now - self.last_throttle).max(0.0);
        SCALE * (since - plateau).powi(3) + self.last_max_rate
    }

    #[cfg(test)]
    pub(super) fn measured_rate(&self) -> f64 {
        self.measured.rate
    }
}

impl Measured {
    fn count(&mut self, now: f64) {
        self.attempts += 1.0;
        let slot = slot(now);
        // A clock that goes backwards stays in the old slot.
        if slot > self.slot {
            let rate = self.attempts / (slot - self.slot);
            self.rate = rate * SMOOTH + self.rate * (1.0 - SMOOTH);
            self.attempts = 0.0;
            self.slot = slot;
        }
    }
}

fn slot(now: f64) -> f64 {
    (now * 2.0).floor() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-6
    }

    #[test]
    fn the_rate_recovers_along_the_published_curve() {
        let mut cubic = Cubic::new(0.0);
        cubic.last_max_rate = 10.0;
        cubic.last_throttle = 5.0;
        let expected = [
            7.0, 9.648936, 10.000031, 10.453285, 13.408697, 21.266268, 36.425999,
        ];
        for (t, expected) in (5..=11).zip(expected) {
            let rate = cubic.recovered(f64::from(t));
            assert!(near(rate, expected), "t = {t}: {rate}, not {expected}");
        }
    }

    /// A run of successes and throttling responses, with the smoothed rate and
    /// the new rate after each: the arithmetic worked through by hand from the
    /// constants, slot by slot.
    #[test]
    fn successes_and_throttling_move_the_rate_as_worked_out() {
        let mut cubic = Cubic::new(0.0);
        cubic.last_throttle = 0.0;
        let mut current = None;
        for (t, throttled, measured, rate) in [
            (0.2, false, 0.0, 0.5),
            (0.4, false, 0.0, 0.5),
            (0.6, false, 4.8, 0.5),
            (0.8, false, 4.8, 0.5),
            (1.0, false, 4.16, 0.5),
            (1.2, false, 4.16, 0.691_2),
            (1.4, false, 4.16, 1.097_6),
            (1.6, false, 5.632, 1.638_4),
            (1.8, false, 5.632, 2.332_8),
            (2.0, true, 4.326_4, 3.028_48),
            (2.2, false, 4.326_4, 3.486_639),
            (2.4, false, 4.326_4, 3.821_874),
            (2.6, false, 5.665_28, 4.053_386),
            (2.8, false, 5.665_28, 4.200_373),
            (3.0, false, 4.333_056, 4.282_037),
            (3.2, true, 4.333_056, 2.997_426),
            (3.4, false, 4.333_056, 3.452_226),
        ] {
            let new = cubic.update(t, throttled, current);
            if throttled || current.is_some() {
                current = Some(new);
            }
            assert!(
                near(cubic.measured_rate(), measured),
                "t = {t}: {}",
                cubic.measured_rate()
            );
            assert!(near(new, rate), "t = {t}: {new}, not {rate}");
        }
    }
}
