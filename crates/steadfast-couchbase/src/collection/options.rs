//! Option methods shared by the operation builders.

/// Adds the options of all operations.
macro_rules! common_options {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            crate::drive::request_option_methods!(request.options);
        }
    };
}

/// Adds durability, which only writes have.
macro_rules! durability_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Waits until the write is this durable. The timeout is then ten
            /// seconds by default, and 1.5 s at least.
            pub fn durability(mut self, level: crate::kv::request::DurabilityLevel) -> Self {
                self.request.durability = Some(level);
                self
            }
        }
    };
}

/// Adds the check of the document's version.
macro_rules! cas_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Requires that the document still has this version.
            pub fn cas(mut self, cas: u64) -> Self {
                self.request.cas = Some(cas);
                self
            }
        }
    };
}

/// Adds the document's expiry.
macro_rules! expiry_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Sets when the document expires: after a [`Duration`], or at a
            /// [`SystemTime`].
            ///
            /// [`Duration`]: std::time::Duration
            /// [`SystemTime`]: std::time::SystemTime
            pub fn expiry(mut self, expiry: impl Into<crate::collection::Expiry>) -> Self {
                self.expiry = expiry.into();
                self
            }
        }
    };
}

/// Adds the option to keep the document's expiry.
macro_rules! preserve_expiry_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Keeps the current expiry of the document.
            pub fn preserve_expiry(mut self) -> Self {
                self.request.preserve_expiry = true;
                self
            }
        }
    };
}

/// Makes a builder awaitable, by its `run`.
///
/// Cancel-safe: dropping the future abandons the current attempt. An attempt that
/// was not sent is never sent, and a late response is ignored.
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

pub(super) use {
    awaitable, cas_option, common_options, durability_option, expiry_option, preserve_expiry_option,
};
