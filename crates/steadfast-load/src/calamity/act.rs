//! What can befall a cluster.

use std::fmt;

use serde::Serialize;
use steadfast_cluster::fault::Effect;

/// Something that befalls the cluster for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// One of so many requests is told "not now".
    TemporaryFailures,
    /// Documents are locked, and written by others meanwhile.
    LockedDocuments,
    /// Connections are cut, at this stage of a request.
    Cut(Cut),
    /// A node takes its time for everything.
    SlowNode,
    /// Requests are applied, and answered when nobody waits any longer.
    LateAnswers,
    /// A node joins.
    RebalanceIn,
    /// A node leaves.
    RebalanceOut,
    /// A node is failed over, comes back empty and gets its share again.
    FailOver,
    /// A node crashes and comes back with its data.
    Crash,
    /// The password changes, connections are cut, and the client hears of it later.
    CredentialRotated,
}

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// As if the request had not been read.
    BeforeReading,
    /// After reading it, before applying it.
    BeforeApplying,
    /// After applying it, before answering.
    AfterApplying,
    /// In the middle of the answer.
    MidResponse,
}

impl Cut {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::BeforeReading,
        Self::BeforeApplying,
        Self::AfterApplying,
        Self::MidResponse,
    ];

    /// What the cluster does.
    pub(super) fn effect(self) -> Effect {
        match self {
            Self::BeforeReading => Effect::CutBeforeReading,
            Self::BeforeApplying => Effect::CutBeforeApplying,
            Self::AfterApplying => Effect::CutAfterApplying,
            Self::MidResponse => Effect::CutMidResponse,
        }
    }
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::TemporaryFailures,
        Self::LockedDocuments,
        Self::Cut(Cut::BeforeReading),
        Self::Cut(Cut::BeforeApplying),
        Self::Cut(Cut::AfterApplying),
        Self::Cut(Cut::MidResponse),
        Self::SlowNode,
        Self::LateAnswers,
        Self::RebalanceIn,
        Self::RebalanceOut,
        Self::FailOver,
        Self::Crash,
        Self::CredentialRotated,
    ];

    /// Whether it is a rule that can hold while nodes come and go.
    pub(super) const fn is_rule(self) -> bool {
        match self {
            Self::TemporaryFailures
            | Self::LockedDocuments
            | Self::Cut(_)
            | Self::SlowNode
            | Self::LateAnswers => true,
            Self::RebalanceIn
            | Self::RebalanceOut
            | Self::FailOver
            | Self::Crash
            | Self::CredentialRotated => false,
        }
    }

    /// How many nodes it takes.
    pub(super) const fn least_nodes(self) -> usize {
        match self {
            Self::FailOver | Self::RebalanceOut => 2,
            _ => 1,
        }
    }

    /// How much of the time it gets, compared to others.
    pub(super) const fn weight(self) -> u32 {
        match self {
            Self::RebalanceIn | Self::RebalanceOut | Self::FailOver => 3,
            Self::Crash | Self::SlowNode | Self::CredentialRotated => 2,
            Self::TemporaryFailures | Self::LockedDocuments | Self::Cut(_) | Self::LateAnswers => 1,
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TemporaryFailures => "temporary failures",
            Self::LockedDocuments => "locked documents",
            Self::Cut(Cut::BeforeReading) => "connections cut before reading",
            Self::Cut(Cut::BeforeApplying) => "connections cut before applying",
            Self::Cut(Cut::AfterApplying) => "connections cut after applying",
            Self::Cut(Cut::MidResponse) => "connections cut mid-response",
            Self::SlowNode => "a slow node",
            Self::LateAnswers => "late answers",
            Self::RebalanceIn => "rebalancing a node in",
            Self::RebalanceOut => "rebalancing a node out",
            Self::FailOver => "failing a node over",
            Self::Crash => "a node crashed",
            Self::CredentialRotated => "the credential is rotated",
        })
    }
}
