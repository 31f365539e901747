//! The description of a call, before it begins.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::request::{Progress, Request};
use crate::strategy::WhenTooLate;

/// The description of a call: its operation, whether it is idempotent, how much
/// time it has, and a value of the user's own.
///
/// ```
/// use std::time::Duration;
/// use steadfast::Call;
///
/// struct Caller { robot: bool }
///
/// let call = Call::new("get")
///     .idempotent(true)
///     .timeout(Duration::from_millis(2500))
///     .context(Caller { robot: true });
/// # let _ = call;
/// ```
#[derive(Clone)]
pub struct Call {
    pub(crate) operation: &'static str,
    pub(crate) service: &'static str,
    pub(crate) idempotent: bool,
    pub(crate) long_polling: bool,
    pub(crate) when_too_late: Option<WhenTooLate>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) context: Option<Arc<dyn Any + Send + Sync>>,
}

impl Call {
    /// Creates a call that is not idempotent and has no deadline and no context.
    #[inline]
    pub const fn new(operation: &'static str) -> Self {
        Self {
            operation,
            service: "",
            idempotent: false,
            long_polling: false,
            when_too_late: None,
            timeout: None,
            attempt_timeout: None,
            context: None,
        }
    }

    /// Names the service that the operation belongs to.
    #[inline]
    #[must_use]
    pub fn service(mut self, service: &'static str) -> Self {
        self.service = service;
        self
    }

    /// Sets whether the operation is idempotent: applying it twice has no further effect.
    #[inline]
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets whether the operation is a long poll, which its caller repeats in a loop. If
    /// its retry is refused, but the failure may be temporary, the error comes after the
    /// delay of that retry, or after 1 s, at the deadline at the latest. Otherwise the
    /// caller's loop would spin while the budget is empty ([D50](crate::decisions#d50)).
    /// For the same reason, a long poll whose retry would miss the deadline waits for the
    /// deadline, whatever [`when_too_late`](Self::when_too_late) says.
    #[inline]
    #[must_use]
    pub fn long_polling(mut self, long_polling: bool) -> Self {
        self.long_polling = long_polling;
        self
    }

    /// Sets the time of the whole call, attempts and waits together.
    #[inline]
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the time of each attempt, at most the remaining time of the call. A
    /// [`Driver`](crate::Driver) cuts off an attempt that takes longer.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Sets what happens if a retry's delay reaches the deadline, in place of the
    /// strategy's own rule ([D40](crate::decisions#d40)).
    #[inline]
    #[must_use]
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.when_too_late = Some(rule);
        self
    }

    /// Attaches a value that strategies can read.
    #[must_use]
    pub fn context<T: Any + Send + Sync>(mut self, context: T) -> Self {
        self.context = Some(Arc::new(context));
        self
    }

    /// Attaches a shared value that strategies can read.
    #[must_use]
    pub fn shared_context(mut self, context: Arc<dyn Any + Send + Sync>) -> Self {
        self.context = Some(context);
        self
    }

    /// Returns whether it has no time for an attempt.
    #[inline]
    pub(crate) fn has_no_time(&self) -> bool {
        self.timeout.is_some_and(|timeout| timeout.is_zero())
    }

    /// Returns the call as a request that has not begun, to pass to a strategy.
    pub const fn request(&self) -> Request<'_> {
        Request {
            call: self,
            started: None,
            progress: Progress::NONE,
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("operation", &self.operation)
            .field("service", &self.service)
            .field("idempotent", &self.idempotent)
            .field("long_polling", &self.long_polling)
            .field("timeout", &self.timeout)
            .field("attempt_timeout", &self.attempt_timeout)
            .finish_non_exhaustive()
    }
}
