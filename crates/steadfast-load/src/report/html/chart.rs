//! Charts over the time of a run, below the injected faults as labelled bars.
//!
//! The curves are SVG that is stretched to the width of the page. Labels are HTML next to it,
//! so that they keep their size on a narrow screen.

use std::fmt::Write;

use super::axis::{Axis, time_ticks};
use super::escaped;
use crate::faults::InjectedFault;
use crate::measure::Sample;

/// The width and height of a plot, in its own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// The largest number of faults whose beginnings and ends are marked in the charts.
const MARKED: usize = 60;
/// A bar that begins behind this share of the width has its label in front of it.
const RIGHT_HALF: f64 = 45.0;

/// The frame of all charts of a run: the time axis, the injected faults, the read-back.
pub(super) struct Chart<'a> {
    samples: &'a [Sample],
    faults: &'a [InjectedFault],
    seconds: f64,
    load_s: f64,
}

/// Values over time, one for each sample; none where nothing was measured.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) values: Vec<Option<f64>>,
}

impl<'a> Chart<'a> {
    pub(super) fn new(samples: &'a [Sample], faults: &'a [InjectedFault], load_s: f64) -> Self {
        let seconds = samples.last().map_or(1.0, |last| last.at_s).max(0.001);
        Self {
            samples,
            faults,
            seconds,
            load_s,
        }
    }

    /// Draws a lane for each fault by its name, in the order in which they began. A fault that
    /// is injected again has several bars in its lane.
    pub(super) fn lanes(&self) -> String {
        let mut lanes: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
        for injected in self.faults {
            let until = injected.until_s.unwrap_or(self.seconds);
            let bar = (self.percent(injected.from_s), self.percent(until));
            match lanes.iter_mut().find(|(name, _)| *name == injected.fault) {
                Some((_, bars)) => bars.push(bar),
                None => lanes.push((&injected.fault, vec![bar])),
            }
        }
        if lanes.is_empty() {
            return String::new();
        }
        let mut figure = "<figure>\n<figcaption>Injected faults</figcaption>\n\
                          <div class=\"plot lanes\" role=\"group\" aria-label=\"Injected faults\">\n"
            .to_owned();
        for (name, bars) in lanes {
            figure += "<div class=\"lane\">";
            for (from, until) in &bars {
                let width = (until - from).max(0.3);
                let _ = write!(
                    figure,
                    "<i style=\"left:{from:.2}%;width:{width:.2}%\"></i>"
                );
            }
            let (first, last) = (bars[0].0, bars[bars.len() - 1].1);
            let side = match first > RIGHT_HALF {
                true => format!("right:{:.2}%", 100.0 - last),
                false => format!("left:{first:.2}%"),
            };
            let name = escaped(name);
            let _ = writeln!(figure, "<span style=\"{side}\">{name}</span></div>");
        }
        figure + "</div>\n</figure>\n"
    }

    /// Draws a curve for each series. Where a value is missing, the curve has a gap.
    pub(super) fn lines(&self, title: &str, unit: &str, axis: &Axis, series: &[Series]) -> String {
        let mut svg = String::new();
        let read_back = self.x(self.load_s);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<rect class=\"read-back\" x=\"{read_back:.1}\" y=\"0\" width=\"{:.1}\" height=\"{HEIGHT}\"/>",
            WIDTH - read_back
        );
        let marked = self.faults.iter().filter(|_| self.faults.len() <= MARKED);
        for at in marked.flat_map(|fault| [Some(fault.from_s), fault.until_s]) {
            let x = self.x(at.unwrap_or(self.seconds));
            let _ = writeln!(
                svg,
                "<line class=\"edge\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>"
            );
        }
        let mut labels = String::new();
        for (value, label) in axis.ticks() {
            let (at, up) = (y(axis, value), 100.0 * axis.height(value));
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{at:.2}\" y2=\"{at:.2}\"/>"
            );
            let _ = writeln!(
                labels,
                "<span class=\"y\" style=\"bottom:{up:.2}%\">{label}</span>"
            );
        }
        for (seconds, label) in time_ticks(self.seconds) {
            let left = self.percent(seconds);
            let _ = writeln!(
                labels,
                "<span class=\"x\" style=\"left:{left:.2}%\">{label}</span>"
            );
        }
        let mut legend = String::new();
        for (number, one) in series.iter().enumerate() {
            let path = self.path(axis, &one.values);
            let _ = writeln!(svg, "<path class=\"curve c{number}\" d=\"{path}\"/>");
            let _ = write!(
                legend,
                "<span><i class=\"c{number}\"></i>{}</span>",
                one.name
            );
        }
        if series.len() < 2 {
            legend.clear();
        }
        format!(
            "<figure>\n<figcaption>{title} <small>{unit}</small></figcaption>\n<div class=\"plot\">\n\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"{title} over {:.1} seconds\">\n{svg}</svg>\n\
             <div aria-hidden=\"true\">\n{labels}</div>\n</div>\n\
             <div class=\"legend\">{legend}</div>\n</figure>\n",
            self.seconds
        )
    }

    fn path(&self, axis: &Axis, values: &[Option<f64>]) -> String {
        let mut path = String::new();
        let mut is_open = false;
        for (sample, value) in self.samples.iter().zip(values) {
            if let Some(value) = value {
                let (x, y) = (self.x(sample.at_s - sample.length_s / 2.0), y(axis, *value));
                // A line of length zero shows a value between two gaps as a dot.
                let _ = match is_open {
                    true => write!(path, "L{x:.1} {y:.2}"),
                    false => write!(path, "M{x:.1} {y:.2}l0 0"),
                };
            }
            is_open = value.is_some();
        }
        path
    }

    fn x(&self, seconds: f64) -> f64 {
        WIDTH * (seconds / self.seconds).clamp(0.0, 1.0)
    }

    fn percent(&self, seconds: f64) -> f64 {
        100.0 * self.x(seconds) / WIDTH
    }
}

fn y(axis: &Axis, value: f64) -> f64 {
    HEIGHT * (1.0 - axis.height(value))
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

    fn fault(name: &str, from_s: f64, until_s: Option<f64>) -> InjectedFault {
        InjectedFault {
            fault: name.to_owned(),
            due_s: from_s,
            from_s,
            until_s,
        }
    }

    #[test]
    fn a_curve_has_a_gap_where_nothing_was_measured() {
        let samples = samples(5);
        let chart = Chart::new(&samples, &[], 5.0);
        let values = [Some(1.0), Some(2.0), None, Some(1.0), None];
        let path = chart.path(&Axis::linear(2.0), &values);
        assert_eq!(path, "M100.0 50.00l0 0L300.0 0.00M700.0 50.00l0 0");
    }

    #[test]
    fn each_fault_has_a_lane_with_its_name_a_bar_for_each_time_and_edges_in_the_charts() {
        let samples = samples(10);
        let faults = [
            fault("a node is <slow>", 1.0, Some(2.0)),
            fault("cut", 3.0, Some(4.0)),
            fault("a node is <slow>", 7.0, None),
            fault("late", 8.0, Some(9.0)),
        ];
        let chart = Chart::new(&samples, &faults, 9.0);
        let drawn = chart.lanes();
        assert_eq!(drawn.matches("class=\"lane\"").count(), 3, "{drawn}");
        assert_eq!(drawn.matches("a node is &lt;slow&gt;").count(), 1);
        assert!(drawn.contains("left:70.00%;width:30.00%"), "{drawn}");
        assert!(drawn.contains("<span style=\"left:30.00%\">cut"), "{drawn}");
        assert!(
            drawn.contains("<span style=\"right:10.00%\">late"),
            "{drawn}"
        );
        assert_eq!(Chart::new(&samples, &[], 9.0).lanes(), "");
        let drawn = chart.lines("Throughput", "op/s", &Axis::linear(1.0), &[]);
        assert_eq!(drawn.matches("class=\"edge\"").count(), 8);
        assert!(drawn.contains("class=\"read-back\" x=\"900.0\""), "{drawn}");
    }
}
