//! What every operation of an HTTP service can be told.

use std::sync::Arc;
use std::time::Duration;

use steadfast::{Call, RetryStrategy};
use steadfast_wire::config::Service;

use super::host::Host;
use super::rows::Limits;

/// How an operation is to be run.
pub(crate) struct Common {
    service: Service,
    pub(crate) call: Call,
    pub(crate) timeout: Option<Duration>,
    pub(crate) strategy: Option<Arc<dyn RetryStrategy>>,
    pub(crate) limits: Limits,
}

impl Common {
    pub(crate) fn new(operation: &'static str, service: Service) -> Self {
        Self {
            service,
            call: Call::new(operation).service(super::name(service)),
            timeout: None,
            strategy: None,
            limits: Limits::default(),
        }
    }

    /// The call with its timeout, and the strategy.
    pub(crate) fn start(&self, host: &dyn Host) -> (Call, Arc<dyn RetryStrategy>) {
        let timeout = self.timeout.unwrap_or_else(|| host.timeout(self.service));
        let strategy = self.strategy.clone();
        (
            self.call.clone().timeout(timeout),
            strategy.unwrap_or_else(|| host.strategy()),
        )
    }
}

/// The methods of a builder that has a [`Common`] in its field `common`.
macro_rules! common_methods {
    () => {
        /// Gives the operation so much time in all: attempts, waits and rows.
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
            self.common.timeout = Some(timeout);
            self
        }

        /// Uses this strategy instead of the client's.
        pub fn retry(mut self, strategy: impl steadfast::RetryStrategy + 'static) -> Self {
            self.common.strategy = Some(std::sync::Arc::new(strategy));
            self
        }

        /// The same with a strategy that is shared with other operations.
        pub fn retry_shared(
            mut self,
            strategy: std::sync::Arc<dyn steadfast::RetryStrategy>,
        ) -> Self {
            self.common.strategy = Some(strategy);
            self
        }

        /// Attaches a value that strategies can read.
        pub fn context<C: std::any::Any + Send + Sync>(mut self, context: C) -> Self {
            self.common.call = self.common.call.context(context);
            self
        }
    };
    (rows) => {
        $crate::services::common::common_methods!();

        /// Lets a row have so many bytes, 64 MiB unless told otherwise. A row that
        /// has more is an error.
        pub fn max_row_size(mut self, bytes: usize) -> Self {
            self.common.limits.row = bytes;
            self
        }
    };
}

pub(crate) use common_methods;
