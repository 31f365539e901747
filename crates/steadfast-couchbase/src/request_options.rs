//! Options that all requests share: timeout, strategy, context and `retry_if`.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use steadfast::{Call, RetryStrategy};

use crate::options::RetryIf;

/// Options that every request of the client has, whatever its service.
#[derive(Clone, Default)]
pub(crate) struct RequestOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) strategy: Option<Arc<dyn RetryStrategy>>,
    pub(crate) context: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) retry_if: Option<RetryIf>,
}

impl RequestOptions {
    /// Adds to the description of a request what the engine needs of these options.
    pub(crate) fn describe(&self, call: Call) -> Call {
        match &self.context {
            Some(context) => call.shared_context(context.clone()),
            None => call,
        }
    }
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

        /// Uses this retry strategy instead of the client's.
        pub fn retry(mut self, strategy: impl steadfast::RetryStrategy + 'static) -> Self {
            let $builder = &mut self;
            $options.strategy = Some(std::sync::Arc::new(strategy));
            self
        }

        /// Uses a retry strategy that other operations share.
        pub fn retry_shared(
            mut self,
            strategy: std::sync::Arc<dyn steadfast::RetryStrategy>,
        ) -> Self {
            let $builder = &mut self;
            $options.strategy = Some(strategy);
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

        /// Attaches a value that strategies can read.
        pub fn context<C: std::any::Any + Send + Sync>(mut self, context: C) -> Self {
            let $builder = &mut self;
            $options.context = Some(std::sync::Arc::new(context));
            self
        }
    };
}

pub(crate) use request_option_methods;
