//! The rules in force, and who wins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use steadfast_wire::Opcode;
use tokio_util::sync::CancellationToken;

use super::rule::{Fault, Verdict};
use crate::service::Service;
use crate::topology::NodeId;

/// A request, as far as rules look at it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The node that received it.
    pub node: NodeId,
    /// The service.
    pub service: Service,
    /// The command, for key-value.
    pub opcode: Option<Opcode>,
    /// The document's key without its collection, or the path for HTTP.
    pub key: &'a [u8],
    /// The bucket of the connection, if it has one.
    pub bucket: Option<&'a str>,
}

/// What the first rule that matched says.
#[derive(Debug, Clone)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// Is cancelled when the rule goes away, which ends a hold.
    pub released: CancellationToken,
}

/// All rules of a cluster.
#[derive(Debug)]
pub struct Faults {
    /// Lets a request that no rule can concern pass without the lock.
    count: AtomicUsize,
    seed: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Rule>,
    next_id: u64,
}

#[derive(Debug)]
struct Rule {
    id: u64,
    fault: Fault,
    seed: u64,
    random: SmallRng,
    seen: u64,
    fired: u64,
    released: CancellationToken,
}

/// What became of a rule so far.
#[derive(Debug, Clone, Serialize)]
pub struct FaultStatus {
    /// Names the rule.
    pub id: u64,
    /// What it says.
    pub rule: String,
    /// How many requests looked like it, whatever count and chance said.
    pub seen: u64,
    /// How many it hit.
    pub fired: u64,
    /// The seed that replays its chances.
    pub seed: u64,
}

impl Faults {
    /// No rules yet. The seed decides chances for rules that bring none of their own.
    pub fn new(seed: u64) -> Self {
        Self {
            count: AtomicUsize::new(0),
            seed,
            inner: Mutex::default(),
        }
    }

    /// Adds a rule behind those that are there, until it is removed by its id.
    pub fn add(&self, fault: Fault) -> u64 {
        let mut inner = self.inner.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        let seed = fault
            .when
            .seed
            .unwrap_or_else(|| self.seed.wrapping_add(id));
        tracing::info!(id, seed, rule = %fault, "fault added");
        inner.rules.push(Rule {
            id,
            fault,
            seed,
            random: SmallRng::seed_from_u64(seed),
            seen: 0,
            fired: 0,
            released: CancellationToken::new(),
        });
        self.count.store(inner.rules.len(), Ordering::Release);
        id
    }

    /// Adds a rule for as long as the guard lives.
    pub fn guard(self: &Arc<Self>, fault: Fault) -> FaultGuard {
        FaultGuard {
            faults: self.clone(),
            id: self.add(fault),
        }
    }

    /// Removes a rule and lets go of what it holds; false if there was none.
    pub fn remove(&self, id: u64) -> bool {
        let mut inner = self.inner.lock();
        let Some(at) = inner.rules.iter().position(|rule| rule.id == id) else {
            return false;
        };
        let rule = inner.rules.remove(at);
        self.count.store(inner.rules.len(), Ordering::Release);
        rule.released.cancel();
        true
    }

    /// Removes all rules.
    pub fn clear(&self) {
        let mut inner = self.inner.lock();
        self.count.store(0, Ordering::Release);
        inner
            .rules
            .drain(..)
            .for_each(|rule| rule.released.cancel());
    }

    /// What became of each rule so far.
    pub fn list(&self) -> Vec<FaultStatus> {
        self.inner.lock().rules.iter().map(Rule::status).collect()
    }

    /// What became of one rule so far.
    pub fn status(&self, id: u64) -> Option<FaultStatus> {
        self.inner
            .lock()
            .rules
            .iter()
            .find(|rule| rule.id == id)
            .map(Rule::status)
    }

    /// Asks the rules about a request. No rules, no lock.
    #[inline]
    pub fn decide(&self, event: &Event<'_>) -> Option<Decision> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.decide_by_rules(event)
    }

    /// Whether there is any rule at all.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    #[cold]
    fn decide_by_rules(&self, event: &Event<'_>) -> Option<Decision> {
        let mut inner = self.inner.lock();
        let rule = inner
            .rules
            .iter_mut()
            .find_map(|rule| rule.hits(event).then_some(rule))?;
        tracing::debug!(id = rule.id, rule = %rule.fault, "fault fired");
        Some(Decision {
            verdict: rule.fault.verdict.clone(),
            released: rule.released.clone(),
        })
    }
}

impl Rule {
    fn hits(&mut self, event: &Event<'_>) -> bool {
        let when = &self.fault.when;
        if !when.matches(event) {
            return false;
        }
        self.seen += 1;
        if self.seen <= when.skip || when.times.is_some_and(|times| self.fired >= times) {
            return false;
        }
        // The dice are thrown for every request that gets here, so that a seed replays.
        if when
            .probability
            .is_some_and(|probability| !self.random.random_bool(probability))
        {
            return false;
        }
        self.fired += 1;
        true
    }

    fn status(&self) -> FaultStatus {
        FaultStatus {
            id: self.id,
            rule: self.fault.to_string(),
            seen: self.seen,
            fired: self.fired,
            seed: self.seed,
        }
    }
}

/// Keeps a rule in force; dropping it removes the rule and lets go of what it holds.
#[derive(Debug)]
#[must_use = "the fault is removed when its guard is dropped"]
pub struct FaultGuard {
    faults: Arc<Faults>,
    id: u64,
}

impl FaultGuard {
    /// How many requests the rule has hit.
    pub fn fired(&self) -> u64 {
        self.faults.status(self.id).map_or(0, |status| status.fired)
    }

    /// The id, as the control endpoint knows it.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.faults.remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_wire::Status;

    fn event(opcode: Opcode, key: &[u8]) -> Event<'_> {
        Event {
            node: NodeId::new(0),
            service: Service::Kv,
            opcode: Some(opcode),
            key,
            bucket: Some("b"),
        }
    }

    fn fires(faults: &Faults, opcode: Opcode, key: &[u8]) -> bool {
        faults.decide(&event(opcode, key)).is_some()
    }

    #[test]
    fn the_first_match_wins_and_pass_exempts() {
        let faults = Faults::new(1);
        faults.add(Fault::on(Opcode::Set).key("spared").pass());
        faults.add(Fault::on(Opcode::Set).answer(Status::Busy));
        faults.add(Fault::on(Opcode::Set).hold());
        let decide = |key: &[u8]| faults.decide(&event(Opcode::Set, key)).unwrap().verdict;
        assert_eq!(decide(b"spared"), Verdict::Pass);
        assert!(matches!(decide(b"other"), Verdict::Answer(_)));
        assert!(!fires(&faults, Opcode::Get, b"other"));
    }

    #[test]
    fn counts_skip_and_run_out() {
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
        assert_eq!(faults.list()[0].seen, 8);
        assert_eq!(faults.list()[0].fired, 3);
    }

    #[test]
    fn node_bucket_and_service_are_looked_at() {
        let faults = Faults::new(1);
        faults.add(Fault::on_anything().node(NodeId::new(1)).hold());
        faults.add(Fault::on_anything().bucket("other").hold());
        faults.add(Fault::on_service(Service::Query).hold());
        assert!(!fires(&faults, Opcode::Get, b""));
        let mut other = event(Opcode::Get, b"");
        other.node = NodeId::new(1);
        assert!(faults.decide(&other).is_some());
        let query = Event {
            service: Service::Query,
            opcode: None,
            ..event(Opcode::Get, b"")
        };
        assert!(faults.decide(&query).is_some());
    }

    #[test]
    fn a_seed_replays_the_same_chances() {
        let run = |seed| {
            let faults = Faults::new(0);
            faults.add(Fault::on(Opcode::Get).probability(0.5).seed(seed).hold());
            (0..64)
                .map(|_| fires(&faults, Opcode::Get, b""))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(4711), run(4711));
        assert_ne!(run(4711), run(4712));
        assert!(run(4711).contains(&true) && run(4711).contains(&false));
    }

    #[test]
    fn a_guard_removes_its_rule_and_ends_what_it_holds() {
        let faults = Arc::new(Faults::new(1));
        let guard = faults.guard(Fault::on(Opcode::Get).hold());
        let decision = faults.decide(&event(Opcode::Get, b"")).unwrap();
        assert_eq!(guard.fired(), 1);
        assert!(!decision.released.is_cancelled());
        drop(guard);
        assert!(decision.released.is_cancelled());
        assert!(!faults.any());
    }
}
