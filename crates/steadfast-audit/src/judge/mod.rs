//! Rates a case by the attempts that arrived, and names the rule.

mod jitter;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

use crate::cases::AuditCase;
use crate::command::ClientEnd;
use crate::journal::HttpArrival;
pub(crate) use rules::delays;

/// How a client did in a case, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rating {
    /// A request that is not idempotent arrived again, although it may have been applied.
    Unsafe,
    /// Retries have no bound, no backoff or no jitter.
    Storm,
    /// A retry came before the time that the server named.
    Rude,
    /// The client did not survive a fault that one retry survives.
    GivesUpEarly,
    /// The case showed nothing, and nothing is claimed.
    NotSeen,
    /// None of these.
    Good,
}

impl Rating {
    /// Every rating, the most severe first.
    pub const ALL: [Self; 6] = [
        Self::Unsafe,
        Self::Storm,
        Self::Rude,
        Self::GivesUpEarly,
        Self::NotSeen,
        Self::Good,
    ];

    /// Returns what the rating means.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Unsafe => {
                "a request that is not idempotent was sent again after it may have been applied"
            }
            Self::Storm => "retries have no bound, no backoff or no jitter",
            Self::Rude => "a retry came before the time that Retry-After names",
            Self::GivesUpEarly => "one more attempt would have been safe, and would have succeeded",
            Self::NotSeen => "the case showed nothing, and nothing is claimed",
            Self::Good => "none of these",
        }
    }
}

impl fmt::Display for Rating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unsafe => "unsafe",
            Self::Storm => "storm",
            Self::Rude => "rude",
            Self::GivesUpEarly => "gives up early",
            Self::NotSeen => "not seen",
            Self::Good => "good",
        })
    }
}

/// What happened in a case.
#[derive(Clone, Debug)]
pub(crate) struct CaseRun {
    pub(crate) arrivals: Vec<HttpArrival>,
    /// One for each command.
    pub(crate) ends: Vec<ClientEnd>,
}

impl CaseRun {
    /// Returns the attempts of each command.
    pub(crate) fn by_command(&self) -> impl Iterator<Item = Vec<&HttpArrival>> {
        (0..self.ends.len().max(1)).map(|command| {
            let arrivals = self.arrivals.iter();
            arrivals
                .filter(|arrival| arrival.command == command)
                .collect()
        })
    }
}

/// A rating and its reason.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) rating: Rating,
    pub(crate) reason: String,
}

/// Returns how a client broke the rule in a case.
type AuditRule = fn(&AuditCase, &CaseRun) -> Option<String>;

/// Rates a case by the first of these rules that it breaks. `NotSeen` comes before
/// `GivesUpEarly`: a client that was stopped has not given up.
pub(crate) fn judge(case: &AuditCase, run: &CaseRun) -> Judgement {
    let rules: [(Rating, AuditRule); 5] = [
        (Rating::Unsafe, rules::unsafe_retry),
        (Rating::Storm, rules::storm),
        (Rating::Rude, rules::rude_retry),
        (Rating::NotSeen, rules::not_seen),
        (Rating::GivesUpEarly, rules::early_end),
    ];
    let broken = rules.into_iter().find_map(|(rating, rule)| {
        Some(Judgement {
            rating,
            reason: rule(case, run)?,
        })
    });
    broken.unwrap_or_else(|| Judgement {
        rating: Rating::Good,
        reason: rules::description(case, run),
    })
}
