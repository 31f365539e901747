//! Effects that faults must have, and whether a run saw them.
//!
//! A fault that hits nothing proves nothing. Each kind of fault says what it must cause: requests
//! that its rules hit, attempts that fail for a reason, operations that time out. Hits are those
//! of the fault itself. The other counts are those of the whole run, because an operation can end
//! long after the fault that delayed it.

use serde::Serialize;

use super::kind::FaultKind;
use super::log::FaultLog;
use crate::measure::{OperationCounts, RetryCounts};

/// Something that a fault must cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Its rules hit requests, or a failover moved documents.
    Hits,
    /// Attempts failed for this reason, and were retried or not.
    Reason(&'static str),
    AmbiguousTimeouts,
    /// Writes that ended ambiguously, and were applied.
    AmbiguousApplied,
    RejectedCredentials,
    SilentConnections,
}

/// One effect of a kind of fault, for the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Coverage {
    pub(crate) fault: String,
    /// What the fault must cause.
    pub(crate) causes: String,
    pub(crate) count: u64,
    pub(crate) missing: bool,
}

/// What was observed in a whole run.
pub(crate) struct Observed {
    /// The operations, with reading back.
    pub(crate) operations: OperationCounts,
    pub(crate) retries: RetryCounts,
    pub(crate) ambiguous_applied: u64,
    pub(crate) silent_connections: u64,
}

impl Observed {
    /// Lists the effects that the injected faults must have, with their counts. Reasons are left
    /// out if the client does not count them.
    pub(crate) fn coverage(&self, log: &FaultLog) -> Vec<Coverage> {
        let mut list = Vec::new();
        for totals in &log.by_kind {
            for evidence in totals.kind.properties().must_cause {
                let Some(count) = self.count(*evidence, totals.hits) else {
                    continue;
                };
                list.push(Coverage {
                    fault: totals.fault.clone(),
                    causes: evidence.describe(totals.kind),
                    count,
                    missing: count == 0,
                });
            }
        }
        list
    }

    fn count(&self, evidence: Evidence, hits: u64) -> Option<u64> {
        Some(match evidence {
            Evidence::Hits => hits,
            Evidence::Reason(_) if self.retries == RetryCounts::default() => return None,
            Evidence::Reason(reason) => {
                let both = [&self.retries.retries, &self.retries.refusals];
                let counts = both.into_iter().flatten();
                let counts = counts.filter(|((found, _), _)| found == reason);
                counts.map(|(_, count)| count).sum()
            }
            Evidence::AmbiguousTimeouts => self.operations.timed_out_ambiguous,
            Evidence::AmbiguousApplied => self.ambiguous_applied,
            Evidence::RejectedCredentials => {
                let rejected = self.operations.errors.get("AuthenticationFailure");
                rejected.copied().unwrap_or(0)
            }
            Evidence::SilentConnections => self.silent_connections,
        })
    }
}

impl Evidence {
    fn describe(self, kind: FaultKind) -> String {
        match self {
            Self::Hits => kind.properties().hits.to_owned(),
            Self::Reason(reason) => format!("attempts failed with {reason}"),
            Self::AmbiguousTimeouts => "operations timed out ambiguously".to_owned(),
            Self::AmbiguousApplied => "ambiguous writes were applied".to_owned(),
            Self::RejectedCredentials => "operations were rejected".to_owned(),
            Self::SilentConnections => "silent connections were closed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::RuleKind;
    use super::super::log::FaultTotals;
    use super::*;

    fn log(kinds: &[(FaultKind, u64)]) -> FaultLog {
        let totals = |(kind, hits): &(FaultKind, u64)| FaultTotals {
            fault: kind.to_string(),
            count: 1,
            duration_s: 1.0,
            hits: *hits,
            kind: *kind,
        };
        FaultLog {
            by_kind: kinds.iter().map(totals).collect(),
            ..FaultLog::default()
        }
    }

    fn observed() -> Observed {
        let labels = (
            "SOCKET_CLOSED_WHILE_IN_FLIGHT".to_owned(),
            "unsafe".to_owned(),
        );
        Observed {
            operations: OperationCounts::default(),
            retries: RetryCounts {
                refusals: [(labels, 3)].into(),
                ..RetryCounts::default()
            },
            ambiguous_applied: 0,
            silent_connections: 2,
        }
    }

    fn missing(coverage: &[Coverage]) -> Vec<String> {
        let missing = coverage.iter().filter(|row| row.missing);
        missing
            .map(|row| format!("{}: {}", row.fault, row.causes))
            .collect()
    }

    #[test]
    fn every_kind_of_fault_must_cause_something() {
        for kind in FaultKind::ALL {
            assert!(!kind.properties().must_cause.is_empty(), "{kind}");
        }
    }

    #[test]
    fn an_effect_that_was_not_seen_is_missing() {
        let kinds = [
            (FaultKind::Rule(RuleKind::CutBeforeReading), 4),
            (FaultKind::FailOver, 0),
            (FaultKind::Rule(RuleKind::SilentNode), 9),
            (FaultKind::Crash, 0),
        ];
        let coverage = observed().coverage(&log(&kinds));
        assert_eq!(coverage.len(), 7);
        assert_eq!(coverage[1].count, 3);
        assert_eq!(
            missing(&coverage),
            [
                "fail-over and recover: documents failed over",
                "silent on one node: operations timed out ambiguously",
                "crash and restart: attempts failed with SOCKET_NOT_AVAILABLE",
            ]
        );
    }

    #[test]
    fn reasons_are_not_expected_of_a_client_that_does_not_count_them() {
        let observed = Observed {
            retries: RetryCounts::default(),
            ..observed()
        };
        let kinds = [
            (FaultKind::Rule(RuleKind::CutBeforeReading), 4),
            (FaultKind::Crash, 0),
        ];
        let coverage = observed.coverage(&log(&kinds));
        assert_eq!(coverage.len(), 1);
        assert!(missing(&coverage).is_empty());
    }

    #[test]
    fn faults_that_were_not_injected_are_not_expected() {
        assert!(observed().coverage(&FaultLog::default()).is_empty());
    }
}
