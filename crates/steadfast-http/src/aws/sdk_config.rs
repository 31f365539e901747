//! Forces the decision of the engine on the SDK's own strategy.
//!
//! That strategy chooses a random delay, unless the rate limiter of its adaptive mode
//! asks for one. Then it waits as long as the limiter says, up to the configured maximum.
//! So this module gives it a limiter that asks for a practically infinite delay, and sets
//! the maximum to the decided delay.
//!
//! It also waits before it delivers a refusal, if the operation is a long poll and its
//! token bucket is empty. So a refusal that has to wait gets an empty bucket.

use aws_smithy_runtime::client::retries::strategy::StandardRetryStrategy;
use aws_smithy_runtime::client::retries::{ClientRateLimiter, RetryPartition, TokenBucket};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{Input, InterceptorContext};
use aws_smithy_runtime_api::client::retries::classifiers::{
    ClassifyRetry, RetryAction, SharedRetryClassifier,
};
use aws_smithy_runtime_api::client::retries::{RequestAttempts, RetryStrategy as _};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::{ConfigBag, FrozenLayer, Layer};
use aws_smithy_types::retry::{RetryConfig, RetryMode, RetrySpec};

use super::request::NextStep;

/// Tokens that a limiter owes. At the highest rates it would need centuries for them.
const OWED: f64 = 1e15;

/// Replaces the SDK's limits by ones that leave the decision to the engine, before the
/// first attempt.
///
/// The version of the retry behaviour is 2.1 here, because the SDK marks long polls
/// only in that one.
///
/// Returns the replaced configuration, if there was one.
pub(super) fn replace_limits(
    cfg: &mut ConfigBag,
    partition: FrozenLayer,
    long_poll: bool,
) -> Option<RetryConfig> {
    let spec = RetrySpec::v2_1().with_long_polling(long_poll);
    cfg.push_shared_layer(partition);
    replace(cfg, RetryConfig::standard().with_retry_spec(spec))
}

/// Replaces the configuration where the SDK keeps it. Storing another one would allocate.
fn replace(cfg: &mut ConfigBag, config: RetryConfig) -> Option<RetryConfig> {
    if let Some(stored) = cfg.get_mut_from_interceptor_state::<RetryConfig>() {
        return Some(std::mem::replace(stored, config));
    }
    let replaced = cfg.load::<RetryConfig>().cloned();
    cfg.interceptor_state().store_put(config);
    replaced
}

/// Returns whether the SDK, or [`replace_limits`], marked the operation as a long poll.
pub(super) fn is_long_poll(cfg: &ConfigBag) -> bool {
    let config = cfg.load::<RetryConfig>();
    let spec = config.and_then(RetryConfig::retry_spec);
    spec.is_some_and(RetrySpec::long_polling)
}

/// Sets the configuration for the time of an attempt: the client's, with the real
/// number of attempts. The SDK sends that number to the service.
pub(super) fn set_for_attempt(cfg: &mut ConfigBag, client: RetryConfig, max_attempts: u32) {
    let config = client.with_retry_mode(RetryMode::Standard);
    replace(cfg, config.with_max_attempts(max_attempts));
}

/// Makes the SDK's strategy take this step.
pub(super) fn force(cfg: &mut ConfigBag, next: NextStep) {
    let exact = |delay| {
        let config = RetryConfig::adaptive().with_max_backoff(delay);
        config.with_max_attempts(u32::MAX)
    };
    let config = match next {
        NextStep::Retry(delay) => exact(delay),
        NextStep::GiveUp => RetryConfig::disabled(),
        NextStep::GiveUpAfter(delay) => {
            cfg.interceptor_state().store_put(TokenBucket::new(0));
            exact(delay).with_retry_spec(RetrySpec::v2_0().with_long_polling(true))
        }
    };
    replace(cfg, config);
}

/// Makes a layer with a partition whose rate limiter always asks for a practically infinite delay.
///
/// A limiter works only after it has seen throttling, so it is shown some.
pub(super) fn partition(components: &RuntimeComponents) -> Result<Layer, BoxError> {
    let limiter = ClientRateLimiter::builder().current_bucket_capacity(-OWED);
    let partition = RetryPartition::custom("AwsRetry")
        .client_rate_limiter(limiter.build())
        .token_bucket(TokenBucket::unlimited())
        .build();

    let mut cfg = ConfigBag::base();
    let state = cfg.interceptor_state();
    state.store_put(partition.clone());
    state.store_put(RetryConfig::adaptive());
    state.store_put(TokenBucket::unlimited());
    state.store_put(RequestAttempts::new(1));
    let mut components = components.to_builder();
    let throttled = SharedRetryClassifier::new(Throttled);
    components.set_retry_classifiers(std::iter::once(throttled));
    let nothing = InterceptorContext::new(Input::erase(()));
    StandardRetryStrategy::new().should_attempt_retry(&nothing, &components.build()?, &cfg)?;
    let mut layer = Layer::new("AwsRetry");
    layer.store_put(partition);
    Ok(layer)
}

/// Takes everything for throttling.
#[derive(Debug)]
struct Throttled;

impl ClassifyRetry for Throttled {
    fn classify_retry(&self, _: &InterceptorContext) -> RetryAction {
        RetryAction::throttling_error()
    }

    fn name(&self) -> &'static str {
        "Throttled"
    }
}
