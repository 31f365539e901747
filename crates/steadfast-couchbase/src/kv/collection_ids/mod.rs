//! The cache of collection ids.
//!
//! An id is looked up once and then read without a lock. A task runs the lookup
//! and callers only wait for it, so any of them may be dropped. However many wait,
//! one request is on the wire.
//!
//! A lookup is one attempt. If it fails, the operations that need it fail their
//! attempts, and their strategies decide; there is no retry here.

mod lookup;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) use lookup::{Lookup, manifest_uid};
use parking_lot::Mutex;
use steadfast_wire::collections::DEFAULT_NAME;
use tokio::sync::watch;

use crate::observe::Durations;

/// Set in [`CollectionEntry::known`] when the id is known.
const KNOWN: u64 = 1 << 32;

/// The collections of a bucket that have been used.
#[derive(Default)]
pub(crate) struct CollectionIds {
    entries: Mutex<HashMap<Names, Arc<CollectionEntry>>>,
    /// Whether the server has answered a lookup, positively or negatively
    /// (decision D11 in docs/decisions.md).
    answered: AtomicBool,
}

/// The name of a scope, and of a collection in it.
type Names = (Arc<str>, Arc<str>);

/// A collection: its names, its metrics, and its id once that is known.
pub(crate) struct CollectionEntry {
    pub(crate) scope: Arc<str>,
    pub(crate) name: Arc<str>,
    /// The reason why no scope or collection can have these names, if so.
    pub(crate) invalid_name: Option<Box<str>>,
    /// The durations of operations on it.
    pub(crate) durations: Durations,
    known: AtomicU64,
    state: Mutex<LookupState>,
}

#[derive(Default)]
struct LookupState {
    /// The manifest of the id.
    manifest: u64,
    /// The running lookup. Every waiter receives its result.
    under_way: Option<watch::Receiver<Option<Lookup>>>,
}

impl CollectionIds {
    pub(crate) fn get(&self, scope: &str, name: &str) -> Arc<CollectionEntry> {
        let mut entries = self.entries.lock();
        let key = (scope.into(), name.into());
        let entry = entries.entry(key);
        let (scope, name): &Names = entry.key();
        let collection = CollectionEntry::new(scope.clone(), name.clone());
        entry.or_insert_with(|| Arc::new(collection)).clone()
    }

    /// Forgets all ids and manifests.
    pub(crate) fn forget(&self) {
        for collection in self.entries.lock().values() {
            collection.forget();
        }
        self.answered.store(false, Ordering::Relaxed);
    }

    /// Records that the server responded to a lookup. Returns whether it had responded
    /// one before.
    pub(crate) fn mark_answered(&self) -> bool {
        self.answered.swap(true, Ordering::Relaxed)
    }
}

/// The longest name of a scope or a collection.
const MAX_NAME_BYTES: usize = 251;

/// Returns why no scope or collection can have this name. An empty one is the default.
fn problem(what: &str, name: &str) -> Option<Box<str>> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-%".contains(&byte);
    let is_valid = name.len() <= MAX_NAME_BYTES && name.bytes().all(is_allowed);
    let problem = || {
        let beginning: String = name.chars().take(40).collect();
        format!(
            "{beginning:?} cannot be the name of a {what}: a name has at most {MAX_NAME_BYTES} \
             bytes, which are letters and digits (A-Z, a-z, 0-9), '_', '-' and '%'"
        )
    };
    (!is_valid).then(|| problem().into())
}

impl CollectionEntry {
    fn new(scope: Arc<str>, name: Arc<str>) -> Self {
        let known = initial_state(&scope, &name);
        let invalid_name = problem("scope", &scope).or_else(|| problem("collection", &name));
        Self {
            scope,
            name,
            invalid_name,
            durations: Durations::default(),
            known: AtomicU64::new(known),
            state: Mutex::default(),
        }
    }

    fn forget(&self) {
        let mut state = self.state.lock();
        state.manifest = 0;
        let known = initial_state(&self.scope, &self.name);
        self.known.store(known, Ordering::Relaxed);
    }

    /// The id, if it is known.
    #[inline]
    pub(crate) fn id(&self) -> Option<u32> {
        let known = self.known.load(Ordering::Relaxed);
        (known & KNOWN != 0).then_some(known as u32)
    }

    /// Drops an id that a node does not know. `manifest` is the node's. If it is
    /// older than the manifest of the id, the node is behind and the id stays
    /// (D11).
    pub(crate) fn invalidate(&self, id: u32, manifest: Option<u64>) {
        let state = self.state.lock();
        let is_old = manifest.is_some_and(|manifest| manifest < state.manifest);
        if self.id() == Some(id) && !is_old {
            self.known.store(0, Ordering::Relaxed);
        }
    }

    fn learn(&self, id: u32, manifest: u64) {
        let mut state = self.state.lock();
        if manifest >= state.manifest {
            state.manifest = manifest;
            self.known.store(KNOWN | u64::from(id), Ordering::Relaxed);
        }
    }
}

/// The default collection always has the id 0.
fn initial_state(scope: &str, name: &str) -> u64 {
    if scope == DEFAULT_NAME && name == DEFAULT_NAME {
        KNOWN
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_collection_is_initial_state() {
        let collections = CollectionIds::default();
        assert_eq!(collections.get("_default", "_default").id(), Some(0));
        assert_eq!(collections.get("_default", "users").id(), None);
        assert_eq!(collections.get("users", "_default").id(), None);
    }

    #[test]
    fn a_node_with_an_older_manifest_cannot_undo_a_newer_answer() {
        let collection = CollectionIds::default().get("s", "c");
        collection.learn(8, 5);
        collection.invalidate(8, Some(4));
        assert_eq!(collection.id(), Some(8));
        collection.learn(9, 4);
        assert_eq!(collection.id(), Some(8));
        collection.invalidate(8, Some(6));
        assert_eq!(collection.id(), None);
    }

    #[test]
    fn forgetting_drops_ids_and_the_answered_flag() {
        let collections = CollectionIds::default();
        let collection = collections.get("s", "c");
        collection.learn(8, 5);
        assert!(!collections.mark_answered());
        assert!(collections.mark_answered());
        collections.forget();
        assert_eq!(collection.id(), None);
        assert!(!collections.mark_answered());
    }

    #[test]
    fn an_invalidation_is_for_the_id_that_was_refused() {
        let collection = CollectionIds::default().get("s", "c");
        collection.learn(8, 5);
        collection.learn(9, 6);
        collection.invalidate(8, Some(6));
        assert_eq!(collection.id(), Some(9));
    }
}
