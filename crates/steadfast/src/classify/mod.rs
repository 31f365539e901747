//! Classifiers: functions from an error to a [`Failure`].
//!
//! [`also`](Classifier::also) adds a special case to one.
//!
//! ```
//! use std::io;
//! use steadfast::classify::{ByInfo, Classifier};
//! use steadfast::{Failure, reason};
//!
//! // As `io::Error` says of itself, and also: our proxy answers "would block"
//! // when it is out of connections, and has then sent nothing on.
//! let classifier = ByInfo.also(|error: &io::Error| {
//!     (error.kind() == io::ErrorKind::WouldBlock)
//!         .then(|| Failure::not_sent(&reason::NOT_AVAILABLE))
//! });
//! let failure = classifier.classify(&io::ErrorKind::WouldBlock.into());
//! assert_eq!(failure.reason, &reason::NOT_AVAILABLE);
//! ```

mod info;
pub mod inner;

pub use info::{ErrorInfo, RetryInfo};
use inner::LookInto;
pub use inner::already_retried;

pub use crate::driver::Unaccepted;
use crate::failure::{Failure, Safety};
pub use crate::orchestrator::guarded;
use crate::reason::OPERATION_FAILED;
use crate::strategy::Refusal;

/// Turns an error into a [`Failure`]. Any `Fn(&E) -> Failure` is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it is safe to retry `{E}`",
    label = "`{E}` has no `RetryInfo`, and there is no classifier for it",
    note = "implement `steadfast::classify::RetryInfo` for it if it is yours",
    note = "otherwise pass a classifier: `.classify(|error: &{E}| …)`, or `.classify(steadfast::classify::any_error)` to retry any error of an idempotent call"
)]
pub trait Classifier<E: ?Sized> {
    /// Returns the failure of an attempt that ended with this error.
    fn classify(&self, error: &E) -> Failure;

    /// Classifies an error as the engine does: a panic becomes a refusal.
    ///
    /// Override this if the error was classified before, and return what [`guarded`]
    /// returned then.
    fn classify_guarded(&self, error: &E) -> Result<Failure, Refusal> {
        guarded(|| self.classify(error))
    }

    /// Asks `special` first, and this classifier if `special` returns nothing.
    fn also<F>(self, special: F) -> Also<Self, F>
    where
        Self: Sized,
        F: Fn(&E) -> Option<Failure>,
    {
        Also {
            usual: self,
            special,
        }
    }
}

impl<E: ?Sized, F: Fn(&E) -> Failure> Classifier<E> for F {
    fn classify(&self, error: &E) -> Failure {
        self(error)
    }
}

/// Uses the error's own [`RetryInfo`]. This is the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByInfo;

impl<E: RetryInfo + ?Sized> Classifier<E> for ByInfo {
    fn classify(&self, error: &E) -> Failure {
        error.to_failure()
    }
}

/// See [`Classifier::also`].
#[derive(Clone, Copy, Debug)]
pub struct Also<C, F> {
    usual: C,
    special: F,
}

impl<E: ?Sized, C: Classifier<E>, F: Fn(&E) -> Option<Failure>> Classifier<E> for Also<C, F> {
    fn classify(&self, error: &E) -> Failure {
        (self.special)(error).unwrap_or_else(|| self.usual.classify(error))
    }
}

/// Treats every error as possibly temporary, with an unknown outcome: retried only if the
/// call is idempotent. The error of a call that was [retried already](already_retried) is
/// not retried again.
///
/// Takes errors, boxes of errors such as `anyhow::Error`, and text.
pub fn any_error<E: LookInto<Kind> + ?Sized, Kind>(error: &E) -> Failure {
    let inner = error.as_error().and_then(already_retried);
    inner.unwrap_or_else(|| Failure::in_flight(&OPERATION_FAILED))
}

/// Classifies by the side at fault, for errors that state nothing else: not retried if it
/// is the client (Smithy guidance; [D35](crate::decisions#d35)).
pub fn by_fault<E: ErrorInfo + ?Sized>(error: &E) -> Failure {
    let fault = error.fault();
    Failure::in_flight(&OPERATION_FAILED)
        .with_fault(fault)
        .with_safety(Safety::from_fault(fault))
}
