//! Best effort, except where waiting will not help.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use super::{BestEffort, Ending, ForeignToken, Limits, RetryStrategy, WorstCase};
use crate::decision::{Answer, Decision};
use crate::failure::Failure;
use crate::reason::Reason;
use crate::refusal::{BoxError, Cause, Refusal};
use crate::request::Request;
use crate::token::RetryToken;
use crate::world::World;

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
/// use steadfast::{BestEffort, FastFailOnTerminalError, Terminal, reason};
///
/// let strategy = FastFailOnTerminalError::new(
///     BestEffort::default(),
///     vec![Terminal::new(&reason::AUTHENTICATION_ERROR, |_request, _failure| {
///         "the server refused these credentials".into()
///     })],
/// );
/// # let _ = strategy;
/// ```
#[derive(Clone, Debug)]
pub struct FastFailOnTerminalError<S = BestEffort> {
    otherwise: S,
    terminals: Cow<'static, [Terminal]>,
}

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

impl<S: RetryStrategy> FastFailOnTerminalError<S> {
    /// Gives up on the terminal reasons and is `otherwise` in all else.
    pub fn new(otherwise: S, terminals: impl Into<Cow<'static, [Terminal]>>) -> Self {
        Self {
            otherwise,
            terminals: terminals.into(),
        }
    }
}

impl<S: RetryStrategy> RetryStrategy for FastFailOnTerminalError<S> {
    #[inline]
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        self.otherwise.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let terminal = self
            .terminals
            .iter()
            .find(|terminal| terminal.reason == failure.reason);
        match terminal {
            Some(terminal) => {
                self.otherwise
                    .record_end(token, Ending::failed(failure), world);
                let error = (terminal.raise)(request, failure);
                Refusal::new(Cause::Terminal).raising(error).into()
            }
            None => self
                .otherwise
                .refresh_retry_token(token, request, failure, world),
        }
    }

    #[inline]
    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        self.otherwise.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.otherwise.record_end(token, ending, world);
    }

    fn worst_case(&self, limits: &Limits) -> WorstCase {
        self.otherwise.worst_case(limits)
    }

    fn budget_left(&self, now: Instant) -> Option<u64> {
        self.otherwise.budget_left(now)
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.otherwise.is_plain()
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let otherwise = self.otherwise.fork(now)?;
        Some(Box::new(FastFailOnTerminalError {
            otherwise,
            terminals: self.terminals.clone(),
        }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fast-fail on terminal errors, otherwise ")?;
        self.otherwise.describe(f)
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Terminal")
            .field(&self.reason.name())
            .finish()
    }
}
