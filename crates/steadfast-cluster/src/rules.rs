//! Lists of rules in force: faults and scripts.
//!
//! Rules are tried in the order in which they were added. The id of a rule removes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Serialize;

/// A rule that a list can report on.
pub(crate) trait Rule {
    /// The rule's text and counters, for the control endpoint.
    type Status: Serialize;

    /// Returns the status of the rule, which has this id.
    fn status(&self, id: u64) -> Self::Status;

    /// Runs when the rule leaves its list.
    fn on_removed(&self) {}
}

/// The rules in force.
#[derive(Debug)]
pub(crate) struct Rules<R> {
    /// The number of rules. While it is zero, requests pass without taking the lock.
    count: AtomicUsize,
    inner: Mutex<RuleList<R>>,
}

#[derive(Debug)]
struct RuleList<R> {
    by_id: BTreeMap<u64, R>,
    next_id: u64,
}

/// Keeps a rule in force; dropping it removes the rule.
#[derive(Debug)]
pub(crate) struct RuleGuard<R: Rule> {
    rules: Arc<Rules<R>>,
    pub(crate) id: u64,
}

impl<R> Default for Rules<R> {
    fn default() -> Self {
        let (by_id, next_id) = (BTreeMap::new(), 0);
        Self {
            count: AtomicUsize::new(0),
            inner: Mutex::new(RuleList { by_id, next_id }),
        }
    }
}

impl<R: Rule> Rules<R> {
    /// Adds the rule that `make` returns for its id, behind the others.
    pub(crate) fn add(&self, make: impl FnOnce(u64) -> R) -> u64 {
        let mut inner = self.inner.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        inner.by_id.insert(id, make(id));
        self.count.store(inner.by_id.len(), Ordering::Release);
        id
    }

    /// Returns the guard of a rule.
    pub(crate) fn guard(self: &Arc<Self>, id: u64) -> RuleGuard<R> {
        let rules = self.clone();
        RuleGuard { rules, id }
    }

    /// Removes a rule; returns false if there is none.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut inner = self.inner.lock();
        let removed = inner.by_id.remove(&id);
        self.count.store(inner.by_id.len(), Ordering::Release);
        removed.inspect(R::on_removed).is_some()
    }

    /// Removes all rules.
    pub(crate) fn clear(&self) {
        let mut inner = self.inner.lock();
        self.count.store(0, Ordering::Release);
        let removed = std::mem::take(&mut inner.by_id);
        removed.values().for_each(R::on_removed);
    }

    /// Returns the status of every rule.
    pub(crate) fn list(&self) -> Vec<R::Status> {
        let inner = self.inner.lock();
        let status = |(id, rule): (&u64, &R)| rule.status(*id);
        inner.by_id.iter().map(status).collect()
    }

    /// Returns the status of one rule.
    pub(crate) fn status(&self, id: u64) -> Option<R::Status> {
        let inner = self.inner.lock();
        inner.by_id.get(&id).map(|rule| rule.status(id))
    }

    /// Returns whether there are any rules.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    /// Finds the first rule that applies, and returns what `then` makes of its id and of it.
    pub(crate) fn first<T>(
        &self,
        mut applies: impl FnMut(&mut R) -> bool,
        then: impl FnOnce(u64, &R) -> T,
    ) -> Option<T> {
        let mut inner = self.inner.lock();
        let (id, rule) = inner.by_id.iter_mut().find_map(|(id, rule)| {
            let applies = applies(rule);
            applies.then_some((*id, rule))
        })?;
        Some(then(id, rule))
    }
}

impl<R: Rule> RuleGuard<R> {
    /// Returns the status of the rule, unless it was removed.
    pub(crate) fn status(&self) -> Option<R::Status> {
        self.rules.status(self.id)
    }
}

impl<R: Rule> Drop for RuleGuard<R> {
    fn drop(&mut self) {
        self.rules.remove(self.id);
    }
}
