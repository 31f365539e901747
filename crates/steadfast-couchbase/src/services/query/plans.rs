//! Plans of statements that were prepared.
//!
//! A plan is known by a name that the service gave it. The service may forget it
//! at any time; then the name is dropped here and the statement prepared again,
//! as a retry like any other (D17).

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

/// How many plans are remembered; those that were used least recently go first.
const MAX_PLANS: NonZeroUsize = NonZeroUsize::new(5000).expect("it is not zero");

/// The names of plans.
pub(crate) struct Plans {
    names: Mutex<LruCache<Arc<Key>, Arc<str>>>,
}

/// What a plan is for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The same statement means another collection in another scope.
    pub(super) query_context: Option<String>,
    pub(super) statement: String,
}

impl Plans {
    pub(crate) fn new() -> Self {
        Self {
            names: Mutex::new(LruCache::new(MAX_PLANS)),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<str>> {
        self.names.lock().get(key).cloned()
    }

    pub(super) fn learn(&self, key: &Arc<Key>, name: Arc<str>) {
        self.names.lock().put(key.clone(), name);
    }

    /// Forgets a plan, unless somebody has put another in its place meanwhile.
    pub(super) fn forget(&self, key: &Key, name: &Arc<str>) {
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

    fn key(statement: &str) -> Arc<Key> {
        Arc::new(Key {
            query_context: None,
            statement: statement.to_owned(),
        })
    }

    #[test]
    fn a_plan_that_was_prepared_again_survives_the_news_that_the_old_one_is_gone() {
        let plans = Plans::new();
        let (old, new): (Arc<str>, Arc<str>) = ("p".into(), "p".into());
        plans.learn(&key("s"), old.clone());
        plans.learn(&key("s"), new.clone());
        plans.forget(&key("s"), &old);
        assert_eq!(plans.get(&key("s")), Some(new.clone()));
        plans.forget(&key("s"), &new);
        assert_eq!(plans.get(&key("s")), None);
    }

    #[test]
    fn only_so_many_plans_are_remembered() {
        let plans = Plans::new();
        for at in 0..=MAX_PLANS.get() {
            plans.learn(&key(&at.to_string()), "p".into());
        }
        assert_eq!(plans.count(), MAX_PLANS.get());
        assert_eq!(plans.get(&key("0")), None);
    }
}
