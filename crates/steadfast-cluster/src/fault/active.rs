//! The rules in force, and the choice of the one that applies to a request.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use steadfast_wire::Opcode;
use tokio_util::sync::CancellationToken;

use super::rule::{Effect, Fault};
use crate::Service;
use crate::rules::{Rule, RuleGuard, Rules};
use crate::topology::NodeId;

/// A request as rules see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IncomingRequest<'a> {
    pub(crate) node: NodeId,
    pub(crate) service: Service,
    /// The command, for key-value.
    pub(crate) opcode: Option<Opcode>,
    /// The document's key without its collection, or the path for HTTP.
    pub(crate) key: &'a [u8],
    /// The bucket of the connection, if it has one.
    pub(crate) bucket: Option<&'a str>,
}

/// The rule that applies to a request.
#[derive(Debug, Clone)]
pub(crate) struct FiredFault {
    pub(crate) effect: Effect,
    /// Cancelled when the rule is removed, which ends a hold.
    pub(crate) removed: CancellationToken,
}

/// The faults of a cluster.
#[derive(Debug)]
pub(crate) struct Faults {
    seed: u64,
    pub(crate) rules: Arc<Rules<ActiveFault>>,
}

/// A fault in force.
#[derive(Debug)]
pub(crate) struct ActiveFault {
    fault: Fault,
    seed: u64,
    random: SmallRng,
    seen: u64,
    fired: u64,
    removed: CancellationToken,
}

/// A rule, and the requests that it has seen and hit.
#[derive(Debug, Serialize)]
pub(crate) struct FaultStatus {
    /// The id that removes the rule.
    id: u64,
    /// The rule as text.
    rule: String,
    /// Requests that met the condition, before count and probability.
    seen: u64,
    /// Requests that the rule hit.
    fired: u64,
    /// The seed that replays its random choices.
    seed: u64,
}

impl Faults {
    /// Creates an empty set. The seed serves rules without a seed of their own.
    pub(crate) fn new(seed: u64) -> Self {
        let rules = Arc::default();
        Self { seed, rules }
    }

    /// Adds a rule behind the others and returns its id.
    pub(crate) fn add(&self, fault: Fault) -> u64 {
        self.rules.add(|id| {
            let seed = fault.condition.seed;
            let seed = seed.unwrap_or_else(|| self.seed.wrapping_add(id));
            tracing::info!(id, seed, rule = %fault, "fault added");
            ActiveFault {
                fault,
                seed,
                random: SmallRng::seed_from_u64(seed),
                seen: 0,
                fired: 0,
                removed: CancellationToken::new(),
            }
        })
    }

    /// Adds a rule that lasts as long as the guard.
    pub(crate) fn guard(&self, fault: Fault) -> FaultGuard {
        FaultGuard(self.rules.guard(self.add(fault)))
    }

    /// Finds the first rule that hits a request. Takes no lock while there are no rules.
    #[inline]
    pub(crate) fn fire(&self, request: &IncomingRequest<'_>) -> Option<FiredFault> {
        if self.rules.any() {
            self.fire_first(request)
        } else {
            None
        }
    }

    #[cold]
    fn fire_first(&self, request: &IncomingRequest<'_>) -> Option<FiredFault> {
        let hits = |rule: &mut ActiveFault| rule.hits(request);
        self.rules.first(hits, |id, rule| {
            tracing::debug!(id, rule = %rule.fault, "fault fired");
            FiredFault {
                effect: rule.fault.effect.clone(),
                removed: rule.removed.clone(),
            }
        })
    }
}

impl ActiveFault {
    fn hits(&mut self, request: &IncomingRequest<'_>) -> bool {
        let condition = &self.fault.condition;
        if !condition.matches(request) {
            return false;
        }
        self.seen += 1;
        if self.seen <= condition.skip || condition.times.is_some_and(|times| self.fired >= times) {
            return false;
        }
        // A random number is drawn for every request that gets here, so that a seed replays.
        if condition
            .probability
            .is_some_and(|probability| !self.random.random_bool(probability))
        {
            return false;
        }
        self.fired += 1;
        true
    }
}

impl Rule for ActiveFault {
    type Status = FaultStatus;

    fn status(&self, id: u64) -> FaultStatus {
        FaultStatus {
            id,
            rule: self.fault.to_string(),
            seen: self.seen,
            fired: self.fired,
            seed: self.seed,
        }
    }

    fn on_removed(&self) {
        self.removed.cancel();
    }
}

/// Keeps a rule in force. Dropping it removes the rule and releases the requests that it holds.
#[derive(Debug)]
#[must_use = "the fault is removed when its guard is dropped"]
pub struct FaultGuard(RuleGuard<ActiveFault>);

impl FaultGuard {
    /// Returns the number of requests that met the condition, before count and probability.
    pub fn seen(&self) -> u64 {
        self.0.status().map_or(0, |status| status.seen)
    }

    /// Returns the number of requests that the rule has hit.
    pub fn fired(&self) -> u64 {
        self.0.status().map_or(0, |status| status.fired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(opcode: Opcode, key: &[u8]) -> IncomingRequest<'_> {
        IncomingRequest {
            node: NodeId::new(0),
            service: Service::KeyValue,
            opcode: Some(opcode),
            key,
            bucket: Some("b"),
        }
    }

    fn fires(faults: &Faults, opcode: Opcode, key: &[u8]) -> bool {
        faults.fire(&request(opcode, key)).is_some()
    }

    #[test]
    fn a_rule_skips_requests_and_runs_out() {
        let faults = Faults::new(1);
        faults.add(
            Fault::on(Opcode::Set)
                .key_prefix("u:")
                .skip(2)
                .times(3)
                .hold(),
        );
        let hits: Vec<bool> = (0..8)
            .map(|_| fires(&faults, Opcode::Set, b"u:1"))
            .collect();
        assert_eq!(hits, [false, false, true, true, true, false, false, false]);
        assert!(!fires(&faults, Opcode::Set, b"v:1"));
        let status = &faults.rules.list()[0];
        assert_eq!((status.seen, status.fired), (8, 3));
    }
}
