//! The targets in time. They can only be judged against others in the same
//! run, and on a machine with two processors to spare.

use crate::company;
use crate::contenders::{LOAD_AWARE, SMITHY, STANDARD, TOWER};
use crate::finding::Finding;
use crate::report::{self, find};
use crate::scenario::Scenario;

/// How many times as long the others with a budget take, at least: ours is ahead.
const FASTER: f64 = 1.0;
/// How many times as long a call may take when another thread makes the same.
const COMPANY: f64 = 1.2;

pub(crate) fn judge(rows: &[report::Row], company: &[company::Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for scenario in Scenario::ALL {
        findings.extend([TOWER, SMITHY].map(|peer| faster_than(peer, scenario, rows)));
    }
    findings.extend([STANDARD, LOAD_AWARE].map(|name| company_costs(name, company)));
    findings
}

fn faster_than(peer: &str, scenario: Scenario, rows: &[report::Row]) -> Finding {
    let target = format!("{STANDARD}, {scenario}: at least as fast as {peer}");
    let standard = find(rows, STANDARD, scenario);
    match (standard, find(rows, peer, scenario)) {
        (Some(standard), Some(peer)) => {
            let ratio = peer.timing.ns / standard.timing.ns;
            Finding::new(target, format!("{ratio:.2} ×"), ratio >= FASTER)
        }
        (_, None) | (None, _) => Finding::unmeasured(target, "needs `--features peers`"),
    }
}

fn company_costs(name: &str, rows: &[company::Row]) -> Finding {
    let ratio = |name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        row.map_or(f64::NAN, |row| row.pair.ratio())
    };
    let (shared, apart) = (ratio(name), ratio(company::APART));
    Finding::new(
        format!("{name}, two threads on one full budget: at most {COMPANY} × one thread"),
        format!("{shared:.2} × (with a budget each: {apart:.2} ×)"),
        shared <= COMPANY,
    )
}
