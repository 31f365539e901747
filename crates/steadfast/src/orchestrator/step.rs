//! What to do next, and what there is to say at the end.

use std::fmt;
use std::time::{Duration, Instant};

use super::guarded;
use crate::call::Call;
use crate::decision::PendingDecision;
use crate::history::{Ended, History, Outcome};
use crate::reason::ReasonSet;
use crate::refusal::Refusal;
use crate::request::{Progress, Request};
use crate::strategy::{Described, RetryStrategy};
use crate::verdict::{Certainty, Verdict};

/// What a driver has to do next.
#[must_use = "the request goes on only if the step is taken"]
#[repr(u64)] // A tag of one word keeps the payload aligned, and the step cheap to move.
pub enum Step {
    /// Make an attempt, then call `handle_success` or `handle_failure`.
    Attempt,
    /// Wait for `delay`, then call `handle_waited`.
    Wait {
        /// The time to wait.
        delay: Duration,
        /// Whether the delay was cut at the deadline. The timeout follows such a
        /// wait, unless the request is woken before.
        capped: bool,
    },
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
            Step::Wait { delay, capped } => f
                .debug_struct("Wait")
                .field("delay", delay)
                .field("capped", capped)
                .finish(),
            Step::Ask(_) => f.write_str("Ask"),
            Step::GiveUp(verdict) => f.debug_tuple("GiveUp").field(verdict).finish(),
            Step::LeftAlone => f.write_str("LeftAlone"),
        }
    }
}

/// The whole story of a request that did not succeed.
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
    pub(super) fn new<S: RetryStrategy>(
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
            Some(Ended {
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
