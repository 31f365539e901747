//! Kinds of faults that a run injects.

use std::fmt;
use std::time::Duration;

use super::coverage::Evidence::{
    self, AmbiguousApplied, AmbiguousTimeouts, Hits, Reason, RejectedCredentials, SilentConnections,
};

/// How much longer than the timeout a fault lasts that must outlast it.
const MARGIN: Duration = Duration::from_millis(500);

const CUT: Evidence = Reason("SOCKET_CLOSED_WHILE_IN_FLIGHT");

/// A fault that lasts for a while: rules of the cluster, or a topology change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    Rule(RuleKind),
    /// A partition between nodes: mutations do not reach the replicas on a node, then on all.
    HeldReplication,
    Side(SideKind),
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

/// Rules of the cluster, which can hold while nodes come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleKind {
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
}

/// A fault of a bucket or a collection beside the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SideKind {
    /// A bucket is dropped and created again.
    DroppedBucket,
    /// A collection is dropped and created again.
    DroppedCollection,
    /// Statements with several rows fail after the first row.
    HalfStatements,
    /// A node is failed over while the replicas of a bucket lag behind.
    LaggingFailOver,
    /// A node holds a read, as if its vbucket were pending, and durable writes, as if a replica were
    /// late: more than it works on, of one connection.
    HeldCommands,
}

/// What a kind of fault is called, needs and must cause.
#[derive(Clone, Copy)]
pub(super) struct FaultProperties {
    /// The words of `steadfast fault` and `steadfast topology`.
    pub(super) name: &'static str,
    /// What it hits.
    pub(super) hits: &'static str,
    pub(super) must_cause: &'static [Evidence],
    /// Its share of the time, relative to the others.
    pub(super) weight: u32,
    /// The number of nodes that it needs.
    pub(super) min_nodes: usize,
    /// The time after which it has its effect, with this timeout of an operation, if it must last
    /// so long: a cut of the connection by the next fault would come first.
    pub(super) outlasts: Option<fn(Duration) -> Duration>,
}

/// A fault that needs nothing special.
const fn usual(name: &'static str, must_cause: &'static [Evidence]) -> FaultProperties {
    FaultProperties {
        name,
        hits: "requests hit",
        must_cause,
        weight: 1,
        min_nodes: 1,
        outlasts: None,
    }
}

impl FaultProperties {
    const fn hitting(self, hits: &'static str) -> Self {
        Self { hits, ..self }
    }

    const fn weighing(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    const fn with_two_nodes(self) -> Self {
        Self {
            min_nodes: 2,
            ..self
        }
    }

    const fn outlasting(self, outlasts: fn(Duration) -> Duration) -> Self {
        let outlasts = Some(outlasts);
        Self { outlasts, ..self }
    }
}

impl FaultKind {
    pub(crate) const ALL: [Self; 25] = [
        Self::Rule(RuleKind::TemporaryFailures),
        Self::Rule(RuleKind::LockedDocuments),
        Self::Rule(RuleKind::CutBeforeReading),
        Self::Rule(RuleKind::CutBeforeApplying),
        Self::Rule(RuleKind::CutAfterApplying),
        Self::Rule(RuleKind::CutMidResponse),
        Self::Rule(RuleKind::SlowNode),
        Self::Rule(RuleKind::LateAnswers),
        Self::Rule(RuleKind::GarbledAnswers),
        Self::Rule(RuleKind::UnmatchedAnswers),
        Self::Rule(RuleKind::StalledNode),
        Self::Rule(RuleKind::SilentNode),
        Self::Rule(RuleKind::MutedNode),
        Self::HeldReplication,
        Self::Side(SideKind::DroppedBucket),
        Self::Side(SideKind::DroppedCollection),
        Self::Side(SideKind::HalfStatements),
        Self::Side(SideKind::LaggingFailOver),
        Self::Side(SideKind::HeldCommands),
        Self::RebalanceIn,
        Self::RebalanceOut,
        Self::FailOver,
        Self::Crash,
        Self::RotatedPassword,
        Self::RotatedCertificate,
    ];

    pub(super) const fn properties(self) -> FaultProperties {
        match self {
            Self::Rule(rule) => rule.properties(),
            Self::HeldReplication => usual("hold replication", &[Hits])
                .hitting("durable writes waited for replicas")
                .with_two_nodes(),
            Self::Side(side) => side.properties(),
            Self::RebalanceIn => usual("rebalance-in", &[Reason("KV_NOT_MY_VBUCKET")]).weighing(3),
            Self::RebalanceOut => usual("rebalance-out", &[Reason("KV_NOT_MY_VBUCKET")])
                .weighing(3)
                .with_two_nodes(),
            Self::FailOver => usual("fail-over and recover", &[Hits])
                .hitting("documents failed over")
                .weighing(3)
                .with_two_nodes(),
            Self::Crash => {
                usual("crash and restart", &[Reason("SOCKET_NOT_AVAILABLE")]).weighing(2)
            }
            Self::RotatedPassword => {
                usual("rotate the password", &[RejectedCredentials]).weighing(2)
            }
            Self::RotatedCertificate => usual("rotate the certificate", &[Hits])
                .hitting("connections met the new certificate"),
        }
    }

    /// Returns how long it must last to have its effect, if it must last longer than others.
    pub(super) fn outlasts(self, timeout: Duration) -> Option<Duration> {
        self.properties().outlasts.map(|outlasts| outlasts(timeout))
    }

    /// Returns the rules that hold while it lasts, if it consists of some.
    pub(super) const fn rule(self) -> Option<RuleKind> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::HeldReplication
            | Self::Side(_)
            | Self::RebalanceIn
            | Self::RebalanceOut
            | Self::FailOver
            | Self::Crash
            | Self::RotatedPassword
            | Self::RotatedCertificate => None,
        }
    }

    /// Returns whether it measures how long operations take, which other faults would change.
    pub(super) fn measures(self) -> bool {
        self == Self::Side(SideKind::HeldCommands)
    }

    /// Returns whether it needs connections with TLS.
    pub(super) fn needs_tls(self) -> bool {
        self == Self::RotatedCertificate
    }
}

impl RuleKind {
    const fn properties(self) -> FaultProperties {
        match self {
            Self::TemporaryFailures => {
                usual("answer ETMPFAIL", &[Hits, Reason("KV_TEMPORARY_FAILURE")])
            }
            Self::LockedDocuments => usual("lock documents", &[Reason("KV_LOCKED")]),
            Self::CutBeforeReading => usual("cut-before-reading", &[Hits, CUT]),
            Self::CutBeforeApplying => usual("cut-before-applying", &[Hits, CUT]),
            Self::CutAfterApplying => usual("cut-after-applying", &[Hits, AmbiguousApplied]),
            Self::CutMidResponse => usual("cut-mid-response", &[Hits, AmbiguousApplied]),
            Self::SlowNode => usual("delay on one node", &[Hits]).weighing(2),
            Self::LateAnswers => usual("delay-answer", &[Hits, AmbiguousTimeouts])
                .outlasting(|timeout| timeout + MARGIN),
            Self::GarbledAnswers => usual("garble the magic", &[Hits, CUT]),
            Self::UnmatchedAnswers => usual("garble the opaque", &[Hits, AmbiguousTimeouts]),
            Self::StalledNode => usual("hold on one node", &[Hits]),
            Self::SilentNode => usual(
                "silent on one node",
                &[Hits, SilentConnections, AmbiguousTimeouts],
            )
            .outlasting(|timeout| timeout + MARGIN),
            Self::MutedNode => usual(
                "mute on one node",
                &[Hits, AmbiguousTimeouts, AmbiguousApplied],
            )
            .outlasting(|timeout| timeout + MARGIN),
        }
    }
}

impl SideKind {
    const fn properties(self) -> FaultProperties {
        match self {
            Self::DroppedBucket => usual("drop and create a bucket", &[Hits])
                .hitting("operations met a missing bucket"),
            Self::DroppedCollection => usual(
                "drop and create a collection",
                &[Hits, Reason("KV_COLLECTION_OUTDATED")],
            )
            .hitting("operations met a missing collection"),
            Self::HalfStatements => usual("fail statements half-way", &[Hits])
                .hitting("statements were applied in part"),
            Self::LaggingFailOver => usual("fail-over with lagging replicas", &[Hits])
                .hitting("writes without durability were lost, as they may be")
                .weighing(3)
                .with_two_nodes(),
            Self::HeldCommands => usual("hold durable writes and a read", &[Hits])
                .outlasting(|timeout| timeout * 3 / 2 + MARGIN),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.properties().name)
    }
}
