//! A failed attempt: its stage, its reason, and what its error says.

mod stage;

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

pub use stage::Stage;

use crate::reason::Reason;

/// The safety of a retry, as stated by the error itself (Smithy guidance,
/// "Retryable errors").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Safety {
    /// A retry is allowed, but not required.
    Yes,
    /// A retry is forbidden. Nothing overrules this (D34).
    No,
    /// Unknown. The strategy's rule decides (D35).
    #[default]
    Maybe,
}

impl Safety {
    /// Returns the safety of a modeled error that does not state it: `No` for a fault of
    /// the client, `Maybe` for any other (Smithy guidance).
    pub const fn from_fault(fault: FaultSide) -> Self {
        match fault {
            FaultSide::Client => Safety::No,
            FaultSide::Server | FaultSide::Other => Safety::Maybe,
        }
    }
}

/// Whose fault an error is (Smithy guidance, `ErrorInfo`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FaultSide {
    /// The request itself was wrong; sending it again cannot help.
    Client,
    /// The peer could not do what it was rightly asked to.
    Server,
    /// Neither, or not known.
    #[default]
    Other,
}

/// A failed attempt, as the engine sees it.
///
/// Made from the stage in which the attempt ended, because only the caller knows it
/// and no default would be safe:
///
/// ```
/// use std::time::Duration;
/// use steadfast::failure::FaultSide;
/// use steadfast::{Failure, reason};
///
/// let refused = Failure::not_sent(&reason::NOT_AVAILABLE).with_peer("10.0.0.7:11210");
/// let cut = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
/// let busy = Failure::responded(&reason::THROTTLED)
///     .with_fault(FaultSide::Server)
///     .throttling()
///     .with_hint(Duration::from_secs(2));
/// # let _ = (refused, cut, busy);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// Why the attempt failed.
    pub reason: &'static Reason,
    /// How far it got.
    pub stage: Stage,
    /// The safety that the error itself states.
    pub safety: Safety,
    /// Whether the peer throttled the request.
    pub throttling: bool,
    /// Whether no response came in time.
    pub timeout: bool,
    /// The shortest delay that the peer asks for, already parsed and bounded by the
    /// protocol.
    pub hint: Option<Duration>,
    /// Whether the hint counts only up to the strategy's own largest delay
    /// ([D44](crate::decisions#d44)).
    pub soft_hint: bool,
    /// The side at fault.
    pub fault: FaultSide,
    /// For a reason that is always retried: the delay that its protocol
    /// prescribes in place of the controlled backoff.
    pub prescribed_delay: Option<Duration>,
    detail: Option<Box<Detail>>,
}

/// Details for people, or for one strategy only. They are stored separately because most
/// of the engine only passes them on.
#[derive(Clone, Debug, Default)]
struct Detail {
    peer: Option<Arc<str>>,
    note: Option<Cow<'static, str>>,
    attachment: Option<Arc<dyn Any + Send + Sync>>,
}

impl Failure {
    /// Creates the failure of an attempt that sent nothing.
    pub const fn not_sent(reason: &'static Reason) -> Self {
        Self::new(reason, Stage::NotSent, Safety::Yes)
    }

    /// Creates the failure of an attempt whose bytes may have left, without a response.
    pub const fn in_flight(reason: &'static Reason) -> Self {
        Self::new(reason, Stage::InFlight, Safety::Maybe)
    }

    /// Creates the failure of an attempt whose response does not prove whether the request
    /// was applied.
    pub const fn inconclusive(reason: &'static Reason) -> Self {
        Self::new(reason, Stage::Inconclusive, Safety::Maybe)
    }

    /// Creates the failure of an attempt that got a conclusive response.
    pub const fn responded(reason: &'static Reason) -> Self {
        let safety = if reason.allows_non_idempotent_retry() {
            Safety::Yes
        } else {
            Safety::Maybe
        };
        Self::new(reason, Stage::Responded, safety)
    }

    const fn new(reason: &'static Reason, stage: Stage, safety: Safety) -> Self {
        Self {
            reason,
            stage,
            safety,
            throttling: false,
            timeout: false,
            hint: None,
            soft_hint: false,
            fault: FaultSide::Other,
            prescribed_delay: None,
            detail: None,
        }
    }

    /// Returns whether a conclusive response means that nothing was applied. An error that
    /// says "maybe" knows less than its reason claims ([D35](crate::decisions#d35)).
    pub(crate) const fn proves_not_applied(&self) -> bool {
        self.reason.allows_non_idempotent_retry() && !matches!(self.safety, Safety::Maybe)
    }

    /// Sets the safety that the error states.
    pub fn with_safety(mut self, safety: Safety) -> Self {
        self.safety = safety;
        self
    }

    /// Marks a throttling response.
    pub fn throttling(mut self) -> Self {
        self.throttling = true;
        self
    }

    /// Marks a timeout.
    pub fn timed_out(mut self) -> Self {
        self.timeout = true;
        self
    }

    /// Sets the shortest delay that the peer asks for.
    pub fn with_hint(mut self, hint: Duration) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Sets a soft hint: the delay that the peer asks for counts only up to the strategy's
    /// own largest delay ([D44](crate::decisions#d44)). Under
    /// [`RetryAfter::Obey`](crate::strategy::RetryAfter::Obey) it counts in full.
    pub fn with_soft_hint(mut self, hint: Duration) -> Self {
        self.soft_hint = true;
        self.with_hint(hint)
    }

    /// Sets the side at fault.
    pub fn with_fault(mut self, fault: FaultSide) -> Self {
        self.fault = fault;
        self
    }

    /// Sets the delay that the protocol prescribes for a reason that is always retried;
    /// zero is at once. Strategies ignore it.
    pub fn with_prescribed_delay(mut self, delay: Duration) -> Self {
        self.prescribed_delay = Some(delay);
        self
    }

    /// Names the peer that the attempt went to.
    pub fn with_peer(mut self, peer: impl Into<Arc<str>>) -> Self {
        self.detail.get_or_insert_default().peer = Some(peer.into());
        self
    }

    /// Adds a short note on what happened. Never include document values or credentials.
    pub fn with_note(mut self, note: impl Into<Cow<'static, str>>) -> Self {
        self.detail.get_or_insert_default().note = Some(note.into());
        self
    }

    /// Attaches further data of the protocol, for a strategy that understands it. Replaces
    /// an earlier attachment.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use steadfast::{Failure, reason};
    ///
    /// struct Quota { left: u32 }
    ///
    /// let failure = Failure::responded(&reason::THROTTLED).with_attachment(Arc::new(Quota { left: 7 }));
    /// assert_eq!(failure.attachment::<Quota>().map(|quota| quota.left), Some(7));
    /// assert!(failure.attachment::<String>().is_none());
    /// ```
    pub fn with_attachment<T: Any + Send + Sync>(mut self, attachment: Arc<T>) -> Self {
        self.detail.get_or_insert_default().attachment = Some(attachment);
        self
    }

    /// Returns the attachment, if it is a `T`.
    pub fn attachment<T: Any>(&self) -> Option<&T> {
        self.detail.as_ref()?.attachment.as_ref()?.downcast_ref()
    }

    /// Returns whether the two are equal in a history, which ignores attachments.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let Self {
            reason,
            stage,
            safety,
            throttling,
            timeout,
            hint,
            soft_hint,
            fault,
            prescribed_delay: _,
            detail: _,
        } = other;
        self.reason == *reason
            && self.stage == *stage
            && self.safety == *safety
            && self.throttling == *throttling
            && self.timeout == *timeout
            && self.hint == *hint
            && self.soft_hint == *soft_hint
            && self.fault == *fault
            && self.peer() == other.peer()
            && self.note() == other.note()
    }

    /// Returns the peer that the attempt went to, if it was named.
    pub fn peer(&self) -> Option<&str> {
        self.detail.as_ref()?.peer.as_deref()
    }

    /// Returns the note, if there is one.
    pub fn note(&self) -> Option<&str> {
        self.detail.as_ref()?.note.as_deref()
    }
}
