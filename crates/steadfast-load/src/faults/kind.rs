//! Kinds of faults that a run injects.

use std::fmt;
use std::time::Duration;

use steadfast_cluster::fault::{Effect, Garble};

/// How much longer than the timeout a fault lasts that must outlast it.
const MARGIN: Duration = Duration::from_millis(500);

/// A fault that lasts for a while: rules of the cluster, or a topology change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// Some requests are answered with a temporary failure.
    TemporaryFailures,
    /// Workers lock documents that others write.
    LockedDocuments,
    CutBeforeReading,
    CutBeforeApplying,
    CutAfterApplying,
    CutMidResponse,
    /// Every request to one node is delayed.
    SlowNode,
    /// Requests are applied, and answered after their timeout.
    LateAnswers,
    /// Requests are applied, and their answers are not valid frames.
    GarbledAnswers,
    /// Requests are applied, and their answers match no request.
    UnmatchedAnswers,
    /// Requests to one node are held, and applied when the fault ends.
    StalledNode,
    /// A partition between the client and a node: nothing arrives, in either direction.
    SilentNode,
    /// A partition in one direction: a node applies requests, and no answer arrives.
    MutedNode,
    /// A partition between nodes: mutations do not reach the replicas on a node, then on all.
    HeldReplication,
    /// A bucket beside the workload is dropped and created again.
    DroppedBucket,
    /// A collection beside the workload is dropped and created again.
    DroppedCollection,
    /// Statements with several rows fail after the first row.
    HalfStatements,
    /// A node is failed over while the replicas of a bucket lag behind.
    LaggingFailOver,
    /// A node holds a read, as if its vbucket were pending, and durable writes, as if a replica were
    /// late: more than it works on, of one connection.
    HeldCommands,
    RebalanceIn,
    RebalanceOut,
    /// A node is failed over, recovers empty and gets its share back.
    FailOver,
    /// A node crashes and restarts with its data.
    Crash,
    /// The password changes, connections are cut, and the client learns it later.
    RotatedPassword,
    /// The nodes get a new certificate of the same authority, and connections with the old one
    /// are cut.
    RotatedCertificate,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 25] = [
        Self::TemporaryFailures,
        Self::LockedDocuments,
        Self::CutBeforeReading,
        Self::CutBeforeApplying,
        Self::CutAfterApplying,
        Self::CutMidResponse,
        Self::SlowNode,
        Self::LateAnswers,
        Self::GarbledAnswers,
        Self::UnmatchedAnswers,
        Self::StalledNode,
        Self::SilentNode,
        Self::MutedNode,
        Self::HeldReplication,
        Self::DroppedBucket,
        Self::DroppedCollection,
        Self::HalfStatements,
        Self::LaggingFailOver,
        Self::HeldCommands,
        Self::RebalanceIn,
        Self::RebalanceOut,
        Self::FailOver,
        Self::Crash,
        Self::RotatedPassword,
        Self::RotatedCertificate,
    ];

    /// Returns whether it consists of rules, which can hold while nodes come and go.
    pub(super) const fn is_rule(self) -> bool {
        !matches!(
            self,
            Self::HeldReplication
                | Self::DroppedBucket
                | Self::DroppedCollection
                | Self::HalfStatements
                | Self::LaggingFailOver
                | Self::HeldCommands
                | Self::RebalanceIn
                | Self::RebalanceOut
                | Self::FailOver
                | Self::Crash
                | Self::RotatedPassword
                | Self::RotatedCertificate
        )
    }

    /// Returns how long it must last to have its effect, with this timeout of an operation, if it
    /// must last longer: a cut of the connection by the next fault would come first.
    pub(super) fn outlasts(self, timeout: Duration) -> Option<Duration> {
        match self {
            Self::LateAnswers | Self::SilentNode | Self::MutedNode => Some(timeout + MARGIN),
            Self::HeldCommands => Some(timeout * 3 / 2 + MARGIN),
            _ => None,
        }
    }

    /// Returns whether it measures how long operations take, which other faults would change.
    pub(super) const fn measures(self) -> bool {
        matches!(self, Self::HeldCommands)
    }

    /// Returns whether it concerns buckets and collections beside the workload.
    pub(super) const fn is_beside(self) -> bool {
        matches!(
            self,
            Self::DroppedBucket
                | Self::DroppedCollection
                | Self::HalfStatements
                | Self::LaggingFailOver
                | Self::HeldCommands
        )
    }

    /// Returns whether it needs connections with TLS.
    pub(super) const fn needs_tls(self) -> bool {
        matches!(self, Self::RotatedCertificate)
    }

    /// Returns the number of nodes that it needs.
    pub(super) const fn min_nodes(self) -> usize {
        match self {
            Self::FailOver | Self::RebalanceOut | Self::HeldReplication | Self::LaggingFailOver => {
                2
            }
            _ => 1,
        }
    }

    /// Returns its share of the time, relative to the others.
    pub(super) const fn weight(self) -> u32 {
        match self {
            Self::RebalanceIn | Self::RebalanceOut | Self::FailOver | Self::LaggingFailOver => 3,
            Self::Crash | Self::SlowNode | Self::RotatedPassword => 2,
            _ => 1,
        }
    }

    /// Returns the effect on single requests, and how often each command suffers it: late and
    /// unmatched answers only once, because each keeps a worker waiting for the whole timeout.
    pub(super) fn single_effect(self, timeout: Duration) -> Option<(Effect, u32)> {
        Some(match self {
            Self::CutBeforeReading => (Effect::CutBeforeReading, 4),
            Self::CutBeforeApplying => (Effect::CutBeforeApplying, 4),
            Self::CutAfterApplying => (Effect::CutAfterApplying, 4),
            Self::CutMidResponse => (Effect::CutMidResponse, 4),
            Self::LateAnswers => (Effect::DelayAnswer(timeout + Duration::from_millis(200)), 1),
            Self::GarbledAnswers => (Effect::Garble(Garble::Magic), 2),
            Self::UnmatchedAnswers => (Effect::Garble(Garble::Opaque), 1),
            _ => return None,
        })
    }

    /// Returns whether its rules hit statements, too.
    pub(super) const fn hits_statements(self) -> bool {
        // A garbled body is a wrong value, which no client can notice.
        !matches!(self, Self::GarbledAnswers | Self::UnmatchedAnswers)
    }
}

/// The words of `steadfast fault` and `steadfast topology`.
impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TemporaryFailures => "answer ETMPFAIL",
            Self::LockedDocuments => "lock documents",
            Self::CutBeforeReading => "cut-before-reading",
            Self::CutBeforeApplying => "cut-before-applying",
            Self::CutAfterApplying => "cut-after-applying",
            Self::CutMidResponse => "cut-mid-response",
            Self::SlowNode => "delay on one node",
            Self::LateAnswers => "delay-answer",
            Self::GarbledAnswers => "garble the magic",
            Self::UnmatchedAnswers => "garble the opaque",
            Self::StalledNode => "hold on one node",
            Self::SilentNode => "silent on one node",
            Self::MutedNode => "mute on one node",
            Self::HeldReplication => "hold replication",
            Self::DroppedBucket => "drop and create a bucket",
            Self::DroppedCollection => "drop and create a collection",
            Self::HalfStatements => "fail statements half-way",
            Self::LaggingFailOver => "fail-over with lagging replicas",
            Self::HeldCommands => "hold durable writes and a read",
            Self::RebalanceIn => "rebalance-in",
            Self::RebalanceOut => "rebalance-out",
            Self::FailOver => "fail-over and recover",
            Self::Crash => "crash and restart",
            Self::RotatedPassword => "rotate the password",
            Self::RotatedCertificate => "rotate the certificate",
        })
    }
}
