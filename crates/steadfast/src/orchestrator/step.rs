//! What to do next, and what there is to say at the end.

use std::fmt;
use std::time::Duration;

use crate::decision::PendingDecision;
use crate::history::{Ended, History, Outcome};
use crate::reason::{Reason, ReasonSet};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::strategy::{Described, RetryStrategy};
use crate::verdict::{Certainty, Verdict};

/// What a driver has to do next.
#[must_use = "the request goes on only if the step is taken"]
pub enum Step {
    /// Make an attempt, then call `handle_success` or `handle_failure`.
    Attempt,
    /// Wait so long, then call `handle_waited`.
    Wait(Duration),
    /// Await this, then call `handle_decision`.
    Ask(PendingDecision),
    /// Nothing more; the request ended with this verdict.
    GiveUp(Verdict),
    /// Nothing: the request was not in a state in which this could happen, so
    /// it was left as it was (law 9).
    LeftAlone,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Attempt => f.write_str("Attempt"),
            Step::Wait(delay) => f.debug_tuple("Wait").field(delay).finish(),
            Step::Ask(_) => f.write_str("Ask"),
            Step::GiveUp(verdict) => f.debug_tuple("GiveUp").field(verdict).finish(),
            Step::LeftAlone => f.write_str("LeftAlone"),
        }
    }
}

/// The whole story of a request that did not succeed.
#[derive(Debug)]
pub struct Report {
    request: Request,
    verdict: Verdict,
    refusal: Option<Refusal>,
    elapsed: Option<Duration>,
    strategy: String,
}

impl Report {
    #[cold]
    pub(super) fn new<S: RetryStrategy>(mut request: Request, strategy: &S) -> Self {
        let ended = request.trail.as_mut().and_then(|trail| trail.ended.take());
        let started = request.started();
        let (verdict, refusal, elapsed) = match ended {
            Some(ended) => {
                let Ended {
                    verdict,
                    refusal,
                    at,
                } = *ended;
                (
                    verdict,
                    refusal,
                    started.map(|started| at.saturating_duration_since(started)),
                )
            }
            // Taken of a request that is still under way.
            None => (Verdict::Failed(Certainty::Unambiguous), None, None),
        };
        Self {
            request,
            verdict,
            refusal,
            elapsed,
            strategy: Described(strategy).to_string(),
        }
    }

    /// The verdict.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The request as it was at the end.
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// How many attempts were made.
    pub const fn attempts(&self) -> u32 {
        self.request.attempts()
    }

    /// How many retries were decided on.
    pub const fn retries(&self) -> u32 {
        self.request.retries()
    }

    /// The reasons of those retries.
    pub fn reasons(&self) -> &ReasonSet {
        self.request.reasons()
    }

    /// What became of each attempt.
    pub fn history(&self) -> &History {
        self.request.history()
    }

    /// Why there was no further attempt. None if a capped sleep ended it.
    pub const fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// From the start of the request to its end; without a deadline, from the
    /// first failure on.
    pub const fn elapsed(&self) -> Option<Duration> {
        self.elapsed
    }

    /// The strategy, in a few words.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// The reasons of all failed attempts, also the one that was not retried.
    pub(crate) fn all_reasons(&self) -> impl Iterator<Item = (&'static Reason, u32)> + '_ {
        let last = self.history().last();
        let refused = last
            .filter(|record| matches!(record.outcome, Outcome::Refused(_)))
            .map(|record| record.failure.reason);
        let set = self.reasons();
        let seen = set
            .counted()
            .map(move |(reason, times)| (reason, times + u32::from(refused == Some(reason))));
        seen.chain(
            refused
                .filter(|reason| !set.contains(reason))
                .map(|reason| (reason, 1)),
        )
    }
}
