//! The pause after attempts that did no I/O.
//!
//! A strategy may retry without a delay. If its attempts then end without waiting for
//! anything, because nothing can be sent, the loop would occupy its thread until the
//! deadline. On an async runtime, the task that opens the connection might never run. So
//! such a loop yields, and after a few rounds it waits.

use std::borrow::Borrow;

use super::{Orchestrator, RetryStrategy};
use crate::call::Call;
use crate::failure::Stage;
use crate::report::AttemptRecord;
use crate::request::Progress;

/// Shorter delays, in nanoseconds, count as none: timers do not reliably give up the thread for them.
const SHORTEST: u64 = 1_000_000;
/// The retries in a row that are made without a wait: the first at once, others after
/// the driver has yielded.
const WITHOUT_WAIT: u32 = 3;
/// The pause grows from 1 ms to 2⁶ ms.
const LONGEST: u32 = 6;

impl<S: RetryStrategy, C: Borrow<Call>> Orchestrator<S, C> {
    /// Notes that the attempt under way ended without waiting for anything, so it did no
    /// I/O. Drivers that detect this call it before they report a failure. An attempt that
    /// was not sent needs no such note.
    #[inline]
    pub fn handle_idle_attempt(&mut self) {
        self.progress.idle = true;
    }

    /// Returns the nanoseconds before a retry. See [`Progress::paced`].
    #[inline]
    pub(super) fn pace(&mut self, delay: u64) -> u64 {
        let (delay, idle_retries) = self.progress.paced(delay);
        self.progress.idle = false;
        self.progress.idle_retries = idle_retries;
        delay
    }

    /// Returns whether the driver has to yield before a retry without a delay.
    #[inline]
    pub(super) fn must_yield(&self) -> bool {
        self.progress.idle_retries > 1
    }
}

impl Progress {
    /// Returns the nanoseconds before a retry: those of the strategy, or a pause if attempts
    /// without I/O follow each other without a delay. Also returns how many such retries
    /// there are in a row.
    #[inline]
    pub(crate) fn paced(&self, delay: u64) -> (u64, u32) {
        let unsent = |last: &AttemptRecord| last.failure.stage == Stage::NotSent;
        let idle = self.idle || self.trail.last.as_ref().is_some_and(unsent);
        if delay >= SHORTEST || !idle {
            return (delay, 0);
        }
        let idle_retries = self.idle_retries.saturating_add(1);
        let paced = match idle_retries.checked_sub(WITHOUT_WAIT + 1) {
            None => delay,
            Some(more) => SHORTEST * (1 << more.min(LONGEST)),
        };
        (paced, idle_retries)
    }
}
