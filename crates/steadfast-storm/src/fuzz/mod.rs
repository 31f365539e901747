//! Comparison of policies in random scenarios.
//!
//! Policies are easily tuned to a few scenarios. Here nobody knows the scenarios before:
//! they are drawn from seeds. Variants of a policy are chosen on one range of seeds and
//! reported on another.

mod draw;
mod report;

use std::ops::Range;

use rayon::prelude::*;

pub use draw::draw;
pub use report::{FuzzReport, FuzzRow, WorstCase};

use crate::policies::Policy;
use crate::summary::Summary;

/// Runs every policy, and none, in the scenarios of these seeds.
pub fn fuzz(policies: &[Policy], seeds: Range<u64>) -> FuzzReport {
    let none = Policy::no_retry();
    let others = policies
        .iter()
        .filter(|policy| policy.name() != none.name());
    let policies: Vec<&Policy> = std::iter::once(&none).chain(others).collect();
    let jobs: Vec<(u64, usize)> = seeds
        .clone()
        .flat_map(|seed| (0..policies.len()).map(move |policy| (seed, policy)))
        .collect();
    let runs: Vec<Summary> = jobs
        .into_par_iter()
        .map(|(seed, policy)| {
            let mut run = draw(seed).run_checked(policies[policy], seed);
            run.bins = Vec::new();
            run
        })
        .collect();
    let names: Vec<&str> = policies.iter().map(|policy| policy.name()).collect();
    FuzzReport::new(seeds, &names, &runs)
}

/// Chooses the best of several variants of a policy: the one with the highest mean success
/// of those whose worst loss against none is within the limits, or, if there is none, the
/// one that exceeds them least.
pub fn tune(variants: &[Policy], seeds: Range<u64>) -> Option<(&Policy, FuzzReport)> {
    let report = fuzz(variants, seeds);
    let best = report
        .rows
        .iter()
        .filter(|row| variants.iter().any(|it| it.name() == row.policy))
        .min_by(|a, b| {
            a.rank()
                .partial_cmp(&b.rank())
                .unwrap_or(std::cmp::Ordering::Equal)
        })?;
    let best = variants.iter().find(|it| it.name() == best.policy)?;
    Some((best, report))
}
