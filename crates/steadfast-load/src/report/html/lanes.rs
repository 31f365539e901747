//! The injected faults as labelled bars, on the time axis of the charts.

use std::fmt::Write;

use super::escaped;
use crate::faults::InjectedFault;

/// A bar that begins behind this share of the width has its label in front of it.
const RIGHT_HALF: f64 = 45.0;

/// Draws a lane for each fault by its name, in the order in which they began. A fault that is
/// injected again has several bars in its lane. `position` returns where a time is, in per cent.
pub(super) fn lanes(faults: &[InjectedFault], position: impl Fn(Option<f64>) -> f64) -> String {
    let mut lanes: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for injected in faults {
        let from = position(Some(injected.from_s));
        let bar = (from, position(injected.until_s));
        match lanes.iter_mut().find(|(name, _)| *name == injected.fault) {
            Some((_, bars)) => bars.push(bar),
            None => lanes.push((&injected.fault, vec![bar])),
        }
    }
    if lanes.is_empty() {
        return String::new();
    }
    let mut figure = "<figure>\n<figcaption>Injected faults</figcaption>\n\
                      <div class=\"plot lanes\" aria-hidden=\"true\">\n"
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
        let _ = writeln!(
            figure,
            "<span style=\"{side}\">{}</span></div>",
            escaped(name)
        );
    }
    figure + "<i class=\"cursor\" hidden></i></div>\n</figure>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_a_lane_with_its_name_and_a_bar_for_each_time() {
        let fault = |name: &str, from_s, until_s| InjectedFault {
            fault: name.to_owned(),
            due_s: from_s,
            from_s,
            until_s,
        };
        let faults = [
            fault("a node is <slow>", 1.0, Some(2.0)),
            fault("cut", 3.0, Some(4.0)),
            fault("a node is <slow>", 7.0, None),
            fault("late", 8.0, Some(9.0)),
        ];
        let drawn = lanes(&faults, |at| at.map_or(100.0, |at| at * 10.0));
        assert_eq!(drawn.matches("class=\"lane\"").count(), 3, "{drawn}");
        assert_eq!(drawn.matches("a node is &lt;slow&gt;").count(), 1);
        assert!(drawn.contains("left:70.00%;width:30.00%"), "{drawn}");
        assert!(drawn.contains("<span style=\"left:30.00%\">cut"), "{drawn}");
        assert!(
            drawn.contains("<span style=\"right:10.00%\">late"),
            "{drawn}"
        );
        assert_eq!(lanes(&[], |_| 0.0), "");
    }
}
