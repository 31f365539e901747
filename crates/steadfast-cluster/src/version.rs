//! Versions of the server, and the table of their differences.

use std::fmt;
use std::str::FromStr;

use steadfast_wire::{Feature, Status};

/// The version of a real server that a cluster behaves like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerVersion {
    /// 7.1, and 7.2.
    V7_1,
    /// 7.6.
    #[default]
    V7_6,
    /// 8.0.
    V8_0,
}

/// What servers of one version do differently from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionRules {
    /// What a node says of itself.
    pub full_name: &'static str,
    /// Whether GET_CLUSTER_CONFIG may overtake other commands of its connection. Before, it is a
    /// barrier.
    pub reorders_configs: bool,
    /// The answer to UNLOCK_KEY for a document that is not locked.
    pub not_locked: Status,
    /// Whether a subdocument lookup can read a locked document. Before, the answer is LOCKED.
    pub looks_into_locked: bool,
    /// Whether RANGE_SCAN_CREATE and the commands that follow it exist.
    pub has_range_scans: bool,
    /// The features that HELLO does not grant.
    pub lacks: &'static [Feature],
    /// The capabilities that buckets do not have.
    pub lacks_capabilities: &'static [&'static str],
}

impl ServerVersion {
    /// All of them, the oldest first.
    pub const ALL: [Self; 3] = [Self::V7_1, Self::V7_6, Self::V8_0];

    /// Returns the number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V7_1 => "7.1",
            Self::V7_6 => "7.6",
            Self::V8_0 => "8.0",
        }
    }

    pub(crate) const fn rules(self) -> VersionRules {
        match self {
            Self::V7_1 => VersionRules {
                full_name: "7.1.6-0000-enterprise",
                reorders_configs: false,
                not_locked: Status::TemporaryFailure,
                looks_into_locked: false,
                has_range_scans: false,
                lacks: &[
                    Feature::SnappyEverywhere,
                    Feature::SubdocReplicaRead,
                    Feature::GetClusterConfigWithKnownVersion,
                    Feature::DedupeNotMyVbucketClustermap,
                    Feature::ClustermapChangeNotificationBrief,
                    Feature::SubdocAllowsAccessOnMultipleXattrKeys,
                    Feature::SubdocBinaryXattr,
                ],
                lacks_capabilities: &[
                    "nonDedupedHistory",
                    "rangeScan",
                    "subdoc.BinaryXattr",
                    "subdoc.ReplicaRead",
                ],
            },
            Self::V7_6 => VersionRules {
                full_name: "7.6.4-0000-enterprise",
                reorders_configs: true,
                not_locked: Status::NotLocked,
                looks_into_locked: false,
                has_range_scans: true,
                lacks: &[],
                lacks_capabilities: &[],
            },
            Self::V8_0 => VersionRules {
                full_name: "8.0.0-0000-enterprise",
                looks_into_locked: true,
                ..Self::V7_6.rules()
            },
        }
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ServerVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|it| it.name() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no version {text:?}: choose one of {names}")
        })
    }
}
