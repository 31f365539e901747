//! Forces the decision of the engine on the SDK's own strategy.
//!
//! The SDK computes a delay as `min(2ⁿ · initial, max)`, so this sets both to the
//! wanted delay. If the server asks for a delay, the SDK applies one of two rules:
//! the smaller of both, or the server's but not less than its own. This selects the
//! rule that keeps the wanted delay.

use std::time::Duration;

use aws_smithy_runtime::client::retries::TokenBucket;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_runtime_api::client::retries::classifiers::{RetryAction, RetryReason};
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::retry::{RetryConfig, RetrySpec};

use super::request::NextStep;

/// Replaces the SDK's token bucket by an unlimited one, and disables its rate
/// limiter.
pub(super) fn disable_limits(cfg: &mut ConfigBag, unlimited: TokenBucket) {
    let config = default_config(cfg);
    let state = cfg.interceptor_state();
    state.store_put(unlimited);
    state.store_put(config);
}

/// Makes the SDK's strategy take this step. Allows one more attempt at a time,
/// because the work of the SDK grows with the limit.
pub(super) fn force(cfg: &mut ConfigBag, next: NextStep, action: &RetryAction) {
    let config = match next {
        NextStep::GiveUp => default_config(cfg).with_max_attempts(1),
        NextStep::Retry(delay) => {
            let made = cfg
                .load::<RequestAttempts>()
                .map_or(1, RequestAttempts::attempts);
            with_exact_delay(default_config(cfg), delay, hint(action))
                .with_max_attempts(made.saturating_add(1))
        }
    };
    cfg.interceptor_state().store_put(config);
}

/// Returns a default configuration, with the client's reconnect mode.
fn default_config(cfg: &ConfigBag) -> RetryConfig {
    let config = RetryConfig::standard();
    match cfg.load::<RetryConfig>() {
        Some(client) => config.with_reconnect_mode(client.reconnect_mode()),
        None => config,
    }
}

fn with_exact_delay(config: RetryConfig, delay: Duration, hint: Option<Duration>) -> RetryConfig {
    let config = config
        .with_initial_backoff(delay)
        .with_max_backoff(delay)
        .with_use_static_exponential_base(true);
    match hint {
        // At least its own: the wanted delay.
        Some(hint) if hint < delay => {
            config.with_retry_spec(RetrySpec::v2_1().with_non_throttling_initial_backoff(delay))
        }
        // The smaller of both: the wanted delay.
        Some(_) | None => {
            config.with_retry_spec(RetrySpec::v2_0().with_non_throttling_initial_backoff(delay))
        }
    }
}

/// Returns the delay of the server as the SDK's strategy sees it.
fn hint(action: &RetryAction) -> Option<Duration> {
    match action {
        RetryAction::RetryIndicated(RetryReason::RetryableError { retry_after, .. }) => {
            *retry_after
        }
        _ => None,
    }
}
