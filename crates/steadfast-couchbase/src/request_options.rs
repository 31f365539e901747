//! Options that all requests share: timeout, strategy, context and `retry_if`.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use steadfast::{Attempt, Call, Failure, RetryStrategy, Stage, StrategyExt};

use crate::options::RetryIf;
use crate::reason::{NODE_NOT_AVAILABLE, SERVICE_NOT_AVAILABLE, SOCKET_NOT_AVAILABLE};

/// Options that every request of the client has, whatever its service.
#[derive(Clone, Default)]
pub(crate) struct RequestOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) strategy: Option<Arc<dyn RetryStrategy>>,
    pub(crate) context: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) retry_if: Option<RetryIf>,
    /// The attempt of an outer call that this request is part of.
    pub(crate) within: Option<Attempt>,
}

impl RequestOptions {
    /// Returns the time for all attempts: the request's own or the default, at least as
    /// much as the server needs, but not more than the outer attempt has.
    pub(crate) fn timeout(&self, default: Duration, least: Duration) -> Duration {
        let timeout = self.timeout.unwrap_or(default).max(least);
        let outer = self.within.and_then(|outer| outer.remaining());
        outer.map_or(timeout, |outer| timeout.min(outer))
    }

    /// Returns the strategy, if it is not just the client's.
    pub(crate) fn strategy(
        &self,
        client: &Arc<dyn RetryStrategy>,
    ) -> Option<Arc<dyn RetryStrategy>> {
        match self.within {
            Some(outer) if outer.number() > 1 => {
                let strategy = self.strategy.as_ref().unwrap_or(client).clone();
                Some(Arc::new(
                    strategy.when(|_, failure| waits_for_client(failure)),
                ))
            }
            Some(_) | None => self.strategy.clone(),
        }
    }

    /// Adds to the description of a request what the engine needs of these options.
    pub(crate) fn describe(&self, call: Call) -> Call {
        match &self.context {
            Some(context) => call.shared_context(context.clone()),
            None => call,
        }
    }
}

/// Returns whether the retry only waits until the client has a connection or a config.
fn waits_for_client(failure: &Failure) -> bool {
    const WAITS: [&steadfast::Reason; 3] = [
        &SOCKET_NOT_AVAILABLE,
        &SERVICE_NOT_AVAILABLE,
        &NODE_NOT_AVAILABLE,
    ];
    failure.stage == Stage::NotSent && WAITS.contains(&failure.reason)
}

/// Adds the methods that set [`RequestOptions`] to a builder, which has them at this place.
macro_rules! request_option_methods {
    (|$builder:ident| $options:expr) => {
        /// Limits the time of the whole operation: all attempts, the waits between
        /// them and, where there are rows, reading them.
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
            let $builder = &mut self;
            $options.timeout = Some(timeout);
            self
        }

        /// Uses this retry strategy instead of the client's. Operations can share one: an
        /// `Arc` of a strategy is a strategy.
        pub fn retry(mut self, strategy: impl steadfast::RetryStrategy + 'static) -> Self {
            let $builder = &mut self;
            $options.strategy = Some(std::sync::Arc::new(strategy));
            self
        }

        /// Asks the strategy also about final responses for which this returns true,
        /// such as a document that another process is about to store. Replaces the
        /// client's. A retry that is unsafe is still not made.
        pub fn retry_if(
            mut self,
            retry_if: impl Fn(&$crate::Error) -> bool + Send + Sync + 'static,
        ) -> Self {
            let $builder = &mut self;
            $options.retry_if = Some(std::sync::Arc::new(retry_if));
            self
        }

        /// States that this operation is part of an attempt of an outer call, such as one
        /// of [`steadfast::Retry::run`]. In a retry of that call, it makes no retries of
        /// its own, or they would multiply: it waits for a connection or a config, and
        /// follows responses that are always retried. It never takes longer than the
        /// attempt may.
        pub fn within(mut self, attempt: &steadfast::Attempt) -> Self {
            let $builder = &mut self;
            $options.within = Some(*attempt);
            self
        }

        /// Attaches a value that strategies can read.
        pub fn context<C: std::any::Any + Send + Sync>(mut self, context: C) -> Self {
            let $builder = &mut self;
            $options.context = Some(std::sync::Arc::new(context));
            self
        }
    };
}

pub(crate) use request_option_methods;
