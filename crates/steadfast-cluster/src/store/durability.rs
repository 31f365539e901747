//! Durability requirements of writes.
//!
//! The chain of a vbucket is its active copy and the configured replicas, whether they
//! exist or not. A majority is more than half of that chain.
//!
//! A chain with too few copies in the map makes durability *impossible* at once. A
//! chain whose copies exist but do not respond leaves the write *pending*. Its timeout
//! makes it *ambiguous*.

use std::time::Duration;

use steadfast_wire::Status;
use steadfast_wire::frame_info::{Durability, DurabilityLevel};

use crate::topology::NodeId;
use crate::topology::node_set::NodeSet;

/// The most replicas with which a bucket can still do durable writes.
pub(crate) const MAX_DURABLE_REPLICAS: usize = 2;
/// How long a durable write waits when the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A level, and how long to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurabilityRequirement {
    /// What to wait for.
    pub level: DurabilityLevel,
    /// How long, before the outcome is ambiguous.
    pub timeout: Duration,
}

impl DurabilityRequirement {
    /// Reads the requirement of a request. Rejects levels that the protocol does not have.
    pub(crate) fn from_wire(wire: Durability) -> Result<Self, Status> {
        if let DurabilityLevel::Unknown(_) = wire.level {
            return Err(Status::DurabilityInvalidLevel);
        }
        let timeout = wire.timeout.map_or(DEFAULT_TIMEOUT, |timeout| {
            Duration::from_millis(timeout.as_millis().into())
        });
        Ok(Self {
            level: wire.level,
            timeout,
        })
    }

    /// The requirement, raised to what a bucket demands.
    pub(crate) fn at_least(wanted: Option<Self>, least: Option<DurabilityLevel>) -> Option<Self> {
        match (wanted, least) {
            (wanted, None) => wanted,
            (None, Some(level)) => Some(Self {
                level,
                timeout: DEFAULT_TIMEOUT,
            }),
            (Some(wanted), Some(least)) if wanted.level.code() < least.code() => Some(Self {
                level: least,
                ..wanted
            }),
            (wanted, Some(_)) => wanted,
        }
    }
}

/// The nodes that hold a vbucket, and which of them are slow to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DurabilityCheck<'a> {
    /// The node of the active copy.
    pub active: NodeId,
    /// The nodes of the replicas; a hole is a replica that the map has no place for.
    pub replicas: &'a [Option<NodeId>],
    /// Nodes that mutations do not reach at the moment.
    pub stalled: NodeSet,
    /// Nodes that do not write to disk at the moment.
    pub unpersisted: NodeSet,
}

impl DurabilityCheck<'_> {
    /// Returns whether the level is reached; an error if waiting cannot help.
    pub(crate) fn is_met(&self, level: DurabilityLevel) -> Result<bool, Status> {
        if self.replicas.len() > MAX_DURABLE_REPLICAS {
            return Err(Status::DurabilityImpossible);
        }
        let majority = self.replicas.len().div_ceil(2) + 1;
        let present = || self.replicas.iter().flatten().copied();
        if 1 + present().count() < majority {
            return Err(Status::DurabilityImpossible);
        }
        let reached = |node: &NodeId| !self.stalled.contains(*node);
        let on_disk = |node: &NodeId| !self.unpersisted.contains(*node);
        let active_on_disk = on_disk(&self.active);
        let in_memory = 1 + present().filter(reached).count();
        Ok(match level {
            DurabilityLevel::Unknown(_) => return Err(Status::DurabilityInvalidLevel),
            DurabilityLevel::Majority => in_memory >= majority,
            DurabilityLevel::MajorityAndPersistToActive => in_memory >= majority && active_on_disk,
            DurabilityLevel::PersistToMajority => {
                let replicas_on_disk = present().filter(reached).filter(on_disk).count();
                usize::from(active_on_disk) + replicas_on_disk >= majority
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId::new(0);
    const B: NodeId = NodeId::new(1);
    const C: NodeId = NodeId::new(2);

    #[test]
    fn levels_are_one_to_three() {
        let level = |code| {
            let level = DurabilityLevel::from_code(code);
            let wire = Durability {
                level,
                timeout: None,
            };
            DurabilityRequirement::from_wire(wire).map(|requirement| requirement.level)
        };
        assert_eq!(level(0), Err(Status::DurabilityInvalidLevel));
        assert_eq!(level(1), Ok(DurabilityLevel::Majority));
        assert_eq!(level(2), Ok(DurabilityLevel::MajorityAndPersistToActive));
        assert_eq!(level(3), Ok(DurabilityLevel::PersistToMajority));
        assert_eq!(level(4), Err(Status::DurabilityInvalidLevel));
    }

    #[test]
    fn a_majority_of_the_configured_chain_has_the_write_where_it_was_asked_for() {
        use DurabilityLevel::{Majority, MajorityAndPersistToActive, PersistToMajority};
        const IMPOSSIBLE: Result<bool, Status> = Err(Status::DurabilityImpossible);
        let none = NodeSet::EMPTY;
        let (a, b) = (none.with(A), none.with(B));
        for (replicas, stalled, unpersisted, level, expected) in [
            (&[][..], none, none, PersistToMajority, Ok(true)),
            (&[Some(B)], none, none, Majority, Ok(true)),
            (&[None], none, none, Majority, IMPOSSIBLE),
            (&[Some(B), None], none, none, Majority, Ok(true)),
            (&[None, None], none, none, Majority, IMPOSSIBLE),
            (&[Some(B), Some(C), None], none, none, Majority, IMPOSSIBLE),
            // A write waits for a stalled replica unless the others suffice.
            (&[Some(B)], b, none, Majority, Ok(false)),
            (&[Some(B), Some(C)], b, none, Majority, Ok(true)),
            (&[Some(B)], none, a, Majority, Ok(true)),
            (&[Some(B)], none, a, MajorityAndPersistToActive, Ok(false)),
            (&[Some(B)], none, a, PersistToMajority, Ok(false)),
            (&[Some(B)], none, b, MajorityAndPersistToActive, Ok(true)),
            (&[Some(B)], none, b, PersistToMajority, Ok(false)),
        ] {
            let check = DurabilityCheck {
                active: A,
                replicas,
                stalled,
                unpersisted,
            };
            assert_eq!(check.is_met(level), expected, "{check:?} {level}");
        }
    }
}
