//! Reasons that fail a request at once, because retrying cannot help.

use std::borrow::Cow;
use std::fmt;

use super::{Gate, Gated};
use crate::failure::Failure;
use crate::reason::Reason;
use crate::request::Request;
use crate::strategy::{BestEffort, BoxError, Cause, Refusal, RetryStrategy};

/// RFC 0049 revision 16's "Fail Fast (Terminal Errors)": bad credentials, a
/// certificate nobody trusts, a bucket that does not exist. Such failures are
/// retried by best effort until the deadline, and the user gets a timeout that
/// explains little. This strategy gives up at once, with an error that says
/// what is wrong, and is otherwise the strategy that it wraps.
///
/// Which reasons are terminal, and which error each becomes, is the protocol's
/// to say; the list is searched in its order.
///
/// **Volatile.** What counts as terminal will be widened where users are better
/// served by it, without that counting as a breaking change. If you depend on
/// an exact list, write it down in your own program and pass it here.
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
    /// A terminal reason and the error that it becomes.
    pub const fn new(
        reason: &'static Reason,
        raise: fn(&Request<'_>, &Failure) -> BoxError,
    ) -> Self {
        Self { reason, raise }
    }
}

impl<S: RetryStrategy> Gated<S, Terminals> {
    /// Gives up on the terminal reasons and is `otherwise` in all else.
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
