//! The events that a virtual world recorded.

use std::time::Duration;

use crate::event::RetryEvent;
use crate::failure::Failure;
use crate::reason::ReasonSet;
use crate::report::Outcome;

/// A [`RetryEvent`] that outlives its request. See [`VirtualWorld::recording`].
///
/// [`VirtualWorld::recording`]: super::VirtualWorld::recording
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedEvent {
    /// The time of the decision, counted from the beginning of the world.
    pub at: Duration,
    /// The number of the request.
    pub request_id: u64,
    /// The operation's name.
    pub operation: &'static str,
    /// The number of the failed attempt; the first is 1.
    pub attempt: u32,
    /// The number of granted retries, this one included.
    pub retries: u32,
    /// The reasons of those retries.
    pub reasons: ReasonSet,
    /// The failure of the attempt.
    pub failure: Failure,
    /// The decision about it.
    pub outcome: Outcome,
}

impl RecordedEvent {
    pub(super) fn new(event: &RetryEvent<'_>, at: Duration) -> Self {
        Self {
            at,
            request_id: event.request_id(),
            operation: event.operation(),
            attempt: event.attempt(),
            retries: event.request().retries(),
            reasons: event.request().reasons(),
            failure: event.failure().clone(),
            outcome: event.outcome(),
        }
    }
}
