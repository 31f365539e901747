//! What an operation that did not succeed says.
//!
//! One line for logs, the whole history with `{:#}`, the same for machines with
//! [`Error::to_json`]. Document values and credentials never appear in any of
//! them; keys only if [`ClusterOptions::unredacted_keys`] asked for it.
//!
//! [`ClusterOptions::unredacted_keys`]: crate::ClusterOptions::unredacted_keys

mod context;
mod display;
mod json;
mod kind;

use std::error::Error as StdError;
use std::fmt;

pub use context::{ErrorContext, HttpContext, KvContext, OperationTarget};
pub use kind::ErrorKind;
use steadfast::reason::ReasonSet;
use steadfast::report::Report;

/// An operation did not succeed.
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
    /// An error of this kind, which happened to this operation.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                context: ErrorContext::new(operation),
            }),
        }
    }

    /// Says in a few words what happened. Never document values, never
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

    pub(crate) fn with_kv(mut self, kv: KvContext) -> Self {
        self.inner.context.kv = Some(kv);
        self
    }

    pub(crate) fn with_http(mut self, http: HttpContext) -> Self {
        self.inner.context.http = Some(http);
        self
    }

    /// States that the operation may have been applied, where there is no report
    /// that would say so.
    pub(crate) fn ambiguous(mut self, ambiguous: bool) -> Self {
        self.inner.context.ambiguous = ambiguous;
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether the time was up.
    pub fn is_timeout(&self) -> bool {
        self.kind().is_timeout()
    }

    /// Whether the operation may have been applied although it is not known to
    /// have been, and applying it again would not be the same (D14).
    pub fn is_ambiguous(&self) -> bool {
        let by_kind = matches!(
            self.kind(),
            ErrorKind::DurabilityAmbiguous | ErrorKind::AmbiguousTimeout
        );
        by_kind
            || self.context().ambiguous
            || self
                .context()
                .report()
                .is_some_and(|report| report.verdict().is_ambiguous())
    }

    /// The reasons for which the operation was retried, RFC 0049's
    /// `retryReasons`, and that of the attempt after which it was not.
    pub fn reasons(&self) -> ReasonSet {
        self.context()
            .report()
            .map(Report::all_reasons)
            .unwrap_or_default()
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> u32 {
        self.context().report().map_or(0, Report::attempts)
    }

    /// Everything that is known about it.
    pub fn context(&self) -> &ErrorContext {
        &self.inner.context
    }

    /// Everything that is known about it, for machines.
    pub fn to_json(&self) -> serde_json::Value {
        json::of(self)
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
    /// The error that the strategy raised, if it raised one.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let raised = self.context().report()?.refusal()?.raised()?;
        Some(raised as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests;
