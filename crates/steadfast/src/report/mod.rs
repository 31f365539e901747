//! The end of a request: its verdict, its history, and the report of both.

mod history;
mod verdict;

use std::fmt;
use std::time::{Duration, Instant};

pub use history::{AttemptRecord, History, Outcome};
pub(crate) use history::{RequestEnd, Trail};
pub use verdict::{Certainty, Verdict};

use crate::call::Call;
pub use crate::orchestrator::Panicked;
use crate::orchestrator::guarded;
use crate::reason::ReasonSet;
use crate::request::{Progress, Request};
use crate::strategy::{Described, Refusal, RetryStrategy};

/// The report of a request that did not succeed: how it ended, after which attempts,
/// and why.
pub struct Report {
    call: Call,
    started: Option<Instant>,
    progress: Progress,
    verdict: Verdict,
    refusal: Option<Refusal>,
    elapsed: Option<Duration>,
    strategy: String,
}

impl Report {
    #[cold]
    pub(crate) fn new<S: RetryStrategy>(
        call: Call,
        started: Option<Instant>,
        mut progress: Progress,
        strategy: &S,
    ) -> Self {
        let ended = progress.ended.take();
        let since = Request {
            call: &call,
            started,
            progress: &progress,
        }
        .started();
        let (verdict, refusal, elapsed) = match ended {
            Some(RequestEnd {
                verdict,
                refusal,
                at,
            }) => (
                verdict,
                refusal,
                since.map(|since| at.saturating_duration_since(since)),
            ),
            // Taken of a request that is still under way, of which nothing is sure.
            None => (Verdict::Failed(Certainty::Ambiguous), None, None),
        };
        Self {
            call,
            started,
            progress,
            verdict,
            refusal,
            elapsed,
            strategy: described(strategy),
        }
    }

    /// The verdict.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The request as it was at the end.
    pub const fn request(&self) -> Request<'_> {
        Request {
            call: &self.call,
            started: self.started,
            progress: &self.progress,
        }
    }

    /// How many attempts were made.
    pub const fn attempts(&self) -> u32 {
        self.request().attempts()
    }

    /// How many retries were decided on.
    pub const fn retries(&self) -> u32 {
        self.request().retries()
    }

    /// The reasons of those retries.
    pub fn reasons(&self) -> ReasonSet {
        self.request().reasons()
    }

    /// What became of each attempt.
    pub fn history(&self) -> History<'_> {
        self.request().history()
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
    pub fn all_reasons(&self) -> ReasonSet {
        let mut reasons = self.reasons();
        if let Some(last) = self.history().last() {
            match last.outcome {
                Outcome::Retry { .. } => {}
                Outcome::Refused(_) | Outcome::Undecided => {
                    reasons.insert(last.failure.reason);
                }
            }
        }
        reasons
    }
}

/// A strategy that fails to describe itself must not take the error with it.
fn described(strategy: &dyn RetryStrategy) -> String {
    guarded(|| Described(strategy).to_string())
        .unwrap_or_else(|_| "a strategy that failed to describe itself".to_owned())
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("request", &self.request())
            .field("verdict", &self.verdict)
            .field("refusal", &self.refusal)
            .field("elapsed", &self.elapsed)
            .field("strategy", &self.strategy)
            .field("history", &self.history())
            .finish()
    }
}
