//! Names of the plans that the query service has prepared.
//!
//! The service may forget a plan at any time. Its name is then dropped here, and
//! the statement is prepared again as a retry like any other (decision D17,
//! docs/decisions.md).

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

/// The most plans that are remembered; the least recently used one goes first.
const MAX_PLANS: NonZeroUsize = NonZeroUsize::new(5000).expect("it is not zero");

/// The names of plans, by statement.
pub(crate) struct PreparedPlans {
    names: Mutex<LruCache<PlanKey, Arc<str>>>,
}

/// The statement that a plan is for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    /// The scope: the same statement means another collection in another scope.
    pub(super) query_context: Option<String>,
    pub(super) statement: String,
}

impl PreparedPlans {
    pub(crate) fn new() -> Self {
        Self {
            names: Mutex::new(LruCache::new(MAX_PLANS)),
        }
    }

    pub(super) fn get(&self, key: &PlanKey) -> Option<Arc<str>> {
        self.names.lock().get(key).cloned()
    }

    pub(super) fn learn(&self, key: PlanKey, name: Arc<str>) {
        self.names.lock().put(key, name);
    }

    /// Forgets a plan, unless another one has replaced it.
    pub(super) fn forget(&self, key: &PlanKey, name: &Arc<str>) {
        let mut names = self.names.lock();
        if names
            .peek(key)
            .is_some_and(|known| Arc::ptr_eq(known, name))
        {
            names.pop(key);
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.names.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(statement: &str) -> PlanKey {
        PlanKey {
            query_context: None,
            statement: statement.to_owned(),
        }
    }

    #[test]
    fn forgetting_an_old_plan_keeps_a_newer_one() {
        let plans = PreparedPlans::new();
        let (old, new): (Arc<str>, Arc<str>) = ("p".into(), "p".into());
        plans.learn(key("s"), old.clone());
        plans.learn(key("s"), new.clone());
        plans.forget(&key("s"), &old);
        assert_eq!(plans.get(&key("s")), Some(new.clone()));
        plans.forget(&key("s"), &new);
        assert_eq!(plans.get(&key("s")), None);
    }

    #[test]
    fn the_number_of_plans_is_bounded() {
        let plans = PreparedPlans::new();
        for at in 0..=MAX_PLANS.get() {
            plans.learn(key(&at.to_string()), "p".into());
        }
        assert_eq!(plans.count(), MAX_PLANS.get());
        assert_eq!(plans.get(&key("0")), None);
    }
}
