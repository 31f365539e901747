//! Shrinks a failing plan to what its failure needs.
//!
//! Shorter first, because every later try is then faster. Then network faults by delta debugging,
//! faults of the cluster, workers and the remaining settings. A step is kept if the plan still
//! fails with the same symptom.

use std::time::{Duration, Instant};

use crate::plan::RunPlan;

/// How many faults the cluster's schedule may have.
const SCHEDULED: usize = 64;

/// A plan that was shrunk.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest plan that still fails.
    pub plan: RunPlan,
    /// How many plans were tried.
    pub tries: u32,
}

/// Shrinks a plan. `fails` plays a plan in its own process and returns whether it fails with
/// the same symptom; it is called at most `most` times, and not after `time`.
pub fn shrink(
    plan: &RunPlan,
    most: u32,
    time: Duration,
    fails: impl FnMut(&RunPlan) -> bool,
) -> Shrunk {
    let mut search = Search {
        best: plan.clone(),
        tries: 0,
        most,
        begun: Instant::now(),
        time,
        fails,
    };
    search.shorten();
    search.remove_network_faults();
    search.leave_out_faults();
    search.reduce_workers();
    search.simplify();
    search.shorten();
    Shrunk {
        plan: search.best,
        tries: search.tries,
    }
}

struct Search<F> {
    best: RunPlan,
    tries: u32,
    most: u32,
    begun: Instant,
    time: Duration,
    fails: F,
}

impl<F: FnMut(&RunPlan) -> bool> Search<F> {
    /// Keeps a change if the plan still fails.
    fn accept(&mut self, change: impl FnOnce(&mut RunPlan)) -> bool {
        let mut plan = self.best.clone();
        change(&mut plan);
        let is_over = self.tries >= self.most || self.begun.elapsed() >= self.time;
        if plan == self.best || is_over {
            return false;
        }
        self.tries += 1;
        let fails = (self.fails)(&plan);
        if fails {
            self.best = plan;
        }
        fails
    }

    /// Finds a short time after which the run may end, by bisection.
    fn shorten(&mut self) {
        let mut longest = self.best.stop_after_ms.unwrap_or(self.best.duration_ms);
        let mut shortest = 0;
        while longest - shortest > longest / 16 + 20 {
            let middle = shortest + (longest - shortest) / 2;
            match self.accept(|plan| plan.stop_after_ms = Some(middle)) {
                true => longest = middle,
                false => shortest = middle,
            }
        }
    }

    fn remove_network_faults(&mut self) {
        let faults = self.best.network_faults.clone();
        minimise(faults, |kept| {
            self.accept(|plan| plan.network_faults = kept.to_vec())
        });
    }

    fn leave_out_faults(&mut self) {
        let all: Vec<usize> = (0..SCHEDULED)
            .filter(|index| !self.best.left_out.contains(index))
            .collect();
        minimise(all, |kept| {
            let out = (0..SCHEDULED).filter(|index| !kept.contains(index));
            let out = out.collect();
            self.accept(|plan| plan.left_out = out)
        });
    }

    fn reduce_workers(&mut self) {
        for workers in [1, 2, 4, 8] {
            if workers < self.best.workers && self.accept(|plan| plan.workers = workers) {
                break;
            }
        }
        while self.accept(|plan| plan.rate = (plan.rate / 2).max(1)) {}
    }

    fn simplify(&mut self) {
        self.accept(|plan| plan.tls = false);
        self.accept(|plan| plan.jitter_us = 0);
        self.accept(|plan| plan.latency_us = 0);
    }
}

/// Finds a small part of a list that still fails, by delta debugging: parts are removed, first
/// large ones, then smaller ones.
fn minimise<T: Clone>(list: Vec<T>, mut still_fails: impl FnMut(&[T]) -> bool) {
    let mut list = list;
    if list.is_empty() || still_fails(&[]) {
        return;
    }
    let mut size = list.len().div_ceil(2);
    loop {
        let mut at = 0;
        while at < list.len() {
            let end = (at + size).min(list.len());
            let mut rest = list.clone();
            rest.drain(at..end);
            if rest.len() < list.len() && still_fails(&rest) {
                list = rest;
            } else {
                at = end;
            }
        }
        if size == 1 {
            return;
        }
        size = size.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::MAX;

    /// A plan with many network faults.
    fn plan() -> RunPlan {
        let plans = (0..).map(|seed| RunPlan::new(seed, Duration::from_secs(20), 800));
        let mut plans = plans.filter(|plan| plan.network_faults.len() > 7 && plan.workers > 4);
        plans.next().expect("endless")
    }

    #[test]
    fn only_what_the_failure_needs_is_left() {
        let plan = plan();
        let (first, last) = (
            plan.network_faults[1].clone(),
            plan.network_faults[6].clone(),
        );
        let shrunk = shrink(&plan, 500, LONG, |plan| {
            let has = |fault| plan.network_faults.contains(fault);
            let long = plan.stop_after_ms.is_none_or(|after| after >= 4_000);
            has(&first) && has(&last) && long && !plan.left_out.contains(&5) && plan.workers >= 2
        });
        let best = &shrunk.plan;
        assert_eq!(best.network_faults, [first, last]);
        assert_eq!(best.workers, 2);
        let kept: Vec<_> = (0..SCHEDULED)
            .filter(|at| !best.left_out.contains(at))
            .collect();
        assert_eq!(kept, [5]);
        assert!(
            (4_000..4_300).contains(&best.stop_after_ms.unwrap_or(0)),
            "{best:?}"
        );
        assert!(shrunk.tries < 120, "{}", shrunk.tries);
    }

    #[test]
    fn a_failure_that_needs_everything_stays_as_it_is() {
        let plan = plan();
        let shrunk = shrink(&plan, 500, LONG, |tried| *tried == plan);
        assert_eq!(shrunk.plan, plan);
    }

    #[test]
    fn tries_are_bounded() {
        let shrunk = shrink(&plan(), 7, LONG, |_| true);
        assert_eq!(shrunk.tries, 7);
        let shrunk = shrink(&plan(), 7, Duration::ZERO, |_| true);
        assert_eq!(shrunk.tries, 0);
    }
}
