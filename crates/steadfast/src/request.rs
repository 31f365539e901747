//! One call of the user, from its start to its verdict.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::history::{History, Trail};
use crate::reason::ReasonSet;

/// What a strategy may know of a call: what it is, and what became of it so far.
///
/// The caller fills in the first half before the call starts; the orchestrator
/// alone writes the second. The request is RFC 0049's `Request` ("Request
/// Annotation"), with the user's own data as one typed value instead of a map:
///
/// ```
/// use steadfast::Request;
///
/// struct Caller { robot: bool }
///
/// let request = Request::new("get").idempotent(true).context(Caller { robot: true });
/// assert!(request.user_context::<Caller>().is_some_and(|caller| caller.robot));
/// assert!(request.user_context::<String>().is_none());
/// assert_eq!(request.retries(), 0);
/// ```
pub struct Request {
    pub(crate) operation: &'static str,
    pub(crate) service: &'static str,
    pub(crate) idempotent: bool,
    pub(crate) started: Option<Instant>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) context: Option<Arc<dyn Any + Send + Sync>>,

    pub(crate) attempts: u32,
    pub(crate) retries: u32,
    pub(crate) may_have_been_applied: bool,
    pub(crate) trail: Option<Trail>,
}

static NO_REASONS: ReasonSet = ReasonSet::new();
static NO_HISTORY: History = History::EMPTY;

impl Request {
    /// A request that is not idempotent, has no deadline and no context.
    #[inline]
    pub const fn new(operation: &'static str) -> Self {
        Self {
            operation,
            service: "",
            idempotent: false,
            started: None,
            timeout: None,
            context: None,
            attempts: 0,
            retries: 0,
            may_have_been_applied: false,
            trail: None,
        }
    }

    /// Names the service that the operation belongs to.
    #[inline]
    pub fn service(mut self, service: &'static str) -> Self {
        self.service = service;
        self
    }

    /// States whether doing the operation twice does no more than doing it once.
    #[inline]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Gives the request a certain time from `now` on, waits included.
    #[inline]
    pub fn timeout(mut self, now: Instant, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self.started = Some(now);
        self
    }

    /// Attaches a value of the user's that strategies can read.
    pub fn context<T: Any + Send + Sync>(mut self, context: T) -> Self {
        self.context = Some(Arc::new(context));
        self
    }

    /// The same request before its first attempt.
    pub(crate) fn anew(&self) -> Self {
        Self {
            started: self.started,
            timeout: self.timeout,
            service: self.service,
            idempotent: self.idempotent,
            context: self.context.clone(),
            ..Self::new(self.operation)
        }
    }

    /// The operation's name.
    #[inline]
    pub const fn operation_name(&self) -> &'static str {
        self.operation
    }

    /// The service's name, empty if none was given.
    #[inline]
    pub const fn service_name(&self) -> &'static str {
        self.service
    }

    /// Whether doing the operation twice does no more than doing it once.
    #[inline]
    pub const fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// When the request must be over, if it must. A timeout beyond what the
    /// clock can represent is no timeout.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.started?.checked_add(self.timeout?)
    }

    /// The time from `now` to the deadline: none left is zero, no deadline is `None`.
    #[inline]
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        self.deadline()
            .map(|deadline| deadline.saturating_duration_since(now))
    }

    /// When the request started. Without a deadline the clock is first read
    /// after a failure, and that is the time given here.
    #[inline]
    pub fn started(&self) -> Option<Instant> {
        self.started
            .or_else(|| self.trail.as_ref().map(|trail| trail.first_failure_at))
    }

    /// The value that the user attached, if it is a `T`.
    pub fn user_context<T: Any>(&self) -> Option<&T> {
        self.context.as_ref()?.downcast_ref()
    }

    /// How many attempts were started.
    #[inline]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How many retries were decided on, RFC 0049's `retryAttempts`.
    #[inline]
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// The reasons of those retries, RFC 0049's `retryReasons`.
    pub fn reasons(&self) -> &ReasonSet {
        self.trail
            .as_ref()
            .map_or(&NO_REASONS, |trail| &trail.reasons)
    }

    /// Whether an attempt's bytes may have left without a conclusive answer.
    /// Once true, it stays true.
    #[inline]
    pub const fn may_have_been_applied(&self) -> bool {
        self.may_have_been_applied
    }

    /// Whether the caller cannot know if the operation took effect, should it
    /// end now: it may have been applied, and it is not idempotent (D14).
    #[inline]
    pub const fn is_ambiguous(&self) -> bool {
        self.may_have_been_applied && !self.idempotent
    }

    /// What became of each attempt so far.
    pub fn history(&self) -> &History {
        self.trail
            .as_ref()
            .map_or(&NO_HISTORY, |trail| &trail.history)
    }

    /// The number that events of this request carry. It is drawn at the first
    /// failure; a request that succeeds at once never has one.
    pub fn id(&self) -> Option<u64> {
        self.trail.as_ref().map(|trail| trail.id)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("operation", &self.operation)
            .field("service", &self.service)
            .field("idempotent", &self.idempotent)
            .field("timeout", &self.timeout)
            .field("attempts", &self.attempts)
            .field("retries", &self.retries)
            .field("reasons", self.reasons())
            .field("may_have_been_applied", &self.may_have_been_applied)
            .finish_non_exhaustive()
    }
}
