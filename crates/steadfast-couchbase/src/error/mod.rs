//! Errors of operations.
//!
//! An error prints as one line for logs, with its whole history by `{:#}`, and as
//! JSON by [`Error::to_json`]. None of them contains document values or
//! credentials; keys appear only with [`ClusterOptions::unredacted_keys`].
//!
//! [`ClusterOptions::unredacted_keys`]: crate::ClusterOptions::unredacted_keys

mod context;
mod display;
mod json;
mod kind;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub use context::{ErrorContext, HttpContext, KvContext, OperationTarget};
pub use kind::ErrorKind;
use steadfast::reason::ReasonSet;
use steadfast::report::Report;
use steadfast::strategy::Cause;

/// The error of an operation.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    context: ErrorContext,
}

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error of this kind for this operation.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                context: ErrorContext::new(operation),
            }),
        }
    }

    /// Adds a note on what happened, which must not contain document values or
    /// credentials.
    pub(crate) fn because(mut self, note: impl Into<String>) -> Self {
        self.inner.context.note = Some(note.into());
        self
    }

    pub(crate) fn with_report(mut self, report: Report) -> Self {
        self.inner.context.report = Some(report);
        self
    }

    pub(crate) fn with_target(mut self, target: OperationTarget) -> Self {
        self.inner.context.target = target;
        self
    }

    pub(crate) fn with_kv(mut self, mut kv: KvContext) -> Self {
        // What is known of a path says more than the response as a whole.
        if let Some(known) = &self.inner.context.kv
            && known.path_index.is_some()
        {
            (kv.path_index, kv.status) = (known.path_index, known.status);
        }
        self.inner.context.kv = Some(kv);
        self
    }

    pub(crate) fn with_http(mut self, http: HttpContext) -> Self {
        self.inner.context.http = Some(http);
        self
    }

    /// States that the operation may have been applied, if no report says so.
    pub(crate) fn ambiguous(mut self, ambiguous: bool) -> Self {
        self.inner.context.ambiguous = ambiguous;
        self
    }

    /// Returns the kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether the operation timed out.
    pub fn is_timeout(&self) -> bool {
        self.kind().is_timeout()
    }

    /// Whether the operation has an unknown outcome: it may have been applied, and
    /// applying it again could do harm (decision [D14](steadfast::decisions#d14)).
    pub fn is_ambiguous(&self) -> bool {
        let by_kind = matches!(
            self.kind(),
            ErrorKind::DurabilityAmbiguous | ErrorKind::AmbiguousTimeout
        );
        let by_report = |report: &Report| report.verdict().is_ambiguous();
        by_kind || self.context().ambiguous || self.context().report().is_some_and(by_report)
    }

    /// Whether the client shed the operation or a retry of it, because its node is
    /// overloaded ([D41](steadfast::decisions#d41)). Nothing was sent if there was no
    /// attempt.
    pub fn is_shed(&self) -> bool {
        let refusal = self.context().report().and_then(Report::refusal);
        refusal.is_some_and(|refusal| refusal.cause() == Cause::Shed)
    }

    /// Returns how long to wait before the operation is tried again, if the client shed it
    /// or a retry of it.
    pub fn try_again_in(&self) -> Option<Duration> {
        let refusal = self.context().report()?.refusal()?;
        (refusal.cause() == Cause::Shed).then(|| refusal.delay())?
    }

    /// Returns the reasons for which the operation was retried (RFC 0049's
    /// `retryReasons`), and the reason of the last attempt.
    pub fn reasons(&self) -> ReasonSet {
        self.context()
            .report()
            .map(Report::all_reasons)
            .unwrap_or_default()
    }

    /// Returns the number of attempts.
    pub fn attempts(&self) -> u32 {
        self.context().report().map_or(0, Report::attempts)
    }

    /// Returns everything that is known about the error.
    pub fn context(&self) -> &ErrorContext {
        &self.inner.context
    }

    /// Returns everything that is known about the error as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        json::error_to_json(self)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("context", &self.inner.context)
            .finish()
    }
}

impl StdError for Error {
    /// Returns the report. Its own source is the error that the strategy raised, if it
    /// raised one.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let report = self.context().report()?;
        Some(report)
    }
}

#[cfg(test)]
mod tests;
