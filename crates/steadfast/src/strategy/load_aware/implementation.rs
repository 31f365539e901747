//! Implements the trait for [`LoadAware`].

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::LoadAware;
use super::kind::LONGEST_SLOW_WAIT;
use crate::brake::fraction;
use crate::budget::Budget;
use crate::failure::{Failure, Stage};
use crate::request::Request;
use crate::strategy::{
    Admission, Decision, Ending, Limits, Refusal, RetryStrategy, RetryToken, StrategyInfo,
    WorstCase,
};
use crate::world::World;

impl LoadAware {
    /// Admits an attempt that is measured, or sheds the request.
    fn admit_measured(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        let stamp = match self.state.admit(world) {
            Ok(stamp) => stamp,
            Err(shed) => return Admission::Refused(shed),
        };
        match self.inner.acquire_initial_token(request, world) {
            Admission::Refused(refusal) => Admission::Refused(refusal),
            Admission::Free => Admission::Token(RetryToken::free().stamped(stamp)),
            Admission::Token(token) => Admission::Token(token.stamped(stamp)),
        }
    }
}

impl RetryStrategy for LoadAware {
    #[inline]
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        match self.state.skips_measurement() {
            true => self.inner.acquire_initial_token(request, world),
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
            self.inner.record_end(token, Ending::failed(failure), world);
            return shed.into();
        }
        let is_free = self.waits_are_free && failure.stage == Stage::NotSent;
        let inner = &self.inner;
        match inner.refresh_retry_token(token, request, failure, world) {
            Decision::Ready(Ok(mut token)) => {
                let roll = || fraction(world.roll());
                if !is_free && let Err(refusal) = self.state.charge(&mut token, failed, roll) {
                    self.inner.record_end(token, Ending::withdrawn(), world);
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
    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        let Some(token) = token else {
            self.state.earn();
            return self.inner.record_success(None, world);
        };
        self.state.record_success(&token, world);
        self.inner.record_success(Some(token), world)
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
        self.inner.record_end(token, ending, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for LoadAware {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let inner = self.inner.info().worst_case(limits);
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

    fn budget_left(&self) -> Option<u64> {
        self.inner.info().budget_left()
    }

    fn budget(&self) -> Option<&Budget> {
        self.inner.info().budget()
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(LoadAware {
            inner: self.inner.info().fork(now)?.into(),
            waits_are_free: self.waits_are_free,
            state: Arc::new(self.state.fork(now)),
        }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("load-aware, ")?;
        self.inner.info().describe(f)?;
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
