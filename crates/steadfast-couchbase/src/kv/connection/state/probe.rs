//! The probe of a connection whose responses are overdue, and what may hold it back.

use std::time::Instant;

use steadfast_wire::hello::FeatureSet;
use steadfast_wire::{CollectionId, DocumentKey, Feature, FrameBuilder, Opcode};

use super::{PendingOperation, Reply, State};

/// A vbucket that no node has, so that a server answers the probe without looking for a
/// document.
const NO_VBUCKET: u16 = u16::MAX;

/// The key of the probe.
const PROBE_KEY: &str = "steadfast";

impl State {
    /// Adds a probe, unless the last one has no response yet.
    pub(in crate::kv::connection) fn push_probe(&mut self, features: FeatureSet) {
        if self.probe().is_some() {
            return;
        }
        let pushed = match features.contains(Feature::UnorderedExecution) {
            true => self.push(Opcode::GetReplica, None, Reply::Probe, |opaque, out| {
                let id = PROBE_KEY.as_bytes();
                let key = match features.contains(Feature::Collections) {
                    true => DocumentKey::new(CollectionId::DEFAULT, id),
                    false => DocumentKey::without_collection(id),
                };
                let probe = FrameBuilder::request(Opcode::GetReplica).opaque(opaque);
                probe.vbucket(NO_VBUCKET).key(key).encode(out)
            }),
            false => self.push(Opcode::Noop, None, Reply::Probe, |opaque, out| {
                let probe = FrameBuilder::request(Opcode::Noop).opaque(opaque);
                probe.encode(out)
            }),
        };
        // Only a connection without a free opaque refuses, and its silence is judged
        // without a probe.
        if let Err(error) = pushed {
            tracing::debug!(%error, "no probe");
        }
    }

    fn probe(&self) -> Option<&PendingOperation> {
        let mut operations = self.operations.iter().map(|(_, operation)| operation);
        operations.find(|operation| matches!(operation.reply, Reply::Probe))
    }

    /// Returns until when operations ahead of the probe may hold it back, on a server that
    /// works on this number of commands of a connection at a time: their latest deadline.
    pub(in crate::kv::connection) fn held_back_until(&self, concurrent: usize) -> Option<Instant> {
        let probe = self.probe()?.start;
        let operations = self.operations.iter().map(|(_, operation)| operation);
        let mut ahead: Vec<&PendingOperation> = operations
            .filter(|it| it.start < probe && !matches!(it.reply, Reply::Done(_)))
            .collect();
        // A barrier waits for all before it, and the probe for the barrier.
        let worked_on = match ahead.iter().any(|it| is_barrier(it.opcode)) {
            true if concurrent > 1 => ahead.len(),
            _ if ahead.len() < concurrent => return None,
            _ => concurrent,
        };
        ahead.sort_unstable_by_key(|it| it.start);
        let worked_on = ahead.into_iter().take(worked_on);
        worked_on.filter_map(PendingOperation::unexpired).max()
    }

    /// The latest deadline that has not passed of an operation without a response.
    pub(in crate::kv::connection) fn latest_deadline(&self) -> Option<Instant> {
        let operations = self.operations.iter().map(|(_, operation)| operation);
        operations.filter_map(PendingOperation::unexpired).max()
    }
}

impl PendingOperation {
    /// Its deadline, unless that has passed.
    fn unexpired(&self) -> Option<Instant> {
        match self.reply {
            Reply::Awaited(_) | Reply::Unwanted { overdue: false } => self.deadline,
            Reply::Unwanted { overdue: true } | Reply::Late(_) | Reply::Done(_) | Reply::Probe => {
                None
            }
        }
    }
}

/// Returns whether a command of ours waits for all before it on its connection, and holds
/// back all after it, also with unordered execution.
fn is_barrier(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Noop
            | Opcode::GetClusterConfig
            | Opcode::GetCollectionId
            | Opcode::GetCollectionsManifest
            | Opcode::GetMeta
            | Opcode::Observe
            | Opcode::ObserveSeqno
    )
}
