//! Axes of charts: ticks at round values, each with its exact label.

use super::super::text::grouped;

/// The scale of a vertical axis.
pub(super) enum Axis {
    /// From zero to the last tick.
    Linear(Vec<f64>),
    /// Milliseconds, from one power of ten to another one.
    Log { low: i32, high: i32 },
}

impl Axis {
    /// Makes an axis from zero to at least `most`.
    pub(super) fn linear(most: f64) -> Self {
        let most = if most.is_finite() { most } else { 0.0 };
        let step = round_step(most.max(f64::MIN_POSITIVE) / 4.0);
        match most > 0.0 {
            true => Self::Linear(ticks(step, (most / step).ceil() as u32)),
            false => Self::Linear(vec![0.0, 1.0]),
        }
    }

    /// Makes an axis of milliseconds that contains all values.
    pub(super) fn log(values: impl Iterator<Item = f64>) -> Self {
        let exponents = values.filter(|ms| *ms > 0.0).map(f64::log10);
        let (low, high) = exponents.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
            (low.min(it), high.max(it))
        });
        if low > high {
            return Self::Log { low: 0, high: 1 };
        }
        let low = low.floor() as i32;
        let high = (high.ceil() as i32).max(low + 1);
        Self::Log { low, high }
    }

    /// Returns how far up a value is, from 0 to 1.
    pub(super) fn height(&self, value: f64) -> f64 {
        match self {
            Self::Linear(ticks) => {
                let top = ticks.last().copied().unwrap_or(1.0);
                (value / top).clamp(0.0, 1.0)
            }
            Self::Log { low, high } => {
                let low = f64::from(*low);
                ((value.log10() - low) / (f64::from(*high) - low)).clamp(0.0, 1.0)
            }
        }
    }

    /// Returns the ticks with their labels, from below.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(ticks) => ticks.iter().map(|tick| (*tick, exact(*tick))).collect(),
            Self::Log { low, high } => (*low..=*high)
                .map(|exponent| (10f64.powi(exponent), power_of_ten(exponent)))
                .collect(),
        }
    }
}

/// Returns the ticks of a time axis with their labels: seconds, or minutes for a long run.
pub(super) fn time_ticks(seconds: f64) -> Vec<(f64, String)> {
    let (unit, name) = match seconds {
        long if long >= 7200.0 => (3600.0, "h"),
        long if long >= 120.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    let length = seconds / unit;
    let step = round_step(length / 6.0);
    ticks(step, (length / step) as u32)
        .into_iter()
        .map(|tick| (tick * unit, format!("{} {name}", exact(tick))))
        .collect()
}

fn ticks(step: f64, count: u32) -> Vec<f64> {
    (0..=count).map(|at| step * f64::from(at)).collect()
}

/// Rounds a distance of ticks up to 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let unit = 10f64.powf(step.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let rounded = steps.into_iter().map(|factor| factor * unit);
    rounded
        .into_iter()
        .find(|it| *it >= step * 0.999_999)
        .unwrap_or(step)
}

/// Formats a tick without rounding it away: its step has one digit.
fn exact(value: f64) -> String {
    if value >= 10.0 && value.fract().abs() < 1e-6 {
        return grouped(value.round() as u64);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn power_of_ten(exponent: i32) -> String {
    let millis = 10f64.powi(exponent);
    match exponent {
        3.. => format!("{} s", exact(millis / 1e3)),
        -3..0 => format!("{} µs", exact(millis * 1e3)),
        _ => format!("{} ms", exact(millis)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_label_is_the_value_of_its_tick() {
        assert_eq!(
            labels(time_ticks(30.0)),
            ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]
        );
        assert_eq!(labels(time_ticks(15.3)), ["0 s", "5 s", "10 s", "15 s"]);
        assert_eq!(
            labels(time_ticks(2.6)),
            ["0 s", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s"]
        );
        assert_eq!(
            labels(time_ticks(3600.0)),
            [
                "0 min", "10 min", "20 min", "30 min", "40 min", "50 min", "60 min"
            ]
        );
        assert_eq!(
            labels(time_ticks(14_400.0)),
            ["0 h", "1 h", "2 h", "3 h", "4 h"]
        );
        for seconds in [0.3, 2.5, 7.0, 31.7, 119.0, 121.0, 599.0, 7300.0, 90_000.0] {
            let ticks = time_ticks(seconds);
            assert!((2..=8).contains(&ticks.len()), "{seconds}: {ticks:?}");
            for (at, label) in ticks {
                let (number, unit) = label.rsplit_once(' ').unwrap();
                let unit = match unit {
                    "s" => 1.0,
                    "min" => 60.0,
                    _ => 3600.0,
                };
                let shown = number.replace(' ', "").parse::<f64>().unwrap() * unit;
                assert!(
                    (shown - at).abs() < 1e-6 && at <= seconds,
                    "{seconds}: {label} at {at}"
                );
            }
        }
    }

    #[test]
    fn a_linear_axis_ends_above_all_values() {
        assert_eq!(
            labels(Axis::linear(88_000.0).ticks()),
            ["0", "50 000", "100 000"]
        );
        assert_eq!(labels(Axis::linear(0.0).ticks()), ["0", "1"]);
        assert_eq!(
            labels(Axis::linear(0.03).ticks()),
            ["0", "0.01", "0.02", "0.03"]
        );
        for most in [0.03, 1.0, 9.9, 101.0, 12_345.0] {
            let ticks = Axis::linear(most).ticks();
            assert!(
                ticks.last().unwrap().0 >= most * 0.999_999,
                "{most}: {ticks:?}"
            );
            assert!(ticks.len() <= 6, "{most}: {ticks:?}");
        }
    }

    #[test]
    fn a_log_axis_has_whole_decades_around_all_values() {
        let axis = Axis::log([0.2, 3.0, 1500.0].into_iter());
        assert_eq!(
            labels(axis.ticks()),
            ["100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]
        );
        assert!((axis.height(1.0) - 0.2).abs() < 1e-9);
        assert_eq!((axis.height(0.001), axis.height(1e6)), (0.0, 1.0));
        assert_eq!(Axis::log(std::iter::empty()).ticks().len(), 2);
        assert_eq!(Axis::log([10.0].into_iter()).ticks().len(), 2);
    }
}
