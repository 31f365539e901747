//! Events: one for each retry and each refusal.

use std::fmt;
use std::time::Duration;

use crate::failure::{Failure, Stage};
use crate::reason::Reason;
use crate::request::Request;
use crate::strategy::Refusal;

/// One retry or one refusal. RFC 0049 ("Retry Orchestration") requires both to
/// be logged, with the reason.
#[derive(Clone, Copy, Debug)]
pub struct RetryEvent<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) failure: &'a Failure,
    pub(crate) decided: Decided<'a>,
}

/// What was decided.
#[derive(Clone, Copy, Debug)]
pub enum Decided<'a> {
    /// Another attempt, after this delay.
    Retry {
        /// The delay, after any capping.
        delay: Duration,
        /// Whether the deadline cut the delay short, so that no attempt follows it.
        capped: bool,
    },
    /// No other attempt.
    Refused(&'a Refusal),
}

impl<'a> RetryEvent<'a> {
    /// The request's number.
    pub fn request_id(&self) -> u64 {
        self.request.id().unwrap_or(0)
    }

    /// The request.
    pub const fn request(&self) -> Request<'a> {
        self.request
    }

    /// The operation's name.
    pub const fn operation(&self) -> &'static str {
        self.request.operation()
    }

    /// The attempt that failed, the first being 1.
    pub const fn attempt(&self) -> u32 {
        self.request.attempts()
    }

    /// What is known of the failure.
    pub const fn failure(&self) -> &'a Failure {
        self.failure
    }

    /// Why the attempt failed.
    pub const fn reason(&self) -> &'static Reason {
        self.failure.reason
    }

    /// How far the attempt got.
    pub const fn stage(&self) -> Stage {
        self.failure.stage
    }

    /// What was decided.
    pub const fn decided(&self) -> Decided<'a> {
        self.decided
    }

    /// The delay, if there is to be a retry.
    pub const fn delay(&self) -> Option<Duration> {
        match self.decided {
            Decided::Retry { delay, .. } => Some(delay),
            Decided::Refused(_) => None,
        }
    }

    /// The refusal, if there is to be none.
    pub const fn refusal(&self) -> Option<&'a Refusal> {
        match self.decided {
            Decided::Retry { .. } => None,
            Decided::Refused(refusal) => Some(refusal),
        }
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn trace(&self) {
        let (request, operation, attempt) = (self.request_id(), self.operation(), self.attempt());
        let (reason, stage) = (self.reason().name(), self.stage().name());
        match self.decided {
            Decided::Retry { delay, capped } => tracing::debug!(
                request,
                operation,
                attempt,
                reason,
                stage,
                ?delay,
                capped,
                "retry"
            ),
            Decided::Refused(refusal) => {
                let cause = refusal.cause().name();
                tracing::debug!(
                    request,
                    operation,
                    attempt,
                    reason,
                    stage,
                    cause,
                    "not retried"
                );
            }
        }
    }
}

impl fmt::Display for RetryEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, id, attempt) = (self.operation(), self.request_id(), self.attempt());
        write!(
            f,
            "{operation} (request {id}) attempt {attempt} failed: {} ",
            self.reason()
        )?;
        match self.decided {
            Decided::Retry {
                delay,
                capped: false,
            } => write!(f, "retry in {delay:?}"),
            Decided::Retry {
                delay,
                capped: true,
            } => write!(f, "times out in {delay:?}"),
            Decided::Refused(refusal) => write!(f, "not retried: {refusal}"),
        }
    }
}
