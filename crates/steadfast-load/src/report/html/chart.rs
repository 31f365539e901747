//! Charts over the time of a run, as SVG.

use std::fmt::Write;

use super::super::text::grouped;
use super::escaped;
use crate::faults::InjectedFault;
use crate::measure::Sample;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 190.0;
/// The room for the numbers at the left, above and below.
const LEFT: f64 = 64.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 20.0;

/// The frame of all charts of a run: the time axis and the injected faults.
pub(super) struct Chart<'a> {
    samples: &'a [Sample],
    faults: &'a [InjectedFault],
    seconds: f64,
}

impl<'a> Chart<'a> {
    pub(super) fn new(samples: &'a [Sample], faults: &'a [InjectedFault]) -> Self {
        let seconds = samples.last().map_or(1.0, |last| last.at_s).max(0.001);
        Self {
            samples,
            faults,
            seconds,
        }
    }

    /// Draws one curve.
    pub(super) fn line(&self, unit: &str, values: Vec<f64>, colour: &str) -> String {
        let top = round_up(values.iter().copied().fold(0.0, f64::max));
        let points = self.points(&values, top).concat();
        let curve = format!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>\n"
        );
        self.frame(unit, top, &curve)
    }

    /// Draws areas on top of each other.
    pub(super) fn stack(&self, unit: &str, layers: Vec<(Vec<f64>, String)>) -> String {
        let total = |at: usize| layers.iter().map(|(values, _)| values[at]).sum::<f64>();
        let top = round_up((0..self.samples.len()).map(total).fold(0.0, f64::max));
        let mut base = vec![0.0; self.samples.len()];
        let mut areas = String::new();
        for (values, colour) in &layers {
            let low = self.points(&base, top);
            for (base, value) in base.iter_mut().zip(values) {
                *base += value;
            }
            let high = self.points(&base, top);
            let points: String = low.into_iter().chain(high.into_iter().rev()).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(areas, "<polygon points=\"{points}\" fill=\"{colour}\"/>");
        }
        self.frame(unit, top, &areas)
    }

    fn points(&self, values: &[f64], top: f64) -> Vec<String> {
        let point = |(sample, value): (&Sample, &f64)| {
            format!("{:.1},{:.1} ", self.x(sample.at_s), y(*value, top))
        };
        self.samples.iter().zip(values).map(point).collect()
    }

    fn frame(&self, unit: &str, top: f64, inside: &str) -> String {
        let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n");
        for (at, injected) in (1..).zip(self.faults) {
            let from = self.x(injected.from_s);
            let width = (self.x(injected.until_s.unwrap_or(self.seconds)) - from).max(1.0);
            let _ = writeln!(
                svg,
                "<rect class=\"band\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>\
                 <line class=\"mark\" x1=\"{from:.1}\" x2=\"{from:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\
                 <text x=\"{:.1}\" y=\"12\">{at}</text>",
                (width - 2.0).max(1.0),
                HEIGHT - TOP - BOTTOM,
                escaped(&injected.fault),
                HEIGHT - BOTTOM,
                from + 2.0,
            );
        }
        for step in 0..=2 {
            let value = top * f64::from(step) / 2.0;
            let at = y(value, top);
            let number = if top >= 10.0 {
                grouped(value.round() as u64)
            } else {
                format!("{value:.1}")
            };
            let label = if step == 2 { unit } else { "" };
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>\
                 <text x=\"0\" y=\"12\">{label}</text>",
                LEFT - 6.0,
                at + 4.0,
            );
        }
        for step in 0..=6 {
            let seconds = self.seconds * f64::from(step) / 6.0;
            let anchor = if step == 6 { "end" } else { "middle" };
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                self.x(seconds),
                HEIGHT - 4.0,
                if self.seconds < 600.0 {
                    format!("{seconds:.0} s")
                } else {
                    format!("{:.0} min", seconds / 60.0)
                },
            );
        }
        svg + inside + "</svg>\n"
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + (WIDTH - LEFT) * (seconds / self.seconds).clamp(0.0, 1.0)
    }
}

fn y(value: f64, top: f64) -> f64 {
    let room = HEIGHT - TOP - BOTTOM;
    HEIGHT - BOTTOM - room * (value / top).clamp(0.0, 1.0)
}

/// Rounds up to a number for the end of an axis.
fn round_up(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(most.log10().floor());
    [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * unit)
        .find(|top| *top >= most)
        .unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_a_round_number_above_all_values() {
        assert_eq!(round_up(0.0), 1.0);
        assert_eq!(round_up(1234.0), 1500.0);
        assert_eq!(round_up(88_000.0), 100_000.0);
        for most in [0.03, 1.0, 9.9, 101.0] {
            assert!(round_up(most) >= most);
        }
    }
}
