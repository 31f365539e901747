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
enum Evidence {
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

const CUT: &str = "SOCKET_CLOSED_WHILE_IN_FLIGHT";

/// Returns what a fault of this kind must cause.
fn must_cause(kind: FaultKind) -> &'static [Evidence] {
    use Evidence::{
        AmbiguousApplied, AmbiguousTimeouts, Hits, Reason, RejectedCredentials, SilentConnections,
    };
    match kind {
        FaultKind::TemporaryFailures => &[Hits, Reason("KV_TEMPORARY_FAILURE")],
        FaultKind::LockedDocuments => &[Reason("KV_LOCKED")],
        FaultKind::CutBeforeReading | FaultKind::CutBeforeApplying | FaultKind::GarbledAnswers => {
            &[Hits, Reason(CUT)]
        }
        FaultKind::CutAfterApplying | FaultKind::CutMidResponse => &[Hits, AmbiguousApplied],
        FaultKind::SlowNode
        | FaultKind::StalledNode
        | FaultKind::FailOver
        | FaultKind::HeldReplication
        | FaultKind::DroppedBucket
        | FaultKind::HalfStatements
        | FaultKind::LaggingFailOver
        | FaultKind::HeldCommands
        | FaultKind::RotatedCertificate => &[Hits],
        FaultKind::DroppedCollection => &[Hits, Reason("KV_COLLECTION_OUTDATED")],
        FaultKind::LateAnswers | FaultKind::UnmatchedAnswers => &[Hits, AmbiguousTimeouts],
        FaultKind::SilentNode => &[Hits, SilentConnections, AmbiguousTimeouts],
        FaultKind::MutedNode => &[Hits, AmbiguousTimeouts, AmbiguousApplied],
        FaultKind::RebalanceIn | FaultKind::RebalanceOut => &[Reason("KV_NOT_MY_VBUCKET")],
        FaultKind::Crash => &[Reason("SOCKET_NOT_AVAILABLE")],
        FaultKind::RotatedPassword => &[RejectedCredentials],
    }
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
            for evidence in must_cause(totals.kind) {
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
            Self::Hits => match kind {
                FaultKind::FailOver => "documents failed over",
                FaultKind::HeldReplication => "durable writes waited for replicas",
                FaultKind::DroppedBucket => "operations met a missing bucket",
                FaultKind::DroppedCollection => "operations met a missing collection",
                FaultKind::HalfStatements => "statements were applied in part",
                FaultKind::LaggingFailOver => "writes without durability were lost, as they may be",
                FaultKind::RotatedCertificate => "connections met the new certificate",
                _ => "requests hit",
            }
            .to_owned(),
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
        let labels = (CUT.to_owned(), "unsafe".to_owned());
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
            assert!(!must_cause(kind).is_empty(), "{kind}");
        }
    }

    #[test]
    fn an_effect_that_was_not_seen_is_missing() {
        let kinds = [
            (FaultKind::CutBeforeReading, 4),
            (FaultKind::FailOver, 0),
            (FaultKind::SilentNode, 9),
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
        let kinds = [(FaultKind::CutBeforeReading, 4), (FaultKind::Crash, 0)];
        let coverage = observed.coverage(&log(&kinds));
        assert_eq!(coverage.len(), 1);
        assert!(missing(&coverage).is_empty());
    }

    #[test]
    fn faults_that_were_not_injected_are_not_expected() {
        assert!(observed().coverage(&FaultLog::default()).is_empty());
    }
}
