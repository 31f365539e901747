//! Events: one for each retry, each refusal, and each request that the client shed.

use std::fmt;
use std::time::Duration;

use crate::failure::{Failure, Stage};
use crate::reason::Reason;
use crate::report::{AttemptRecord, Outcome};
use crate::request::Request;
use crate::strategy::Refusal;

/// One retry or one refusal. RFC 0049 ("Retry Orchestration") requires both to
/// be logged, with the reason.
#[derive(Clone, Copy, Debug)]
pub struct RetryEvent<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) record: &'a AttemptRecord,
    pub(crate) refusal: Option<&'a Refusal>,
}

impl<'a> RetryEvent<'a> {
    /// Returns the request's number.
    pub fn request_id(&self) -> u64 {
        self.request.id().unwrap_or(0)
    }

    /// Returns the request.
    pub const fn request(&self) -> Request<'a> {
        self.request
    }

    /// Returns the operation's name.
    pub const fn operation(&self) -> &'static str {
        self.request.operation()
    }

    /// Returns the number of the attempt that failed; the first is 1. Zero if the client
    /// shed the request, so that no attempt was made.
    pub const fn attempt(&self) -> u32 {
        self.request.attempts()
    }

    /// Returns the failure.
    pub const fn failure(&self) -> &'a Failure {
        &self.record.failure
    }

    /// Returns the reason of the failure.
    pub const fn reason(&self) -> &'static Reason {
        self.record.failure.reason
    }

    /// Returns how far the attempt got.
    pub const fn stage(&self) -> Stage {
        self.record.failure.stage
    }

    /// Returns the decision: a retry, or a refusal and its cause.
    pub const fn outcome(&self) -> Outcome {
        self.record.outcome
    }

    /// Returns the delay before the retry, `None` if the retry was refused.
    pub const fn delay(&self) -> Option<Duration> {
        match self.outcome() {
            Outcome::Retry { delay, .. } => Some(delay),
            Outcome::Refused(_) | Outcome::Undecided => None,
        }
    }

    /// Returns the refusal, `None` if there is a retry.
    pub const fn refusal(&self) -> Option<&'a Refusal> {
        self.refusal
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn trace(&self) {
        let (request, operation, attempt) = (self.request_id(), self.operation(), self.attempt());
        let (reason, stage) = (self.reason().name(), self.stage().name());
        macro_rules! emit {
            ($($field:tt)*) => {
                tracing::debug!(request, operation, attempt, reason, stage, $($field)*)
            };
        }
        match self.outcome() {
            Outcome::Retry { delay, capped } if capped => {
                emit!(?delay, capped, "waits for the deadline");
            }
            Outcome::Retry { delay, capped } => emit!(?delay, capped, "retry"),
            Outcome::Refused(cause) if attempt == 0 => {
                let delay = self.refusal.and_then(Refusal::delay);
                emit!(cause = cause.name(), ?delay, "shed");
            }
            Outcome::Refused(cause) => emit!(cause = cause.name(), "not retried"),
            Outcome::Undecided => {}
        }
    }
}

impl fmt::Display for RetryEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, id) = (self.operation(), self.request_id());
        match self.attempt() {
            0 => write!(f, "{operation} (request {id}) was shed: ")?,
            attempt => {
                let reason = self.reason();
                write!(
                    f,
                    "{operation} (request {id}) attempt {attempt} failed: {reason} "
                )?;
            }
        }
        match (self.outcome(), self.refusal) {
            (Outcome::Retry { delay, capped }, _) => {
                let next = if capped { "times out" } else { "retry" };
                write!(f, "{next} in {delay:?}")
            }
            (_, Some(refusal)) if self.attempt() == 0 => write!(f, "{refusal}"),
            (_, Some(refusal)) => write!(f, "not retried: {refusal}"),
            (outcome, None) => write!(f, "{outcome:?}"),
        }
    }
}
