//! The error of a call that did not succeed.
//!
//! `{}` is one line for logs, `{:#}` the whole history, and `to_json` (feature `json`)
//! the same for machines.

mod display;
#[cfg(feature = "json")]
mod json;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub(crate) use display::Time;

use crate::classify::RetryInfo;
use crate::failure::{Failure, Safety};
use crate::report::{Report, Verdict};
use crate::strategy::{Cause, Refusal};

/// A call did not succeed.
///
/// It holds the last attempt's own error, unless the time ran out before there was one.
pub struct Error<E> {
    inner: Box<ErrorParts<E>>,
}

struct ErrorParts<E> {
    report: Report,
    last: Option<E>,
}

impl<E> Error<E> {
    #[cold]
    pub(crate) fn new(report: Report, last: Option<E>) -> Self {
        Self {
            inner: Box::new(ErrorParts { report, last }),
        }
    }

    /// Makes an error of a report, for drivers of an [`Orchestrator`] and for callers
    /// that replace the attempt's own error.
    ///
    /// [`Orchestrator`]: crate::Orchestrator
    #[cold]
    pub fn from_parts(report: Report, last: Option<E>) -> Self {
        Self::new(report, last)
    }

    /// Returns the report and the last attempt's own error.
    pub fn into_parts(self) -> (Report, Option<E>) {
        let ErrorParts { report, last } = *self.inner;
        (report, last)
    }

    /// Returns the verdict: failed or timed out, ambiguous or not.
    pub fn verdict(&self) -> Verdict {
        self.inner.report.verdict()
    }

    /// Returns whether the deadline ended the call.
    pub fn is_timeout(&self) -> bool {
        self.verdict().is_timeout()
    }

    /// Returns whether the outcome is unknown: the operation may have been applied, and it
    /// is not idempotent ([D14](crate::decisions#d14)).
    pub fn is_ambiguous(&self) -> bool {
        self.verdict().is_ambiguous()
    }

    /// Returns whether the client shed the call or a retry of it, because the peer is
    /// overloaded ([D41](crate::decisions#d41)). Nothing was sent if there was no attempt.
    pub fn is_shed(&self) -> bool {
        self.was_refused_for(Cause::Shed)
    }

    /// Returns how long to wait before making the call again, if it was
    /// [shed](Self::is_shed).
    pub fn try_again_in(&self) -> Option<Duration> {
        let refusal = self.refusal().filter(|_| self.is_shed())?;
        refusal.delay()
    }

    /// Returns whether the call was retried.
    pub fn was_retried(&self) -> bool {
        self.report().attempts() > 1
    }

    /// Returns whether a retry was refused for this cause.
    pub fn was_refused_for(&self, cause: Cause) -> bool {
        self.refusal()
            .is_some_and(|refusal| refusal.cause() == cause)
    }

    /// Returns why there was no retry. `None` if a capped wait ended the call.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.inner.report.refusal()
    }

    /// Returns the error that the strategy raised in place of the attempt's own.
    pub fn raised(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.refusal()?.raised()
    }

    /// Returns the report: attempts, reasons, history.
    pub fn report(&self) -> &Report {
        &self.inner.report
    }

    /// Returns the last attempt's own error.
    pub fn last_error(&self) -> Option<&E> {
        self.inner.last.as_ref()
    }

    /// Takes the last attempt's own error.
    pub fn into_last_error(self) -> Option<E> {
        self.inner.last
    }
}

/// Classifies the error of a call inside an attempt of another call. If the inner call was
/// retried, or may have been applied, the outer call does not retry it.
impl<E> RetryInfo for Error<E> {
    fn is_retry_safe(&self) -> Safety {
        self.to_failure().safety
    }

    fn to_failure(&self) -> Failure {
        self.report().to_failure()
    }
}

/// Its source is the [`Report`], which shows every attempt. So the history survives in the
/// chain of any other error, and [`already_retried`](crate::classify::already_retried) finds
/// it there. The attempt's own error is [`last_error`](Error::last_error); it is in the chain if
/// [`Report::with_source`] added it.
impl<E: fmt::Debug + fmt::Display> StdError for Error<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.report())
    }
}

impl<E: fmt::Debug> fmt::Debug for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("report", &self.inner.report)
            .field("last", &self.inner.last)
            .finish()
    }
}

#[cfg(test)]
mod tests;
