//! A call in progress, as its strategy sees it.

use std::any::Any;
use std::fmt;
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::rare_box::RareBox;
use crate::reason::ReasonSet;
use crate::report::{History, RequestEnd, Trail};

/// RFC 0049's `Request` ("Request Annotation"): what a strategy may know of a
/// call, and what became of it so far. The user's own data is one typed value
/// instead of a map:
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
/// It is a view: the orchestrator alone writes what stands behind it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub(crate) call: &'a Call,
    pub(crate) started: Option<Instant>,
    pub(crate) progress: &'a Progress,
}

/// What became of a call so far.
pub(crate) struct Progress {
    pub(crate) attempts: u32,
    pub(crate) retries: u32,
    pub(crate) may_have_been_applied: bool,
    /// Whether an orchestrator drives the call. A strategy that is asked without one
    /// has to apply the law itself.
    pub(crate) orchestrated: bool,
    pub(crate) trail: Option<Trail>,
    pub(crate) ended: RareBox<RequestEnd>,
}

impl Progress {
    /// The progress of a call that has not begun. A function and not a constant, which
    /// would be copied whole, the empty trail included.
    #[inline]
    pub(crate) const fn none(orchestrated: bool) -> Self {
        Self {
            attempts: 0,
            retries: 0,
            may_have_been_applied: false,
            orchestrated,
            trail: None,
            ended: RareBox::NONE,
        }
    }

    /// The progress of a call that no orchestrator drives.
    pub(crate) const NONE: &'static Self = {
        static NONE: Progress = Progress::none(false);
        &NONE
    };
}

impl<'a> Request<'a> {
    /// The operation's name.
    #[inline]
    pub const fn operation(&self) -> &'static str {
        self.call.operation
    }

    /// The service's name, empty if none was given.
    #[inline]
    pub const fn service(&self) -> &'static str {
        self.call.service
    }

    /// Whether doing the operation twice does no more than doing it once.
    #[inline]
    pub const fn is_idempotent(&self) -> bool {
        self.call.idempotent
    }

    /// When the request must be over, if it must. A timeout beyond what the
    /// clock can represent is no timeout.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.started?.checked_add(self.call.timeout?)
    }

    /// The time from `now` to the deadline: none left is zero, no deadline is `None`.
    #[inline]
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        self.deadline()
            .map(|deadline| deadline.saturating_duration_since(now))
    }

    /// When the request started. Without a deadline the clock is first read
    /// after a failure, if that leads to a wait, and this is the time given.
    #[inline]
    pub fn started(&self) -> Option<Instant> {
        match (self.started, &self.progress.trail) {
            (None, Some(trail)) => trail.first_failure_at,
            (started, _) => started,
        }
    }

    /// The value that the user attached, if it is a `T`.
    pub fn context<T: Any>(&self) -> Option<&'a T> {
        self.call.context.get()?.downcast_ref()
    }

    /// How many attempts were started.
    #[inline]
    pub const fn attempts(&self) -> u32 {
        self.progress.attempts
    }

    /// How many retries were decided on, RFC 0049's `retryAttempts`.
    #[inline]
    pub const fn retries(&self) -> u32 {
        self.progress.retries
    }

    /// The reasons of those retries, RFC 0049's `retryReasons`.
    pub fn reasons(&self) -> ReasonSet {
        self.progress
            .trail
            .as_ref()
            .map(Trail::reasons)
            .unwrap_or_default()
    }

    /// Whether an attempt's bytes may have left without a conclusive answer.
    /// Once true, it stays true.
    #[inline]
    pub const fn may_have_been_applied(&self) -> bool {
        self.progress.may_have_been_applied
    }

    /// Whether the caller cannot know if the operation took effect, should it
    /// end now: it may have been applied, and it is not idempotent (D14).
    #[inline]
    pub const fn is_ambiguous(&self) -> bool {
        self.may_have_been_applied() && !self.is_idempotent()
    }

    /// What became of each attempt so far. While a strategy is asked about a
    /// failure, that is the last record, and undecided.
    pub fn history(&self) -> History<'a> {
        History::new(self.progress.trail.as_ref())
    }

    /// The number that events of this request carry. It is drawn at the first
    /// failure; a request that succeeds at once never has one.
    pub fn id(&self) -> Option<u64> {
        self.progress.trail.as_ref().map(|trail| trail.id)
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
