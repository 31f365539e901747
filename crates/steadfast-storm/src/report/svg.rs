//! The picture of recovery against the size of the fleet.

use std::fmt::Write;

use super::Comparison;
use crate::trials::Trials;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 130.0;
const ROW: f64 = 30.0;
const TOP: f64 = 62.0;

/// Colours of a share, with white text on each: from red over amber to green.
pub(super) fn colour(share: f64) -> &'static str {
    match share {
        share if share >= 0.95 => "#1a7f4b",
        share if share >= 0.5 => "#7a7a1c",
        share if share > 0.05 => "#b3651b",
        _ => "#b02a24",
    }
}

impl Comparison {
    /// Draws the share of the runs that recover, for each policy and size of the fleet.
    ///
    /// The colours are readable on a light and on a dark page, and every cell has its number
    /// as text.
    pub fn to_svg(&self) -> String {
        let policies: Vec<&str> = self
            .fleets
            .first()
            .map(|fleet| fleet.iter().map(|trials| &*trials.policy).collect())
            .unwrap_or_default();
        let columns = self.fleets.len().max(1) as f64;
        let cell = (WIDTH - LEFT - 10.0) / columns;
        let height = TOP + ROW * policies.len() as f64 + 12.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"fleet-title fleet-desc\" font-family=\"system-ui, sans-serif\">\n\
             <title id=\"fleet-title\">Recovery against the size of the fleet: {}</title>\n\
             <desc id=\"fleet-desc\">{}</desc>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\" fill=\"#77808a\">\
             clients, with the same load together</text>\n",
            self.scenario.name,
            self.described(),
        );
        for (column, fleet) in (0u32..).zip(&self.fleets) {
            let x = LEFT + cell * (f64::from(column) + 0.5);
            let clients = fleet.first().map_or(0, |trials| trials.clients);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"48\" font-size=\"15\" text-anchor=\"middle\" fill=\"#77808a\">{clients}</text>"
            );
        }
        for (row, policy) in (0u32..).zip(&policies) {
            let y = TOP + ROW * f64::from(row);
            let _ = writeln!(
                svg,
                "<text x=\"{:.0}\" y=\"{:.1}\" font-size=\"14\" text-anchor=\"end\" fill=\"#77808a\">{policy}</text>",
                LEFT - 10.0,
                y + 19.0
            );
            for (column, fleet) in (0u32..).zip(&self.fleets) {
                let Some(trials) = fleet.get(row as usize) else {
                    continue;
                };
                let x = LEFT + cell * f64::from(column);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\" fill=\"{}\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"13\" text-anchor=\"middle\" fill=\"#fff\">{}</text>",
                    x + 1.5,
                    y + 1.5,
                    cell - 3.0,
                    ROW - 3.0,
                    colour(trials.recovered.share),
                    x + cell / 2.0,
                    y + 19.0,
                    label(trials),
                );
            }
        }
        svg + "</svg>\n"
    }

    /// Returns the numbers of the picture as text.
    fn described(&self) -> String {
        let cells = self.fleets.iter().flatten().map(|trials| {
            format!(
                "{}, {} clients: {}.",
                trials.policy,
                trials.clients,
                label(trials)
            )
        });
        cells.collect::<Vec<_>>().join(" ")
    }
}

pub(super) fn label(trials: &Trials) -> String {
    let share = trials.recovered.share;
    let after = trials.recovered_after.unwrap_or(0.0);
    if share == 0.0 {
        "never".to_owned()
    } else if share == 1.0 {
        format!("after {after:.0} s")
    } else {
        format!("{:.0} %, after {after:.0} s", share * 100.0)
    }
}
