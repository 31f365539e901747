//! The end of a request: its verdict, its history, and the report of both.

mod history;
mod verdict;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use history::{AttemptRecord, History, Outcome};
pub(crate) use history::{RequestEnd, Trail};
pub use verdict::{Certainty, Verdict};

use crate::call::Call;
use crate::failure::{Failure, Safety, Stage};
pub use crate::orchestrator::Panicked;
use crate::orchestrator::guarded;
use crate::reason::{OPERATION_FAILED, ReasonSet};
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
    ended_by_response: bool,
    strategy: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Report {
    #[cold]
    pub(crate) fn new(
        call: Call,
        started: Option<Instant>,
        mut progress: Progress,
        strategy: &dyn RetryStrategy,
    ) -> Self {
        let ended = progress.trail.take_end();
        let since = Request {
            call: &call,
            started,
            progress: &progress,
        }
        .started();
        let ended_by_response = ended.as_ref().is_some_and(|end| end.by_response);
        let (verdict, refusal, elapsed) = match ended {
            Some(RequestEnd {
                verdict,
                refusal,
                at,
                ..
            }) => (
                verdict,
                refusal,
                since.map(|since| at.saturating_duration_since(since)),
            ),
            // Taken of a request that is under way or has succeeded.
            None if call.idempotent => (Verdict::Failed(Certainty::Unambiguous), None, None),
            None => (Verdict::Failed(Certainty::Ambiguous), None, None),
        };
        Self {
            call,
            started,
            progress,
            verdict,
            refusal,
            elapsed,
            ended_by_response,
            strategy: described(strategy),
            source: None,
        }
    }

    /// Adds the error of the last attempt to the chain of sources, for code that searches it.
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn StdError + Send + Sync>) -> Self {
        self.source = Some(source);
        self
    }

    /// Returns the verdict.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns the request as it was at the end.
    pub const fn request(&self) -> Request<'_> {
        Request {
            call: &self.call,
            started: self.started,
            progress: &self.progress,
        }
    }

    /// Returns the number of attempts.
    pub const fn attempts(&self) -> u32 {
        self.request().attempts()
    }

    /// Returns the number of retries: the attempts after the first.
    pub const fn retries(&self) -> u32 {
        self.request().retries()
    }

    /// Returns the reasons of those retries.
    pub fn reasons(&self) -> ReasonSet {
        self.request().reasons()
    }

    /// Returns the failed attempts.
    pub fn history(&self) -> History<'_> {
        self.request().history()
    }

    /// Returns why there was no retry. `None` if a capped wait ended the request.
    pub const fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Returns whether a final response ended the request. The history has the failures
    /// before it, and not that response.
    pub const fn ended_by_response(&self) -> bool {
        self.ended_by_response
    }

    /// Returns the time from the start of the request to its end; without a deadline,
    /// from the first failure to the end.
    pub const fn elapsed(&self) -> Option<Duration> {
        self.elapsed
    }

    /// Returns the description of the strategy.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// Returns whether a call around this one must not retry it: it was retried already, or
    /// it may have been applied, or its time is over.
    pub(crate) fn has_used_up_retries(&self) -> bool {
        self.retries() > 0 || self.verdict.is_ambiguous() || self.verdict.is_timeout()
    }

    /// Returns the failure that the request is for a call around it.
    pub(crate) fn to_failure(&self) -> Failure {
        let mut failure = match self.history().last() {
            _ if self.ended_by_response => {
                Failure::responded(&OPERATION_FAILED).with_safety(Safety::No)
            }
            Some(record) => record.failure.clone(),
            // Nothing was sent.
            None => Failure::not_sent(&OPERATION_FAILED),
        };
        let applied = self.request().may_have_been_applied();
        if applied && !failure.stage.may_have_been_applied() {
            failure.stage = Stage::InFlight;
        }
        if self.has_used_up_retries() {
            let note = failure.note().unwrap_or("failed");
            let note = format!("an inner call gave up: {note}");
            failure = failure.with_safety(Safety::No).with_note(note);
        }
        failure
    }

    /// Returns the reasons of all failed attempts, retried or not.
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

/// Describes the strategy. A panic there must not replace the error.
fn described(strategy: &dyn RetryStrategy) -> String {
    guarded(|| Described(strategy).to_string())
        .unwrap_or_else(|_| "a strategy that failed to describe itself".to_owned())
}

/// The source of every error of a call. Its own source is the error that the strategy
/// raised, or the one that [`with_source`](Self::with_source) added.
impl StdError for Report {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match (self.refusal().and_then(Refusal::raised), &self.source) {
            (Some(raised), _) => Some(raised),
            (None, Some(source)) => Some(&**source),
            (None, None) => None,
        }
    }
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
