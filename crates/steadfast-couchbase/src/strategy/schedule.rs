//! Computes delays from a retry specification.

use std::time::{Duration, Instant};

use steadfast::World;
use steadfast::strategy::{RetryAfter, RetryToken};
use steadfast_wire::Status;
use steadfast_wire::error_map::{ErrorMapBackoff, RetrySpec};

use super::RetryDirective;

/// Times in the map are whole milliseconds, so this is the least that it can ask
/// for. A zero, or codes that take turns, must not make a client send without
/// pause.
const LEAST: Duration = Duration::from_millis(1);

/// Retries of one code in a row; kept on the token from one to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct SameCodeRetries {
    status: Status,
    /// The number of retries granted.
    granted: u32,
    /// The time of the first response with the code, if the duration is limited.
    began: Option<Instant>,
    /// The token's number of retries after the last of them. If it has more, there was
    /// a retry for another reason since.
    token_retries: u32,
}

impl SameCodeRetries {
    /// The run that the token is in, or a new one if the code is another (RFC
    /// 0013, "What happens if the error code changes").
    pub(super) fn from_token(
        token: &RetryToken,
        directive: &RetryDirective,
        world: &dyn World,
    ) -> Self {
        match token.state::<Self>() {
            Some(run) if run.status == directive.status && run.token_retries == token.retries() => {
                *run
            }
            _ => Self {
                status: directive.status,
                granted: 0,
                began: directive.spec.max_duration.map(|_| world.now()),
                token_retries: 0,
            },
        }
    }

    /// Returns the delay before the next retry; as an error if the retry would come
    /// after the end of the specification.
    pub(super) fn delay(
        &self,
        directive: &RetryDirective,
        world: &dyn World,
    ) -> Result<Duration, Duration> {
        let spec = &directive.spec;
        let delay = delay(spec, self.granted);
        let (Some(most), Some(began)) = (spec.max_duration, self.began) else {
            return Ok(delay);
        };
        let so_far = world.now().saturating_duration_since(began);
        if so_far.saturating_add(delay) < most {
            Ok(delay)
        } else {
            Err(delay)
        }
    }

    /// Notes on the token of the retry that it belongs to this run.
    pub(super) fn keep_on(self, token: RetryToken) -> RetryToken {
        let run = Self {
            granted: self.granted.saturating_add(1),
            token_retries: token.retries(),
            ..self
        };
        token.with_state(run)
    }
}

/// The delay before a retry, by the number of retries before it. The power is of
/// the number of milliseconds (RFC 0013, "interval"; D28).
fn delay(spec: &RetrySpec, retries: u32) -> Duration {
    let interval = spec.interval;
    let delay = match (retries, spec.strategy) {
        (0, ErrorMapBackoff::Constant | ErrorMapBackoff::Linear | ErrorMapBackoff::Exponential) => {
            return spec.after.clamp(LEAST, RetryAfter::LIMIT);
        }
        (_, ErrorMapBackoff::Constant) => interval,
        (_, ErrorMapBackoff::Linear) => interval.saturating_mul(retries),
        (_, ErrorMapBackoff::Exponential) => {
            let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
            Duration::from_millis(millis.saturating_pow(retries))
        }
    };
    let ceil = spec.ceil.unwrap_or(RetryAfter::LIMIT);
    // Without a ceiling the growth would soon leave any deadline behind, and
    // without a deadline it would never come back.
    delay.min(ceil).clamp(LEAST, RetryAfter::LIMIT)
}
