//! The tables of all contenders.

use std::io::{self, Write};
use std::thread;

use steadfast_benches::measure::{Timing, Unmeasured, Workload, side_by_side};
use steadfast_benches::table::Table;

use crate::company;
use crate::contenders::{self, CLOCK, Contender, LOOP, STANDARD};
use crate::exact::Exact;
use crate::limits::LIMITS;
use crate::scenario::Scenario;
use crate::targets;

/// Enough for a median that stays put while the machine does other things.
const ROUNDS: usize = 101;

/// A contender in a scenario.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) timing: Timing,
    pub(crate) exact: Exact,
}

/// Measures everything, and prints it with the targets.
pub(crate) fn report(out: &mut impl Write) -> io::Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    writeln!(out, "{cores} cores, medians of {ROUNDS} rounds in turns")?;
    if !cfg!(feature = "peers") {
        writeln!(
            out,
            "without the other libraries: they come with `--features peers`"
        )?;
    }

    let mut rows = Vec::new();
    for scenario in Scenario::ALL {
        let measured = measure(scenario);
        writeln!(out, "\n{scenario}, one thread ({})\n", quiet(&measured))?;
        write!(out, "{}", table(&measured))?;
        rows.extend(measured);
    }

    let company = company::measure(ROUNDS);
    writeln!(out, "\n{}, two threads at once\n", Scenario::FirstTry)?;
    write!(out, "{}", company::table(&company))?;

    writeln!(out, "\ntargets\n")?;
    for limit in LIMITS {
        let row = find(&rows, limit.contender, limit.scenario);
        let row = row.expect("every limit is for a row of the tables");
        for finding in limit.judge(&row.exact, &clock(&rows)) {
            writeln!(out, "{finding}")?;
        }
    }
    for finding in targets::judge(&rows, &company) {
        writeln!(out, "{finding}")?;
    }
    Ok(())
}

pub(crate) fn find<'a>(rows: &'a [Row], name: &str, scenario: Scenario) -> Option<&'a Row> {
    rows.iter()
        .find(|row| row.name == name && row.scenario == scenario)
}

fn clock(rows: &[Row]) -> Result<f64, Unmeasured> {
    let row = find(rows, CLOCK, Scenario::FirstTry).expect("the clock has a row");
    row.exact.instructions.clone()
}

fn measure(scenario: Scenario) -> Vec<Row> {
    let contenders: Vec<Contender> = contenders::all()
        .into_iter()
        .filter(|contender| contender.retries || scenario == Scenario::FirstTry)
        .collect();
    let workloads: Vec<_> = contenders
        .iter()
        .map(|contender| contender.workload(scenario))
        .collect();
    let workloads: Vec<Workload<'_>> = workloads.iter().map(|work| work as Workload<'_>).collect();
    let timings = side_by_side(&workloads, ROUNDS);
    let rows = contenders
        .iter()
        .zip(timings)
        .map(|(contender, timing)| Row {
            name: contender.name,
            scenario,
            timing,
            exact: Exact::measure(contender, scenario),
        });
    rows.collect()
}

fn table(rows: &[Row]) -> Table {
    let ns = |name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        row.map_or(f64::NAN, |row| row.timing.ns)
    };
    let mut table = Table::new(&[
        "",
        "ns",
        "× loop",
        "× standard",
        "allocations",
        "instructions",
    ]);
    for row in rows {
        table.row(vec![
            row.name.to_owned(),
            format!("{:.1}", row.timing.ns),
            format!("{:.2}", row.timing.ns / ns(LOOP)),
            format!("{:.2}", row.timing.ns / ns(STANDARD)),
            format!("{}", row.exact.allocations),
            match &row.exact.instructions {
                Ok(instructions) => format!("{instructions:.0}"),
                Err(why) => why.to_string(),
            },
        ]);
    }
    table
}

/// How much of it was measured while nothing else had this processor.
fn quiet(rows: &[Row]) -> String {
    let quiet: usize = rows.iter().map(|row| row.timing.quiet).sum();
    let batches: usize = rows.iter().map(|row| row.timing.batches).sum();
    format!("{quiet} of {batches} batches undisturbed")
}
