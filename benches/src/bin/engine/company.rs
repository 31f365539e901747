//! The cost of a budget that two threads use at once.
//!
//! Two threads can slow each other down without sharing anything, if their
//! processors are halves of one core. So there is a control: the same strategy
//! twice, with a budget for each thread.

use steadfast_benches::measure::{Pair, Workload, one_and_two_threads};
use steadfast_benches::table::Table;

use crate::contenders::{self, Contender, LOOP, STANDARD};
use crate::scenario::Scenario;

/// The control.
pub(crate) const APART: &str = "steadfast, standard, a budget each";

/// A contender on one thread, and on two.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) pair: Pair,
}

/// Measures every contender that shares a budget, and those that do not for
/// comparison.
pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let (here, there) = (contenders::all(), contenders::all());
    let mut pairs: Vec<(&'static str, [&Contender; 2])> = here
        .iter()
        .filter(|contender| contender.shares || contender.name == LOOP)
        .map(|contender| (contender.name, [contender, contender]))
        .collect();
    let standards = here
        .iter()
        .zip(&there)
        .find(|(one, _)| one.name == STANDARD);
    pairs.extend(standards.map(|(one, other)| (APART, [one, other])));

    let workloads: Vec<_> = pairs
        .iter()
        .map(|(_, pair)| pair.map(|contender| contender.workload(Scenario::FirstTry)))
        .collect();
    let workloads: Vec<[Workload<'_>; 2]> = workloads
        .iter()
        .map(|pair| pair.each_ref().map(|work| work as Workload<'_>))
        .collect();
    let measured = one_and_two_threads(&workloads, rounds);
    pairs
        .iter()
        .zip(measured)
        .map(|(&(name, _), pair)| Row { name, pair })
        .collect()
}

pub(crate) fn table(rows: &[Row]) -> Table {
    let standard = rows.iter().find(|row| row.name == STANDARD);
    let standard = standard.map_or(f64::NAN, |row| row.pair.together.ns);
    let mut table = Table::new(&[
        "",
        "ns, one thread",
        "ns, each of two",
        "× one thread",
        "× standard",
        "undisturbed",
    ]);
    for Row { name, pair } in rows {
        table.row(vec![
            (*name).to_owned(),
            format!("{:.1}", pair.alone.ns),
            format!("{:.1}", pair.together.ns),
            format!("{:.2}", pair.ratio()),
            format!("{:.2}", pair.together.ns / standard),
            format!("{} of {}", pair.together.quiet, pair.together.batches),
        ]);
    }
    table
}
