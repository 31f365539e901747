//! Leaving the SDK's own strategy no choice.
//!
//! It computes its delay as `min(2ⁿ · initial, max)`, so that setting both to the
//! same gives just that. A delay that the server asks for then changes it once
//! more, by one of two rules that the SDK's retry specification selects: the
//! smaller of the two, or the server's but not less than its own. Whichever of
//! them leaves the engine's delay as it is, is selected.

use std::time::Duration;

use aws_smithy_runtime::client::retries::TokenBucket;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_runtime_api::client::retries::classifiers::{RetryAction, RetryReason};
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::retry::{RetryConfig, RetrySpec};

use super::running::Decided;

/// Puts an unlimited bucket in the place of the SDK's own, and switches its rate
/// limiter off.
pub(super) fn take_over(cfg: &mut ConfigBag, unlimited: TokenBucket) {
    let config = blank(cfg);
    let state = cfg.interceptor_state();
    state.store_put(unlimited);
    state.store_put(config);
}

/// Makes the SDK's strategy come to this decision. One attempt more is allowed
/// at a time: the SDK sums something up over all that are.
pub(super) fn obey(cfg: &mut ConfigBag, decided: Decided, action: &RetryAction) {
    let config = match decided {
        Decided::GiveUp => blank(cfg).with_max_attempts(1),
        Decided::Retry(delay) => {
            let made = cfg
                .load::<RequestAttempts>()
                .map_or(1, RequestAttempts::attempts);
            exactly(blank(cfg), delay, hint(action)).with_max_attempts(made.saturating_add(1))
        }
    };
    cfg.interceptor_state().store_put(config);
}

/// A configuration that says nothing yet, but what is not about retries: which
/// connections are used again after an error.
fn blank(cfg: &ConfigBag) -> RetryConfig {
    let blank = RetryConfig::standard();
    match cfg.load::<RetryConfig>() {
        Some(theirs) => blank.with_reconnect_mode(theirs.reconnect_mode()),
        None => blank,
    }
}

fn exactly(config: RetryConfig, delay: Duration, hint: Option<Duration>) -> RetryConfig {
    let config = config
        .with_initial_backoff(delay)
        .with_max_backoff(delay)
        .with_use_static_exponential_base(true);
    match hint {
        // Not less than its own: the delay.
        Some(hint) if hint < delay => {
            config.with_retry_spec(RetrySpec::v2_1().with_non_throttling_initial_backoff(delay))
        }
        // The smaller of the two: the delay again.
        Some(_) | None => {
            config.with_retry_spec(RetrySpec::v2_0().with_non_throttling_initial_backoff(delay))
        }
    }
}

/// The server's delay, as the SDK's strategy will see it.
fn hint(action: &RetryAction) -> Option<Duration> {
    match action {
        RetryAction::RetryIndicated(RetryReason::RetryableError { retry_after, .. }) => {
            *retry_after
        }
        _ => None,
    }
}
