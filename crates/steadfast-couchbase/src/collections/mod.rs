//! Names of collections to their ids.
//!
//! An id is looked up once and then read without a lock. The lookup belongs to a
//! task: callers only wait for it, so that any of them, or all, may go away and
//! the next one still gets an answer. However many wait, one request is on the
//! wire.
//!
//! A lookup is one attempt. If it fails, that is the failure of the operations
//! which needed it, and their own strategies decide; there is no retry here.

mod lookup;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) use lookup::{Lookup, Unresolved, manifest_of};
use parking_lot::Mutex;
use steadfast_wire::collections::DEFAULT_NAME;
use tokio::sync::watch;

use crate::observe::Durations;

/// Set in [`Collection::known`] when the id is known.
const KNOWN: u64 = 1 << 32;

/// The collections of a bucket that somebody asked for.
#[derive(Default)]
pub(crate) struct Collections {
    entries: Mutex<HashMap<Names, Arc<Collection>>>,
    /// Whether the server ever said what is in the map, and be it that
    /// something is not (D11).
    fetched: AtomicBool,
}

/// The name of a scope, and of a collection in it.
type Names = (Arc<str>, Arc<str>);

/// A collection and what is known of its id.
pub(crate) struct Collection {
    pub(crate) scope: Arc<str>,
    pub(crate) name: Arc<str>,
    /// How long operations on it took.
    pub(crate) durations: Durations,
    known: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The manifest that the id is from.
    manifest: u64,
    /// The lookup under way. Its result is sent to all who wait.
    under_way: Option<watch::Receiver<Option<Lookup>>>,
}

impl Collections {
    pub(crate) fn get(&self, scope: &str, name: &str) -> Arc<Collection> {
        let mut entries = self.entries.lock();
        let key = (scope.into(), name.into());
        let entry = entries.entry(key);
        let (scope, name): &Names = entry.key();
        let collection = Collection::new(scope.clone(), name.clone());
        entry.or_insert_with(|| Arc::new(collection)).clone()
    }

    /// The collection that is always there, for what is about none.
    pub(crate) fn default_collection(&self) -> Arc<Collection> {
        self.get(DEFAULT_NAME, DEFAULT_NAME)
    }

    /// Nothing that is known of ids, or of their manifests, counts any longer.
    pub(crate) fn forget(&self) {
        for collection in self.entries.lock().values() {
            collection.forget();
        }
        self.fetched.store(false, Ordering::Relaxed);
    }

    /// The server said what is in the map. True if it had done so before.
    pub(crate) fn fetched(&self) -> bool {
        self.fetched.swap(true, Ordering::Relaxed)
    }
}

impl Collection {
    fn new(scope: Arc<str>, name: Arc<str>) -> Self {
        let known = known_from_the_start(&scope, &name);
        Self {
            scope,
            name,
            durations: Durations::default(),
            known: AtomicU64::new(known),
            state: Mutex::default(),
        }
    }

    fn forget(&self) {
        let mut state = self.state.lock();
        state.manifest = 0;
        let known = known_from_the_start(&self.scope, &self.name);
        self.known.store(known, Ordering::Relaxed);
    }

    /// The id, if it is known.
    #[inline]
    pub(crate) fn id(&self) -> Option<u32> {
        let known = self.known.load(Ordering::Relaxed);
        (known & KNOWN != 0).then_some(known as u32)
    }

    /// A node does not know this id. `manifest` is the one that the node has: if
    /// it is older than the one that the id is from, the node is behind, and the
    /// id stays (D11).
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

/// The default collection has the same id everywhere and always.
fn known_from_the_start(scope: &str, name: &str) -> u64 {
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
    fn the_default_collection_is_known_from_the_start() {
        let collections = Collections::default();
        assert_eq!(collections.get("_default", "_default").id(), Some(0));
        assert_eq!(collections.get("_default", "users").id(), None);
        assert_eq!(collections.get("users", "_default").id(), None);
    }

    #[test]
    fn a_node_with_an_older_manifest_cannot_undo_a_newer_answer() {
        let collection = Collections::default().get("s", "c");
        collection.learn(8, 5);
        collection.invalidate(8, Some(4));
        assert_eq!(collection.id(), Some(8));
        collection.learn(9, 4);
        assert_eq!(collection.id(), Some(8));
        collection.invalidate(8, Some(6));
        assert_eq!(collection.id(), None);
    }

    #[test]
    fn a_bucket_that_is_made_anew_has_said_nothing_of_its_collections() {
        let collections = Collections::default();
        let collection = collections.get("s", "c");
        collection.learn(8, 5);
        assert!(!collections.fetched());
        assert!(collections.fetched());
        collections.forget();
        assert_eq!(collection.id(), None);
        assert!(!collections.fetched());
    }

    #[test]
    fn an_invalidation_is_for_the_id_that_was_refused() {
        let collection = Collections::default().get("s", "c");
        collection.learn(8, 5);
        collection.learn(9, 6);
        collection.invalidate(8, Some(6));
        assert_eq!(collection.id(), Some(9));
    }
}
