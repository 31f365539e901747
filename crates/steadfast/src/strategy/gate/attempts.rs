//! A limit on attempts.

use std::fmt;

use super::{Gate, Gated};
use crate::failure::Failure;
use crate::invalid_setting::InvalidSetting;
use crate::request::Request;
use crate::strategy::{Cause, Limits, Refusal};

/// See [`StrategyExt::max_attempts`](crate::StrategyExt::max_attempts).
pub type MaxAttempts<S> = Gated<S, AttemptLimit>;

/// A limit on attempts, the first included ([D32](crate::decisions#d32)).
///
/// Attempts after reasons that are always retried count, but are not limited, since no
/// strategy decides about them.
#[derive(Clone, Copy, Debug)]
pub struct AttemptLimit(u32);

impl AttemptLimit {
    /// Creates the limit. Rejects zero.
    pub fn new(limit: u32) -> Result<Self, InvalidSetting> {
        if limit == 0 {
            return Err(InvalidSetting::new(
                "max_attempts",
                "is 0: the first attempt counts, so it must be at least 1",
            ));
        }
        Ok(Self(limit))
    }

    /// Returns the number of attempts.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Gate for AttemptLimit {
    fn refuses(&self, retries: u32, _: &Request<'_>, _: &Failure) -> Option<Refusal> {
        let limit = self.0;
        let reached = retries.saturating_add(1) >= limit;
        reached.then(|| Refusal::new(Cause::AttemptsUsedUp { limit }))
    }

    fn narrow(&self, limits: &Limits) -> Limits {
        let attempts = limits
            .attempts
            .map_or(self.0, |already| already.min(self.0));
        Limits {
            attempts: Some(attempts),
            ..*limits
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} attempts", self.0)
    }
}
