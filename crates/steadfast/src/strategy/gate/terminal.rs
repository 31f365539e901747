//! Reasons that fail a request at once, because retrying cannot help.

use std::borrow::Cow;
use std::fmt;

use super::{Gate, Gated};
use crate::failure::Failure;
use crate::reason::Reason;
use crate::request::Request;
use crate::strategy::{BestEffort, BoxError, Cause, Refusal, RetryStrategy};

/// RFC 0049 revision 16's "Fail Fast (Terminal Errors)": bad credentials, an untrusted
/// certificate, a missing bucket. Best effort would retry such failures until the
/// deadline, and the user would get a timeout that explains little. This strategy gives
/// up at once, with an error that names the problem. Other failures it leaves to the
/// strategy that it wraps.
///
/// The protocol defines which reasons are terminal, and the error for each. The first
/// match in the list counts.
///
/// **Volatile.** Reasons may be added to the list without that being a breaking change.
/// A program that depends on an exact list should pass its own.
///
/// ```
/// use steadfast::strategy::Terminal;
/// use steadfast::{BestEffort, FastFailOnTerminalError, reason};
///
/// let strategy = FastFailOnTerminalError::new(
///     BestEffort::default(),
///     vec![Terminal::new(&reason::AUTHENTICATION_ERROR, |_request, _failure| {
///         "the server refused these credentials".into()
///     })],
/// );
/// # let _ = strategy;
/// ```
pub type FastFailOnTerminalError<S = BestEffort> = Gated<S, Terminals>;

/// The reasons that end a request at once.
#[derive(Clone, Debug)]
pub struct Terminals(Cow<'static, [Terminal]>);

/// A reason that ends a request at once, and the error that it ends with.
#[derive(Clone, Copy)]
pub struct Terminal {
    reason: &'static Reason,
    raise: fn(&Request<'_>, &Failure) -> BoxError,
}

impl Terminal {
    /// Creates a terminal reason and the error that it becomes.
    pub const fn new(
        reason: &'static Reason,
        raise: fn(&Request<'_>, &Failure) -> BoxError,
    ) -> Self {
        Self { reason, raise }
    }
}

impl<S: RetryStrategy> Gated<S, Terminals> {
    /// Gives up after a terminal reason, and leaves other failures to `otherwise`.
    pub fn new(otherwise: S, terminals: impl Into<Cow<'static, [Terminal]>>) -> Self {
        Self::behind(Terminals(terminals.into()), otherwise)
    }
}

impl Gate for Terminals {
    fn refuses(&self, _: u32, request: &Request<'_>, failure: &Failure) -> Option<Refusal> {
        let terminal = self
            .0
            .iter()
            .find(|terminal| terminal.reason == failure.reason)?;
        let error = (terminal.raise)(request, failure);
        Some(Refusal::new(Cause::Terminal).raising(error))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failing fast on terminal errors")
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Terminal")
            .field(&self.reason.name())
            .finish()
    }
}
