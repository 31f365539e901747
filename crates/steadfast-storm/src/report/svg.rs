//! The picture of a policy: how one client fares, and how a fleet recovers.

use std::fmt::Write;

use super::Comparison;
use crate::quiet::QuietRow;
use crate::trials::Trials;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 130.0;
const ROW: f64 = 30.0;
const TOP: f64 = 62.0;

/// Colours of a share, with white text on each: from red over amber to green.
fn colour(share: f64) -> &'static str {
    match share {
        share if share >= 0.95 => "#1a7f4b",
        share if share >= 0.5 => "#7a7a1c",
        share if share > 0.05 => "#b3651b",
        _ => "#b02a24",
    }
}

/// A cell of the picture.
struct Cell {
    share: f64,
    text: String,
}

/// A column of the picture, with a cell for each policy.
struct Column {
    heading: String,
    cells: Vec<Cell>,
}

impl Comparison {
    /// Draws for each policy the shares of `lone` clients that get over their first failure,
    /// and the share of the runs that recover, for each size of the fleet. Without lone
    /// clients, only the latter.
    ///
    /// The colours are readable on a light and on a dark page, and every cell has its number
    /// as text.
    pub fn to_svg(&self, lone: &[QuietRow]) -> String {
        let policies: Vec<&str> = self
            .fleets
            .first()
            .map(|fleet| fleet.iter().map(|trials| &*trials.policy).collect())
            .unwrap_or_default();
        let lone = self.lone_columns(&policies, lone);
        let of_lone = lone.len();
        let columns: Vec<Column> = lone.into_iter().chain(self.fleet_columns()).collect();
        let cell = (WIDTH - LEFT - 10.0) / columns.len().max(1) as f64;
        let height = TOP + ROW * policies.len() as f64 + 12.0;
        let of_fleet = LEFT + cell * of_lone as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"fleet-title fleet-desc\" font-family=\"system-ui, sans-serif\">\n\
             <title id=\"fleet-title\">One client, and recovery against the size of the fleet: {}</title>\n\
             <desc id=\"fleet-desc\">{}</desc>\n\
             <text x=\"{of_fleet:.1}\" y=\"20\" font-size=\"14\" fill=\"#77808a\">\
             clients, with the same load together</text>\n",
            self.scenario.name,
            described(&policies, &columns),
        );
        if of_lone > 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{LEFT}\" y=\"20\" font-size=\"14\" fill=\"#77808a\">one client gets over its first</text>"
            );
        }
        for (number, column) in (0u32..).zip(&columns) {
            let x = LEFT + cell * f64::from(number);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"48\" font-size=\"15\" text-anchor=\"middle\" fill=\"#77808a\">{}</text>",
                x + cell / 2.0,
                column.heading,
            );
            for (row, Cell { share, text }) in (0u32..).zip(&column.cells) {
                let y = TOP + ROW * f64::from(row);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\" fill=\"{}\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"13\" text-anchor=\"middle\" fill=\"#fff\">{text}</text>",
                    x + 1.5,
                    y + 1.5,
                    cell - 3.0,
                    ROW - 3.0,
                    colour(*share),
                    x + cell / 2.0,
                    y + 19.0,
                );
            }
        }
        for (row, policy) in (0u32..).zip(&policies) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.0}\" y=\"{:.1}\" font-size=\"14\" text-anchor=\"end\" fill=\"#77808a\">{policy}</text>",
                LEFT - 10.0,
                TOP + ROW * f64::from(row) + 19.0
            );
        }
        svg + "</svg>\n"
    }

    /// Returns a column for each failure that a lone client may meet first.
    fn lone_columns(&self, policies: &[&str], lone: &[QuietRow]) -> Vec<Column> {
        if lone.is_empty() {
            return Vec::new();
        }
        let column = |heading: &str, share: fn(&QuietRow) -> f64| Column {
            heading: heading.to_owned(),
            cells: policies
                .iter()
                .filter_map(|policy| lone.iter().find(|row| row.policy == **policy))
                .map(|row| Cell {
                    share: share(row),
                    text: format!("{:.0} %", share(row) * 100.0),
                })
                .collect(),
        };
        vec![
            column("error", |row| row.useful.first_error),
            column("timeout", |row| row.useful.first_timeout),
        ]
    }

    /// Returns a column for each size of the fleet.
    fn fleet_columns(&self) -> impl Iterator<Item = Column> {
        self.fleets.iter().map(|fleet| Column {
            heading: fleet.first().map_or(0, |trials| trials.clients).to_string(),
            cells: fleet
                .iter()
                .map(|trials| Cell {
                    share: trials.recovered,
                    text: label(trials),
                })
                .collect(),
        })
    }
}

/// Returns the numbers of the picture as text.
fn described(policies: &[&str], columns: &[Column]) -> String {
    let cells = columns.iter().flat_map(|column| {
        let cells = policies.iter().zip(&column.cells);
        cells.map(|(policy, cell)| format!("{policy}, {}: {}.", column.heading, cell.text))
    });
    cells.collect::<Vec<_>>().join(" ")
}

fn label(trials: &Trials) -> String {
    let share = trials.recovered;
    let after = trials.recovered_after.unwrap_or(0.0);
    if share == 0.0 {
        "never".to_owned()
    } else if share == 1.0 {
        format!("after {after:.0} s")
    } else {
        format!("{:.0} %, after {after:.0} s", share * 100.0)
    }
}
