//! Implements the trait for [`LoadAware`].

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::delays::worst_case;
use super::kind::LONGEST_SLOW_WAIT;
use super::{Attempts, LoadAware, OwnDelays};
use crate::brake::fraction;
use crate::budget::Budget;
use crate::failure::{Failure, Stage};
use crate::request::Request;
use crate::strategy::{
    Admission, Decision, Ending, ForeignToken, Limits, RetryStrategy, RetryToken, StrategyInfo,
    WorstCase,
};
use crate::world::World;

impl LoadAware {
    fn admit(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        match &self.attempts {
            Attempts::Own(_) => Admission::Free,
            Attempts::Of(strategy) => strategy.acquire_initial_token(request, world),
        }
    }

    /// Admits an attempt that is measured, or sheds the request.
    fn admit_measured(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        let stamp = match self.state.admit(world) {
            Ok(stamp) => stamp,
            Err(shed) => return Admission::Refused(shed),
        };
        match self.admit(request, world) {
            Admission::Refused(refusal) => Admission::Refused(refusal),
            Admission::Free => Admission::Token(RetryToken::free().stamped(stamp)),
            Admission::Token(token) => Admission::Token(token.stamped(stamp)),
        }
    }

    fn end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        if let Attempts::Of(strategy) = &self.attempts {
            strategy.record_end(token, ending, world);
        }
    }

    /// Returns whether a retry is free, because it waits for a connection of the client.
    fn is_free(&self, failure: &Failure) -> bool {
        matches!(self.attempts, Attempts::Of(_)) && failure.stage == Stage::NotSent
    }
}

impl RetryStrategy for LoadAware {
    #[inline]
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        match self.state.passes_unnoticed() {
            true => self.admit(request, world),
            false => self.admit_measured(request, world),
        }
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let failed = self.state.record_failure(&token, request, failure, world);
        if let Err(shed) = self.state.admit_retry(failure, world) {
            self.end(token, Ending::failed(failure), world);
            return shed.into();
        }
        let granted = match &self.attempts {
            Attempts::Own(delays) => delays.grant(token, request, failure, world).into(),
            Attempts::Of(strategy) => strategy.refresh_retry_token(token, request, failure, world),
        };
        let is_free = self.is_free(failure);
        match granted {
            Decision::Ready(Ok(mut token)) => {
                let roll = || fraction(world.roll());
                if !is_free && let Err(refusal) = self.state.charge(&mut token, failed, roll) {
                    self.end(token, Ending::withdrawn(), world);
                    return refusal.into();
                }
                Ok(self.state.stamp(token, failed)).into()
            }
            Decision::Pending(pending) => {
                let (state, roll) = (Arc::clone(&self.state), fraction(world.roll()));
                Decision::pending(async move {
                    let mut token = pending.await?;
                    if !is_free {
                        state.charge(&mut token, failed, || roll)?;
                    }
                    Ok(token)
                })
            }
            refused => refused,
        }
    }

    #[inline]
    fn record_success(
        &self,
        token: Option<RetryToken>,
        world: &dyn World,
    ) -> Result<(), ForeignToken> {
        match (&token, &self.attempts) {
            (None, _) => self.state.earn(),
            (Some(token), Attempts::Own(delays)) => {
                token.check_issuer(&delays.id)?;
                self.state.record_success(token, world);
            }
            // The inner strategy takes the token, and may reject it.
            (Some(token), Attempts::Of(_)) => self.state.record_success(token, world),
        }
        match &self.attempts {
            Attempts::Own(_) => Ok(()),
            Attempts::Of(strategy) => strategy.record_success(token, world),
        }
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        match ending.failure {
            Some(failure) if ending.attempt_made => {
                let stamp = token.stamp();
                self.state.record_last_failure(stamp, failure, world);
            }
            _ if ending.withdrawn => self.state.give_back(&token),
            _ => {}
        }
        self.end(token, ending, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for LoadAware {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let inner = match &self.attempts {
            Attempts::Own(_) => worst_case(limits),
            Attempts::Of(strategy) => strategy.info().worst_case(limits),
        };
        // A slow failure may wait longer before each retry.
        let retries = inner.attempts.map(|attempts| attempts.saturating_sub(1));
        let longer = |waiting| Some(LONGEST_SLOW_WAIT.saturating_mul(retries?) + waiting);
        let waiting = inner.waiting.and_then(longer);
        let waiting = [waiting, limits.timeout].into_iter().flatten().min();
        WorstCase {
            waiting,
            wall_time: limits.wall_time(inner.attempts, waiting),
            ..inner
        }
    }

    fn budget_left(&self, now: Instant) -> Option<u64> {
        match &self.attempts {
            Attempts::Own(_) => None,
            Attempts::Of(strategy) => strategy.info().budget_left(now),
        }
    }

    fn budget(&self) -> Option<&Budget> {
        match &self.attempts {
            Attempts::Own(_) => None,
            Attempts::Of(strategy) => strategy.info().budget(),
        }
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let attempts = match &self.attempts {
            Attempts::Own(_) => Attempts::Own(OwnDelays::new()),
            Attempts::Of(strategy) => Attempts::Of(strategy.info().fork(now)?.into()),
        };
        let state = Arc::new(self.state.fork(now));
        Some(Box::new(LoadAware { attempts, state }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.attempts {
            Attempts::Own(_) => {
                f.write_str("load-aware, 4 attempts (backoff 100ms × 2ⁿ up to 20s, full jitter; 1s × 2ⁿ if refused or throttled)")?;
            }
            Attempts::Of(strategy) => {
                strategy.info().describe(f)?;
                f.write_str(", load-aware")?;
            }
        }
        f.write_str(match self.state.saves_slow() {
            true => ", one slow failure is retried without recent successes",
            false => ", no slow failure is retried without recent successes",
        })?;
        match self.state.admitted() {
            1.0 => Ok(()),
            admitted => write!(f, ", admits {:.0} % now", admitted * 100.0),
        }
    }
}
