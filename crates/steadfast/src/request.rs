//! A call in progress, as its strategy sees it.

use std::any::Any;
use std::fmt;
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::reason::ReasonSet;
use crate::report::{History, Outcome, Trail};

/// RFC 0049's `Request` ("Request Annotation"): a call and its progress, as a strategy
/// sees them. The user's own data is one typed value instead of a map:
///
/// ```
/// use steadfast::Call;
///
/// struct Caller { robot: bool }
///
/// let call = Call::new("get").idempotent(true).context(Caller { robot: true });
/// let request = call.request();
/// assert!(request.context::<Caller>().is_some_and(|caller| caller.robot));
/// assert!(request.context::<String>().is_none());
/// assert_eq!(request.retries(), 0);
/// ```
///
/// It is a read-only view; only the orchestrator changes the progress.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub(crate) call: &'a Call,
    pub(crate) started: Option<Instant>,
    pub(crate) progress: &'a Progress,
}

/// The progress of a call.
pub(crate) struct Progress {
    pub(crate) attempts: u32,
    pub(crate) retries: u32,
    pub(crate) may_have_been_applied: bool,
    /// Whether the attempt under way is known to have done no I/O.
    pub(crate) idle: bool,
    /// The retries without a delay that attempts without I/O were given, in a row.
    pub(crate) idle_retries: u32,
    /// Whether an orchestrator drives the call. Without one, the strategy applies the law
    /// itself.
    pub(crate) orchestrated: bool,
    pub(crate) trail: Trail,
}

impl Progress {
    /// The progress of a call after a number of attempts, none of which failed.
    pub(crate) const fn after(attempts: u32, orchestrated: bool) -> Self {
        Self {
            attempts,
            retries: 0,
            may_have_been_applied: false,
            idle: false,
            idle_retries: 0,
            orchestrated,
            trail: Trail::empty(),
        }
    }

    /// The progress of a request that has not begun.
    pub(crate) const NEW: &'static Self = {
        static NEW: Progress = Progress::after(0, true);
        &NEW
    };

    /// The progress of a request in its first attempt.
    pub(crate) const FIRST: &'static Self = {
        static FIRST: Progress = Progress::after(1, true);
        &FIRST
    };

    /// The progress of a call that no orchestrator drives.
    pub(crate) const NONE: &'static Self = {
        static NONE: Progress = Progress::after(0, false);
        &NONE
    };
}

impl<'a> Request<'a> {
    /// Returns the operation's name.
    pub const fn operation(&self) -> &'static str {
        self.call.operation
    }

    /// Returns the service's name, empty if none was given.
    pub const fn service(&self) -> &'static str {
        self.call.service
    }

    /// Returns whether the operation is idempotent.
    pub const fn is_idempotent(&self) -> bool {
        self.call.idempotent
    }

    /// Returns whether the operation is a long poll. See [`Call::long_polling`].
    pub const fn is_long_polling(&self) -> bool {
        self.call.long_polling
    }

    /// Returns the deadline, if there is one. A timeout that the clock cannot represent
    /// counts as none.
    pub fn deadline(&self) -> Option<Instant> {
        self.started?.checked_add(self.call.timeout?)
    }

    /// Returns the time from `now` to the deadline: zero if it has passed, `None` without one.
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        self.deadline()
            .map(|deadline| deadline.saturating_duration_since(now))
    }

    /// Returns when the request started. Without a deadline, that is the time of the
    /// first failure that led to a wait, when the clock was first read.
    pub fn started(&self) -> Option<Instant> {
        match self.started {
            None => self.progress.trail.first_failure_at,
            started => started,
        }
    }

    /// Returns the value that the user attached, if it is a `T`.
    pub fn context<T: Any>(&self) -> Option<&'a T> {
        self.call.context.as_ref()?.downcast_ref()
    }

    /// Returns the number of attempts that were started.
    pub const fn attempts(&self) -> u32 {
        self.progress.attempts
    }

    /// Returns the number of retries, RFC 0049's `retryAttempts`. A retry counts from its
    /// decision on, before its delay. One that the deadline or a cancellation prevented
    /// does not count: at the end, this is the number of attempts after the first.
    pub const fn retries(&self) -> u32 {
        self.progress.retries
    }

    /// Returns the reasons of those retries, RFC 0049's `retryReasons`. The reason of a
    /// retry that the deadline prevented is among them: it says why the request waited.
    pub fn reasons(&self) -> ReasonSet {
        self.progress.trail.reasons()
    }

    /// Returns whether an attempt's bytes may have left without a conclusive response.
    /// Once true, it stays true.
    pub const fn may_have_been_applied(&self) -> bool {
        self.progress.may_have_been_applied
    }

    /// Returns whether the outcome would be unknown if the request ended now: it may have
    /// been applied, and it is not idempotent ([D14](crate::decisions#d14)).
    pub const fn is_ambiguous(&self) -> bool {
        self.may_have_been_applied() && !self.is_idempotent()
    }

    /// Returns the failed attempts so far. While a strategy decides about a failure, its
    /// record is the last one, and undecided.
    pub fn history(&self) -> History<'a> {
        History::new(&self.progress.trail)
    }

    /// Returns whether a strategy is asked about the last failure again. It granted a retry
    /// before, which would have come after the deadline, and then the request was woken.
    pub fn is_asked_again(&self) -> bool {
        let last = self.progress.trail.last.as_ref();
        last.is_some_and(|last| matches!(last.outcome, Outcome::Retry { capped: true, .. }))
    }

    /// Returns the number of this request in events. A request without a failure has none.
    pub fn id(&self) -> Option<u64> {
        let id = self.progress.trail.id;
        (id != 0).then_some(id)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("call", &self.call)
            .field("attempts", &self.attempts())
            .field("retries", &self.retries())
            .field("reasons", &self.reasons())
            .field("may_have_been_applied", &self.may_have_been_applied())
            .finish_non_exhaustive()
    }
}
