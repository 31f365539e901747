//! The search for an order of the operations on one document.
//!
//! The checker sees beginnings and ends in the order of time. It keeps the configurations that
//! the document may be in. When an operation ends, each configuration is extended until the
//! operation has taken effect in it; a configuration that cannot be extended is dropped. When
//! none is left, no order explains the results.
//!
//! - Operations with a version (CAS) take effect in the order of their versions. A configuration
//!   has applied exactly those up to its own CAS. A failover can lose the CAS of a lock; a read
//!   that may come after one counts as an operation without a version.
//! - The others have a slot, and each configuration a bit for it. What does not change the
//!   document is marked as soon as it matches, because that excludes nothing. Changes are
//!   tried in every order. The ambiguous ones are optional; of two configurations with the same
//!   state, the one that used fewer of them is enough.

use std::collections::{BTreeMap, HashSet};

use super::operation::{Operation, State};

/// The number of operations without a version at a time.
const SLOTS: usize = 128;
/// The number of configurations to look at for one operation.
const LIMIT: usize = 20_000;

/// Why a history cannot be checked further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No order explains this operation.
    Impossible,
    /// There are too many possible orders.
    TooMany,
}

/// The configurations of one document.
#[derive(Debug)]
pub(super) struct Checker {
    configurations: Vec<Configuration>,
    /// Operations with a version, changes before reads of the same version.
    ordered: BTreeMap<(u64, bool, u64), Operation>,
    /// Operations without a version.
    slots: Vec<Option<Slot>>,
    next: u64,
    /// The version that all configurations have reached.
    reached: u64,
    /// The number of configurations that the last beginning or end had to look at.
    looked_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Configuration {
    state: State,
    /// The slots whose operations have taken effect.
    done: u128,
}

#[derive(Debug)]
struct Slot {
    operation: Operation,
    number: u64,
    /// From this time on, an ambiguous operation no longer takes effect.
    expires: u64,
}

/// What must have taken effect.
#[derive(Clone, Copy)]
enum Goal {
    Version(u64),
    Slot(usize),
}

impl Checker {
    pub(super) fn new(state: State) -> Self {
        Self {
            configurations: vec![Configuration { state, done: 0 }],
            ordered: BTreeMap::new(),
            slots: Vec::new(),
            next: 0,
            reached: 0,
            looked_at: 0,
        }
    }

    pub(super) fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// Forgets the content and continues from this version, or from a later one that was reached.
    /// Operations under way still count; of those without a version, only ambiguous ones.
    pub(super) fn forget(&mut self, version: u64) {
        self.reached = self.reached.max(version);
        let state = State::unknown(self.reached, 0);
        self.configurations = vec![Configuration { state, done: 0 }];
        for slot in &mut self.slots {
            slot.take_if(|slot| !slot.operation.is_ambiguous());
        }
        self.ordered
            .retain(|(version, ..), _| *version > self.reached);
    }

    /// Begins an operation. Returns its number, for its end.
    ///
    /// # Errors
    /// If a later version was in effect before it began, or there are too many operations.
    pub(super) fn begin(&mut self, operation: Operation, expires: u64) -> Result<u64, Failure> {
        let number = self.next;
        self.next += 1;
        self.looked_at = 0;
        let version = operation
            .version()
            .filter(|version| operation.changes() || !self.may_fall_below(*version));
        let Some(version) = version else {
            let free = self.slots.iter().position(Option::is_none);
            let at = match free {
                Some(at) => at,
                None if self.slots.len() < SLOTS => {
                    self.slots.push(None);
                    self.slots.len() - 1
                }
                None => return Err(Failure::TooMany),
            };
            self.slots[at] = Some(Slot {
                operation,
                number,
                expires,
            });
            return Ok(number);
        };
        let reads = !operation.changes();
        self.configurations.retain_mut(|configuration| {
            let cas = configuration.state.cas;
            if !reads || cas != version {
                return cas < version;
            }
            // It may tell the content of a document that was unknown.
            let step = operation.step(&configuration.state);
            step.map(|state| configuration.state = state).is_some()
        });
        let changes = (version, false, 0)..=(version, false, u64::MAX);
        if !reads && self.ordered.range(changes).next().is_some() {
            // No two changes have the same CAS.
            return Err(Failure::Impossible);
        }
        self.ordered.insert((version, reads, number), operation);
        self.check()?;
        Ok(number)
    }

    /// Ends an operation, which must have taken effect by now.
    ///
    /// # Errors
    /// If no order explains it.
    pub(super) fn end(&mut self, operation: &Operation, number: u64) -> Result<(), Failure> {
        let slot = |slot: &Option<Slot>| slot.as_ref().is_some_and(|slot| slot.number == number);
        let goal = match (self.slots.iter().position(slot), operation.version()) {
            (Some(at), _) => Goal::Slot(at),
            (None, Some(version)) => Goal::Version(version),
            (None, None) => return Ok(()),
        };
        let mut seen = HashSet::new();
        let mut reached = Vec::new();
        for configuration in &self.configurations {
            self.extend(*configuration, goal, &mut seen, &mut reached);
        }
        // The first one was there before.
        self.looked_at = seen.len().saturating_sub(1);
        if seen.len() > LIMIT {
            return Err(Failure::TooMany);
        }
        if let Goal::Slot(at) = goal {
            self.slots[at] = None;
            for configuration in &mut reached {
                configuration.done &= !(1 << at);
            }
        }
        self.configurations = reached;
        self.tidy();
        self.check()
    }

    /// Allows for failovers up to this number, which lose locks. What is under way may have
    /// taken effect before, such as an unlock.
    pub(super) fn fail_over(&mut self, failovers: u64) {
        let is_affected = |state: &State| state.failed_over(failovers).is_some();
        let affected = self.configurations.iter();
        let mut before: Vec<Configuration> = affected
            .filter(|configuration| is_affected(&configuration.state))
            .copied()
            .collect();
        let mut next = 0;
        while next < before.len() && before.len() < LIMIT {
            let configuration = before[next];
            for (at, slot) in self.pending(configuration) {
                if slot.operation.changes()
                    && let Some(state) = slot.operation.step(&configuration.state)
                    && is_affected(&state)
                {
                    let done = configuration.done | (1 << at);
                    let after = Configuration { state, done };
                    if !before.contains(&after) {
                        before.push(after);
                    }
                }
            }
            next += 1;
        }
        for Configuration { state, done } in before {
            let after = state
                .failed_over(failovers)
                .map(|state| Configuration { state, done });
            if let Some(after) = after
                && !self.configurations.contains(&after)
            {
                self.configurations.push(after);
            }
        }
    }

    /// Forgets ambiguous operations that can no longer take effect. Each has taken effect by now,
    /// or never does, so both are possible from here on.
    ///
    /// # Errors
    /// If there are too many possible orders.
    pub(super) fn expire(&mut self, now: u64) -> Result<(), Failure> {
        for at in 0..self.slots.len() {
            let Some(slot) = self.slots[at].take_if(|slot| slot.expires <= now) else {
                continue;
            };
            let before = self.configurations.iter();
            let before = before.filter(|one| one.done & (1 << at) == 0);
            let after = before.filter_map(|one| {
                let state = slot.operation.step(&one.state)?;
                Some(Configuration { state, ..*one })
            });
            let after: Vec<_> = after.collect();
            self.configurations.extend(after);
            for configuration in &mut self.configurations {
                configuration.done &= !(1 << at);
            }
            self.tidy();
            if self.configurations.len() > LIMIT {
                return Err(Failure::TooMany);
            }
        }
        Ok(())
    }

    /// Adds the configurations after this one in which the goal is reached.
    fn extend(
        &self,
        mut configuration: Configuration,
        goal: Goal,
        seen: &mut HashSet<Configuration>,
        reached: &mut Vec<Configuration>,
    ) {
        for (at, slot) in self.pending(configuration) {
            if !slot.operation.changes() && slot.operation.step(&configuration.state).is_some() {
                configuration.done |= 1 << at;
            }
        }
        if seen.len() > LIMIT || !seen.insert(configuration) {
            return;
        }
        let (is_reached, limit) = match goal {
            Goal::Version(version) => (configuration.state.cas >= version, version),
            Goal::Slot(at) => (configuration.done & (1 << at) != 0, u64::MAX),
        };
        if is_reached {
            reached.push(configuration);
            return;
        }
        let from = (configuration.state.cas + 1, false, 0);
        let next = self.ordered.range(from..).next();
        if let Some(((version, ..), operation)) = next
            && *version <= limit
            && let Some(state) = operation.step(&configuration.state)
            && self.reads_match(&state)
        {
            let done = configuration.done;
            self.extend(Configuration { state, done }, goal, seen, reached);
        }
        for (at, slot) in self.pending(configuration) {
            if slot.operation.changes()
                && let Some(state) = slot.operation.step(&configuration.state)
                && !self.skips(configuration.state.cas, state.cas)
            {
                let done = configuration.done | (1 << at);
                self.extend(Configuration { state, done }, goal, seen, reached);
            }
        }
    }

    /// Returns whether a failover may bring a configuration from above this version to below it.
    /// Then a read of the version has no place in the order of versions.
    fn may_fall_below(&self, version: u64) -> bool {
        self.configurations.iter().any(|configuration| {
            let state = &configuration.state;
            state.cas > version && state.failed_over(u64::MAX).is_some()
        })
    }

    /// Returns whether all reads of this version match.
    fn reads_match(&self, state: &State) -> bool {
        let version = state.cas;
        let reads = self
            .ordered
            .range((version, true, 0)..=(version, true, u64::MAX));
        let mut reads = reads.map(|(_, operation)| operation);
        reads.all(|operation| operation.step(state).is_some())
    }

    /// Returns whether a step from one CAS to another leaves out an operation between them.
    fn skips(&self, from: u64, to: u64) -> bool {
        from < to && {
            let between = (from + 1, false, 0)..=(to, true, u64::MAX);
            self.ordered.range(between).next().is_some()
        }
    }

    /// Returns the slots that have not taken effect in a configuration.
    fn pending(&self, configuration: Configuration) -> impl Iterator<Item = (usize, &Slot)> {
        let slots = self.slots.iter().enumerate();
        let slots = slots.filter_map(|(at, slot)| Some((at, slot.as_ref()?)));
        slots.filter(move |(at, _)| configuration.done & (1 << at) == 0)
    }

    /// Removes what every configuration has applied, and configurations that others make
    /// unnecessary.
    fn tidy(&mut self) {
        let least = self.configurations.iter().map(|one| one.state.cas).min();
        self.reached = least.unwrap_or(self.reached);
        while let Some(entry) = self.ordered.first_entry()
            && entry.key().0 <= self.reached
        {
            entry.remove();
        }
        if self.configurations.len() < 2 {
            return;
        }
        let all = std::mem::take(&mut self.configurations);
        let is_needed = |at: usize, one: &Configuration| {
            !all.iter().enumerate().any(|(other_at, other)| {
                other.state == one.state
                    && other.done & !one.done == 0
                    && (other.done != one.done || other_at < at)
                    && self.is_optional(one.done & !other.done)
            })
        };
        let needed = all.iter().enumerate();
        let needed = needed.filter(|(at, one)| is_needed(*at, one));
        self.configurations = needed.map(|(_, one)| *one).collect();
    }

    /// Returns whether all these slots have ambiguous operations.
    fn is_optional(&self, slots: u128) -> bool {
        let mut slots = (0..self.slots.len()).filter(|at| slots & (1 << at) != 0);
        slots.all(|at| {
            let slot = self.slots[at].as_ref();
            slot.is_none_or(|slot| slot.operation.is_ambiguous())
        })
    }

    fn check(&self) -> Result<(), Failure> {
        if self.configurations.is_empty() {
            return Err(Failure::Impossible);
        }
        Ok(())
    }
}
