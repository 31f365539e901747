//! Charts over the time of a run.
//!
//! The curves are SVG that is stretched to the width of the page. Labels are HTML next to it,
//! so that they keep their size on a narrow screen.

use std::fmt::Write;

use super::axis::{Axis, time_ticks};
use super::escaped;
use super::lanes::lanes;
use crate::faults::InjectedFault;
use crate::measure::Sample;

/// The width and height of a plot, in its own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// The frame of all charts of a run: the time axis, the injected faults, the read-back.
pub(super) struct Chart<'a> {
    samples: &'a [Sample],
    faults: &'a [InjectedFault],
    seconds: f64,
    read_back_from: Option<f64>,
}

/// Values over time, one for each sample; none where nothing was measured.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<Option<f64>>,
}

/// Title and unit of a chart.
#[derive(Clone, Copy)]
pub(super) struct Caption {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
}

impl<'a> Chart<'a> {
    pub(super) fn new(
        samples: &'a [Sample],
        faults: &'a [InjectedFault],
        read_back_from: Option<f64>,
    ) -> Self {
        let seconds = samples.last().map_or(1.0, |last| last.at_s).max(0.001);
        Self {
            samples,
            faults,
            seconds,
            read_back_from: read_back_from.filter(|from| *from < seconds),
        }
    }

    /// Draws the injected faults as bars with their names.
    pub(super) fn lanes(&self) -> String {
        lanes(self.faults, |at| {
            100.0 * self.x(at.unwrap_or(self.seconds)) / WIDTH
        })
    }

    /// Draws a curve for each series. Where a value is missing, the curve has a gap.
    pub(super) fn lines(&self, caption: Caption, axis: &Axis, series: &[Series]) -> String {
        let mut curves = String::new();
        for (at, series) in series.iter().enumerate() {
            let mut path = String::new();
            let mut open = false;
            for (sample, value) in self.samples.iter().zip(&series.values) {
                let Some(value) = value else {
                    open = false;
                    continue;
                };
                let (x, y) = (self.x(middle(sample)), y(axis, *value));
                // A line of length zero shows a value between two gaps as a dot.
                let _ = match open {
                    true => write!(path, "L{x:.1} {y:.2}"),
                    false => write!(path, "M{x:.1} {y:.2}l0 0"),
                };
                open = true;
            }
            let _ = writeln!(curves, "<path class=\"curve c{}\" d=\"{path}\"/>", at % 8);
        }
        self.figure(caption, axis, &curves, series)
    }

    /// Draws areas on top of each other.
    pub(super) fn stack(&self, caption: Caption, series: &[Series]) -> String {
        let value = |series: &Series, at: usize| series.values[at].unwrap_or(0.0);
        let total = |at: usize| series.iter().map(|one| value(one, at)).sum::<f64>();
        let axis = Axis::linear((0..self.samples.len()).map(total).fold(0.0, f64::max));
        let mut base = vec![0.0; self.samples.len()];
        let mut areas = String::new();
        for (colour, one) in series.iter().enumerate() {
            let low = self.points(&axis, &base);
            for (at, base) in base.iter_mut().enumerate() {
                *base += value(one, at);
            }
            let high = self.points(&axis, &base);
            let points: String = low.into_iter().chain(high.into_iter().rev()).collect();
            let _ = writeln!(
                areas,
                "<polygon class=\"c{}\" points=\"{points}\"/>",
                colour % 8
            );
        }
        self.figure(caption, &axis, &areas, series)
    }

    /// Returns where a sample is, in per cent of the width.
    pub(super) fn position(&self, sample: &Sample) -> f64 {
        100.0 * self.x(middle(sample)) / WIDTH
    }

    fn points(&self, axis: &Axis, values: &[f64]) -> Vec<String> {
        let samples = self.samples.iter().zip(values);
        samples
            .map(|(sample, value)| format!("{:.1},{:.2} ", self.x(middle(sample)), y(axis, *value)))
            .collect()
    }

    fn figure(&self, caption: Caption, axis: &Axis, curves: &str, series: &[Series]) -> String {
        let Caption { title, unit } = caption;
        let summary = escaped(&self.summary(caption, series));
        let mut figure = format!(
            "<figure>\n<figcaption>{title} <small>{unit}</small></figcaption>\n<div class=\"plot\">\n\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{summary}\">\n"
        );
        let mut labels = String::new();
        if let Some(from) = self.read_back_from {
            let x = self.x(from);
            let _ = writeln!(
                figure,
                "<rect class=\"read-back\" x=\"{x:.1}\" y=\"0\" width=\"{:.1}\" height=\"{HEIGHT}\"/>",
                WIDTH - x
            );
        }
        for at in self
            .faults
            .iter()
            .flat_map(|fault| [Some(fault.from_s), fault.until_s])
        {
            let x = at.map_or(WIDTH, |at| self.x(at));
            let _ = writeln!(
                figure,
                "<line class=\"edge\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>"
            );
        }
        for (value, label) in axis.ticks() {
            let (at, up) = (y(axis, value), 100.0 * axis.height(value));
            let _ = writeln!(
                figure,
                "<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{at:.2}\" y2=\"{at:.2}\"/>"
            );
            let _ = writeln!(
                labels,
                "<span class=\"y\" style=\"bottom:{up:.2}%\">{label}</span>"
            );
        }
        for (seconds, label) in time_ticks(self.seconds) {
            let left = 100.0 * self.x(seconds) / WIDTH;
            let _ = writeln!(
                labels,
                "<span class=\"x\" style=\"left:{left:.2}%\">{label}</span>"
            );
        }
        // The summary says the same to a screen reader.
        figure
            + curves
            + &format!(
                "</svg>\n<div aria-hidden=\"true\">\n{labels}<i class=\"cursor\" hidden></i></div>\n</div>\n"
            )
            + &legend(series)
            + "</figure>\n"
    }

    /// Describes the chart in a sentence.
    fn summary(&self, caption: Caption, series: &[Series]) -> String {
        let mut text = format!("{} over {:.1} seconds.", caption.title, self.seconds);
        for one in series {
            let values = || one.values.iter().flatten().copied();
            let (low, high) = (
                values().fold(f64::INFINITY, f64::min),
                values().fold(0.0, f64::max),
            );
            if low.is_finite() {
                let name = if series.len() == 1 {
                    "Values"
                } else {
                    &one.name
                };
                let _ = write!(
                    text,
                    " {name} from {} to {} {}.",
                    short(low),
                    short(high),
                    caption.unit
                );
            }
        }
        text
    }

    fn x(&self, seconds: f64) -> f64 {
        WIDTH * (seconds / self.seconds).clamp(0.0, 1.0)
    }
}

fn legend(series: &[Series]) -> String {
    if series.len() < 2 {
        return String::new();
    }
    let entry = |(at, one): (usize, &Series)| {
        format!(
            "<span><i class=\"c{}\"></i>{}</span>",
            at % 8,
            escaped(&one.name)
        )
    };
    let entries: String = series.iter().enumerate().map(entry).collect();
    format!("<div class=\"legend\">{entries}</div>\n")
}

/// Returns the time in the middle of a sample.
fn middle(sample: &Sample) -> f64 {
    sample.at_s - sample.length_s / 2.0
}

fn y(axis: &Axis, value: f64) -> f64 {
    HEIGHT * (1.0 - axis.height(value))
}

/// Formats a number with about three digits.
fn short(value: f64) -> String {
    match value {
        large if large >= 100.0 => super::super::text::grouped(large.round() as u64),
        small => format!("{small:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u32) -> Vec<Sample> {
        let sample = |at: u32| Sample {
            at_s: f64::from(at),
            length_s: 1.0,
            ..Sample::default()
        };
        (1..=count).map(sample).collect()
    }

    const CAPTION: Caption = Caption {
        title: "Latency",
        unit: "ms",
    };

    #[test]
    fn a_curve_has_a_gap_where_nothing_was_measured() {
        let samples = samples(5);
        let chart = Chart::new(&samples, &[], None);
        let series = Series {
            name: "p99".to_owned(),
            values: vec![Some(1.0), Some(2.0), None, Some(1.0), None],
        };
        let drawn = chart.lines(CAPTION, &Axis::linear(2.0), &[series]);
        let path = drawn
            .split("d=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert_eq!(path, "M100.0 50.00l0 0L300.0 0.00M700.0 50.00l0 0");
        assert!(drawn.contains("Values from 1.00 to 2.00 ms."), "{drawn}");
    }

    #[test]
    fn edges_of_faults_are_marked_in_every_chart() {
        let samples = samples(100);
        let fault = |from_s: f64| InjectedFault {
            fault: "a fault".to_owned(),
            due_s: from_s,
            from_s,
            until_s: Some(from_s + 1.0),
        };
        let faults = [fault(0.0), fault(0.5), fault(3.0)];
        let chart = Chart::new(&samples, &faults, Some(90.0));
        let drawn = chart.stack(CAPTION, &[]);
        assert_eq!(drawn.matches("class=\"edge\"").count(), 6);
        assert!(drawn.contains("class=\"read-back\" x=\"900.0\""), "{drawn}");
        assert!(chart.lanes().contains(">a fault</span>"));
    }
}
