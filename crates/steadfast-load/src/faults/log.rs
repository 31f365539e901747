//! Log of the injected faults, of bounded size.
//!
//! A run of hours plays one schedule after the other. Every fault is counted by its kind,
//! and only the latest ones are kept one by one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::kind::FaultKind;
use super::schedule::ScheduledFault;

/// How many faults are kept one by one: an hour and a half of them.
const KEPT: usize = 2000;

/// The faults that a run injected.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct FaultLog {
    pub(crate) by_kind: Vec<FaultTotals>,
    /// The faults one by one, in order; only the latest of a long run.
    pub(crate) injected: Vec<InjectedFault>,
    /// The number of earlier faults that are no longer listed.
    pub(crate) injected_dropped: u64,
    /// The hits of active faults, by kind.
    #[serde(skip)]
    pub(crate) hits: BTreeMap<FaultKind, u64>,
}

/// The faults of one kind, over the whole run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FaultTotals {
    pub(crate) fault: String,
    pub(crate) count: u64,
    pub(crate) duration_s: f64,
    /// What it hit: requests, or documents for a failover.
    pub(crate) hits: u64,
    #[serde(skip)]
    pub(crate) kind: FaultKind,
}

/// One fault, or two at the same time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InjectedFault {
    pub(crate) fault: String,
    pub(crate) from_s: f64,
    pub(crate) until_s: Option<f64>,
    /// When it is to end by the schedule.
    #[serde(skip)]
    pub(crate) due_s: f64,
}

impl FaultLog {
    pub(super) fn begin(&mut self, fault: &ScheduledFault, now_s: f64) {
        if self.injected.len() >= KEPT {
            // Half of them at once, so that this is rare.
            self.injected_dropped += self.injected.drain(..KEPT / 2).count() as u64;
        }
        self.injected.push(InjectedFault {
            fault: match fault.with {
                Some(with) => format!("{} with {}", fault.kind, FaultKind::Rule(with)),
                None => fault.kind.to_string(),
            },
            from_s: now_s,
            until_s: None,
            due_s: now_s + fault.lasts.as_secs_f64(),
        });
    }

    /// Counts what an active fault has hit.
    pub(super) fn hit(&mut self, kind: FaultKind, hits: u64) {
        *self.hits.entry(kind).or_default() += hits;
    }

    /// Ends the fault that began last.
    pub(super) fn end(&mut self, fault: &ScheduledFault, now_s: f64) {
        let Some(last) = self.injected.last_mut() else {
            return;
        };
        last.until_s = Some(now_s);
        let lasted = now_s - last.from_s;
        for kind in [Some(fault.kind), fault.with.map(FaultKind::Rule)]
            .into_iter()
            .flatten()
        {
            let known = self.by_kind.iter().position(|totals| totals.kind == kind);
            let at = known.unwrap_or_else(|| {
                self.by_kind.push(FaultTotals {
                    fault: kind.to_string(),
                    count: 0,
                    duration_s: 0.0,
                    hits: 0,
                    kind,
                });
                self.by_kind.len() - 1
            });
            self.by_kind[at].count += 1;
            self.by_kind[at].duration_s += lasted;
            self.by_kind[at].hits += self.hits.remove(&kind).unwrap_or(0);
        }
    }

    /// Returns for how many seconds the active fault is overdue.
    pub(crate) fn overdue_s(&self, now_s: f64) -> f64 {
        let active = self.injected.last().filter(|last| last.until_s.is_none());
        active.map_or(0.0, |active| now_s - active.due_s)
    }

    /// Returns the fault that is active now.
    pub(crate) fn active(&self) -> Option<&str> {
        let last = self.injected.last()?;
        last.until_s.is_none().then_some(&*last.fault)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::kind::RuleKind;
    use super::*;

    fn fault(kind: FaultKind, with: Option<RuleKind>) -> ScheduledFault {
        ScheduledFault {
            kind,
            with,
            lasts: Duration::ZERO,
            node: 0,
            seed: 0,
        }
    }

    #[test]
    fn faults_are_listed_one_by_one_and_counted_by_kind() {
        let mut log = FaultLog::default();
        let slow = FaultKind::Rule(RuleKind::SlowNode);
        let both = fault(FaultKind::Crash, Some(RuleKind::SlowNode));
        log.begin(&both, 1.0);
        log.hit(slow, 7);
        let name = "crash and restart with delay on one node";
        assert_eq!(log.active(), Some(name));
        assert_eq!(log.overdue_s(2.5), 1.5);
        log.end(&both, 3.0);
        let slow = fault(slow, None);
        log.begin(&slow, 3.0);
        log.end(&slow, 4.5);
        assert_eq!(log.active(), None);
        assert_eq!(log.overdue_s(99.0), 0.0);
        let totals = log.by_kind.iter();
        let totals: Vec<_> = totals
            .map(|totals| (&*totals.fault, totals.count, totals.duration_s, totals.hits))
            .collect();
        let expected = [
            ("crash and restart", 1, 2.0, 0),
            ("delay on one node", 2, 3.5, 7),
        ];
        assert_eq!(totals, expected);
    }

    #[test]
    fn a_run_of_days_takes_no_more_memory_and_counts_every_fault() {
        let mut log = FaultLog::default();
        let crash = fault(FaultKind::Crash, None);
        for at in 0..50_000 {
            log.begin(&crash, f64::from(at));
            log.end(&crash, f64::from(at) + 0.5);
            assert!(log.injected.len() <= KEPT);
        }
        assert_eq!(log.by_kind[0].count, 50_000);
        let kept = log.injected.len() as u64;
        assert_eq!(kept + log.injected_dropped, 50_000);
        assert_eq!(log.injected.last().unwrap().from_s, 49_999.0);
    }
}
