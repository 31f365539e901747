//! The client's default strategy: best effort, except for terminal reasons (RFC 0049
//! revision 16, "Fail Fast (Terminal Errors)"; decision D1, docs/decisions.md).

use std::error::Error as StdError;
use std::fmt;

use steadfast::strategy::{BoxError, Refusal, Terminal};
use steadfast::{BestEffort, Failure, FastFailOnTerminalError, RetryStrategy};

use crate::error::ErrorKind;
use crate::reason;

/// The five terminal reasons in the RFC's order ([D19](steadfast::decisions#d19)), that of a
/// server which does not prove itself ([D60](steadfast::decisions#d60)), and the error that each
/// becomes.
///
/// **Volatile**, as the RFC requires: later versions may add reasons. Copy the list
/// if you depend on exactly these.
pub const TERMINALS: [Terminal; 6] = [
    Terminal::new(&reason::AUTHENTICATION_ERROR, |_, failure| {
        let text = "the server refused these credentials; check user and password";
        raise_note(ErrorKind::AuthenticationFailure, text, failure)
    }),
    Terminal::new(&reason::TLS_ERROR, |_, failure| {
        let text = "no secure connection could be made; check which certificates are trusted";
        raise_with(ErrorKind::Couchbase, text, failure)
    }),
    Terminal::new(&reason::BUCKET_ACCESS_ERROR, |_, failure| {
        let text = "the server does not open the bucket; check that it exists and that the user \
                    has rights on it";
        raise_note(ErrorKind::Couchbase, text, failure)
    }),
    Terminal::new(&reason::SCOPE_NOT_FOUND, |_, _| {
        raise(ErrorKind::ScopeNotFound, "the bucket has no such scope")
    }),
    Terminal::new(&reason::COLLECTION_NOT_FOUND, |_, _| {
        raise(
            ErrorKind::CollectionNotFound,
            "the scope has no such collection",
        )
    }),
    Terminal::new(&reason::SERVER_NOT_PROVEN, |_, failure| {
        let text = "the server did not prove that it knows the password";
        raise_note(ErrorKind::AuthenticationFailure, text, failure)
    }),
];

/// Makes the client's default strategy: best effort that gives up at once on wrong
/// credentials, certificates, buckets, scopes and collections.
///
/// ```
/// use steadfast::BestEffort;
/// use steadfast_couchbase::{ClusterOptions, fast_fail_on_terminal_errors};
///
/// // The default:
/// let default = ClusterOptions::new().retry_strategy(fast_fail_on_terminal_errors());
/// // To retry until the timeout, while somebody corrects the cause:
/// let patient = ClusterOptions::new().retry_strategy(BestEffort::default());
/// # (default.validate()?, patient.validate()?);
/// # Ok::<(), steadfast_couchbase::ConfigError>(())
/// ```
pub fn fast_fail_on_terminal_errors() -> FastFailOnTerminalError<BestEffort> {
    fast_fail_or(BestEffort::default())
}

/// Makes a strategy that gives up at once on the terminal reasons, and otherwise
/// decides like another one.
pub fn fast_fail_or<S: RetryStrategy>(otherwise: S) -> FastFailOnTerminalError<S> {
    static LIST: [Terminal; 6] = TERMINALS;
    FastFailOnTerminalError::new(otherwise, &LIST[..])
}

/// The error that a terminal reason becomes.
#[derive(Debug)]
pub(crate) struct Raised {
    kind: ErrorKind,
    text: String,
}

impl Raised {
    /// Returns the kind of error that a refusal raises, if it is one of [`TERMINALS`].
    pub(crate) fn kind_of(refusal: &Refusal) -> Option<ErrorKind> {
        Some(refusal.raised()?.downcast_ref::<Self>()?.kind)
    }
}

fn raise(kind: ErrorKind, text: &str) -> BoxError {
    let text = text.to_owned();
    Box::new(Raised { kind, text })
}

/// Raises an error whose text is the failure's note, which says what happened. The
/// general text is for failures without one.
fn raise_note(kind: ErrorKind, general: &str, failure: &Failure) -> BoxError {
    raise(kind, failure.note().unwrap_or(general))
}

fn raise_with(kind: ErrorKind, text: &str, failure: &Failure) -> BoxError {
    match failure.note() {
        Some(note) => raise(kind, &format!("{text} ({note})")),
        None => raise(kind, text),
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Raised {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_reasons_are_in_the_order_of_the_rfc() {
        let names = TERMINALS.map(|terminal| format!("{terminal:?}"));
        let order = [
            "AUTHENTICATION_ERROR",
            "TLS_ERROR",
            "BUCKET_ACCESS_ERROR",
            "SCOPE_NOT_FOUND",
            "COLLECTION_NOT_FOUND",
            "SERVER_NOT_PROVEN",
        ];
        assert_eq!(names, order.map(|name| format!("Terminal({name:?})")));
    }
}
