//! What every operation can be told, written down once.

/// Adds the options that all operations have.
macro_rules! common_options {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Gives it so much time, all its attempts included.
            #[must_use]
            pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
                self.common.timeout = Some(timeout);
                self
            }

            /// Lets this strategy decide about retries, instead of the client's.
            #[must_use]
            pub fn retry(mut self, strategy: impl steadfast::RetryStrategy + 'static) -> Self {
                self.common.strategy = Some(std::sync::Arc::new(strategy));
                self
            }

            /// The same with a strategy that is shared with other operations.
            #[must_use]
            pub fn retry_shared(
                mut self,
                strategy: std::sync::Arc<dyn steadfast::RetryStrategy>,
            ) -> Self {
                self.common.strategy = Some(strategy);
                self
            }

            /// Attaches a value that the strategy can read.
            #[must_use]
            pub fn context<T: std::any::Any + Send + Sync>(mut self, context: T) -> Self {
                self.common.context = Some(std::sync::Arc::new(context));
                self
            }
        }
    };
}

/// Makes an operation something to await, by its `run`.
macro_rules! awaitable {
    ($Operation:ident => $Output:ty) => {
        impl<'a> std::future::IntoFuture for $Operation<'a> {
            type Output = crate::error::Result<$Output>;
            type IntoFuture =
                std::pin::Pin<Box<dyn std::future::Future<Output = Self::Output> + Send + 'a>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.run())
            }
        }
    };
}

pub(super) use {awaitable, common_options};
