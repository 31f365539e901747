//! The pause after attempts that did no I/O.
//!
//! A strategy may retry without a delay. If its attempts then end without waiting for
//! anything, because nothing can be sent, the loop would occupy its thread until the
//! deadline. On an async runtime, the task that opens the connection might never run. So
//! such a loop yields, and after a few rounds it waits.

use std::time::Duration;

use crate::failure::Stage;
use crate::report::AttemptRecord;
use crate::request::Progress;

/// Shorter delays count as none: timers do not reliably give up the thread for them.
const SHORTEST: Duration = Duration::from_millis(1);
/// The retries in a row that are made without a wait: the first at once, others after
/// the driver has yielded.
const WITHOUT_WAIT: u32 = 3;
/// The pause grows from 1 ms to 2⁶ ms.
const LONGEST: u32 = 6;

impl Progress {
    /// Returns the delay before a retry: the strategy's, or a pause if attempts
    /// without I/O follow each other without a delay.
    pub(super) fn pace(&mut self, delay: Duration) -> Duration {
        let unsent = |last: &AttemptRecord| last.failure.stage == Stage::NotSent;
        let idle = std::mem::take(&mut self.idle) || self.trail.last.as_ref().is_some_and(unsent);
        if delay >= SHORTEST || !idle {
            self.idle_retries = 0;
            return delay;
        }
        self.idle_retries = self.idle_retries.saturating_add(1);
        match self.idle_retries.checked_sub(WITHOUT_WAIT + 1) {
            None => delay,
            Some(more) => SHORTEST * (1 << more.min(LONGEST)),
        }
    }

    /// Returns whether the driver has to yield before a retry without a delay.
    pub(super) fn must_yield(&self) -> bool {
        self.idle_retries > 1
    }
}
