//! The scripts in force, and the choice of the one that answers.

use std::sync::Arc;

use serde::Serialize;

use super::super::{HttpRequest, HttpResponse, HttpSession, query};
use super::Script;
use crate::Service;
use crate::rules::{Rule, RuleGuard, Rules};

/// The scripts of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    pub(crate) rules: Arc<Rules<ActiveScript>>,
}

/// A script in force.
#[derive(Debug)]
pub(crate) struct ActiveScript {
    script: Script,
    seen: u64,
    answered: u64,
}

/// A script, and the requests that it has seen and answered.
#[derive(Debug, Serialize)]
pub(crate) struct ScriptStatus {
    /// The id that removes the script.
    id: u64,
    /// The script as text.
    script: String,
    /// Requests that matched, before the count.
    seen: u64,
    /// Requests that it answered.
    answered: u64,
}

impl Scripts {
    /// Adds a script behind the others and returns its id.
    pub(crate) fn add(&self, script: Script) -> u64 {
        self.rules.add(|id| {
            tracing::info!(id, %script, "script added");
            ActiveScript {
                script,
                seen: 0,
                answered: 0,
            }
        })
    }

    /// Adds a script that lasts as long as the guard.
    pub(crate) fn guard(&self, script: Script) -> ScriptGuard {
        ScriptGuard(self.rules.guard(self.add(script)))
    }

    /// Returns the answer of the first script that matches, if one does.
    pub(in crate::http) fn answer(
        &self,
        request: &HttpRequest,
        session: &HttpSession,
    ) -> Option<HttpResponse> {
        if !self.rules.any() {
            return None;
        }
        let statement = match session.service {
            Service::Query | Service::Analytics => query::statement_of(request, session),
            Service::KeyValue | Service::Management | Service::Search | Service::Views => None,
        };
        let takes = |rule: &mut ActiveScript| rule.takes(request, session, statement.as_deref());
        self.rules.first(takes, |id, rule| {
            tracing::debug!(id, script = %rule.script, "script answers");
            rule.script.respond(request, session)
        })
    }
}

impl ActiveScript {
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
}

impl Rule for ActiveScript {
    type Status = ScriptStatus;

    fn status(&self, id: u64) -> ScriptStatus {
        ScriptStatus {
            id,
            script: self.script.to_string(),
            seen: self.seen,
            answered: self.answered,
        }
    }
}

/// Keeps a script in force; dropping it removes the script.
#[derive(Debug)]
#[must_use = "the script is removed when its guard is dropped"]
pub struct ScriptGuard(RuleGuard<ActiveScript>);

impl ScriptGuard {
    /// Returns the number of requests that match, answered or not.
    pub fn seen(&self) -> u64 {
        self.0.status().map_or(0, |status| status.seen)
    }

    /// Returns the number of requests that the script answered.
    pub fn answered(&self) -> u64 {
        self.0.status().map_or(0, |status| status.answered)
    }

    /// Returns the id, as the control endpoint knows it.
    pub fn id(&self) -> u64 {
        self.0.id
    }
}
