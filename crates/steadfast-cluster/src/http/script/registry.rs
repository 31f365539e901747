//! The scripts in force, and the choice of the one that answers.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use super::super::{HttpRequest, HttpResponse, HttpSession, query};
use super::Script;
use crate::Service;

/// All scripts of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<Entry>,
    next_id: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    script: Script,
    seen: u64,
    answered: u64,
}

/// The state of a script.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ScriptStatus {
    /// Names the script.
    pub id: u64,
    /// What it says.
    pub script: String,
    /// The number of requests that matched, regardless of its count.
    pub seen: u64,
    /// How many it answered.
    pub answered: u64,
}

impl Scripts {
    /// Adds a script behind those that are there, until it is removed by its id.
    pub(crate) fn add(&self, script: Script) -> u64 {
        let mut inner = self.inner.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        tracing::info!(id, %script, "script added");
        inner.entries.push(Entry {
            id,
            script,
            seen: 0,
            answered: 0,
        });
        id
    }

    /// Adds a script for as long as the guard lives.
    pub(crate) fn guard(self: &Arc<Self>, script: Script) -> ScriptGuard {
        ScriptGuard {
            scripts: self.clone(),
            id: self.add(script),
        }
    }

    /// Removes a script; false if there was none.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut inner = self.inner.lock();
        let before = inner.entries.len();
        inner.entries.retain(|entry| entry.id != id);
        inner.entries.len() < before
    }

    /// Removes all scripts.
    pub(crate) fn clear(&self) {
        self.inner.lock().entries.clear();
    }

    /// The state of each script.
    pub(crate) fn list(&self) -> Vec<ScriptStatus> {
        self.inner
            .lock()
            .entries
            .iter()
            .map(Entry::status)
            .collect()
    }

    /// The state of one script.
    pub(crate) fn status(&self, id: u64) -> Option<ScriptStatus> {
        let inner = self.inner.lock();
        inner
            .entries
            .iter()
            .find(|entry| entry.id == id)
            .map(Entry::status)
    }

    /// The answer of the first script that matches, if one does.
    pub(in crate::http) fn answer(
        &self,
        request: &HttpRequest,
        session: &HttpSession,
    ) -> Option<HttpResponse> {
        if self.inner.lock().entries.is_empty() {
            return None;
        }
        let statement = match session.service {
            Service::Query | Service::Analytics => query::statement_of(request, session),
            Service::KeyValue | Service::Management | Service::Search | Service::Views => None,
        };
        let mut inner = self.inner.lock();
        let entry = inner.entries.iter_mut().find_map(|entry| {
            entry
                .takes(request, session, statement.as_deref())
                .then_some(entry)
        })?;
        tracing::debug!(id = entry.id, script = %entry.script, "script answers");
        Some(entry.script.respond(request, session))
    }
}

impl Entry {
    fn takes(
        &mut self,
        request: &HttpRequest,
        session: &HttpSession,
        statement: Option<&str>,
    ) -> bool {
        if !self.script.matches(request, session, statement) {
            return false;
        }
        self.seen += 1;
        let turn = self.seen > self.script.skip
            && self.script.times.is_none_or(|times| self.answered < times);
        self.answered += u64::from(turn);
        turn
    }

    fn status(&self) -> ScriptStatus {
        ScriptStatus {
            id: self.id,
            script: self.script.to_string(),
            seen: self.seen,
            answered: self.answered,
        }
    }
}

/// Keeps a script in force; dropping it removes the script.
#[derive(Debug)]
#[must_use = "the script is removed when its guard is dropped"]
pub struct ScriptGuard {
    scripts: Arc<Scripts>,
    id: u64,
}

impl ScriptGuard {
    /// Returns the number of requests that the script answered.
    pub fn answered(&self) -> u64 {
        self.scripts
            .status(self.id)
            .map_or(0, |status| status.answered)
    }

    /// The id, as the control endpoint knows it.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for ScriptGuard {
    fn drop(&mut self) {
        self.scripts.remove(self.id);
    }
}
