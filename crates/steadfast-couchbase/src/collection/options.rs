//! What operations can be told, written down once.

/// Adds the options that all operations have.
macro_rules! common_options {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            crate::drive::request_option_methods!(common);
        }
    };
}

/// Adds the option of a write to be durable. Reads do not have it.
macro_rules! durability_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Waits until the write is as safe as this. It has ten seconds for
            /// that unless told otherwise, and 1.5 s at least.
            pub fn durability(mut self, level: crate::kv::request::DurabilityLevel) -> Self {
                self.durability = Some(level);
                self
            }
        }
    };
}

/// Adds the option to write a certain version only.
macro_rules! cas_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Only if the document has still this version.
            pub fn cas(mut self, cas: u64) -> Self {
                self.cas = Some(cas);
                self
            }
        }
    };
}

/// Adds the option of a document to vanish.
macro_rules! expiry_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Lets the document vanish: after a [`Duration`], or at a
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

/// Adds the option to leave a document's expiry alone.
macro_rules! preserve_expiry_option {
    ($Operation:ident) => {
        impl<'a> $Operation<'a> {
            /// Keeps the expiry that the document has.
            pub fn preserve_expiry(mut self) -> Self {
                self.preserve_expiry = true;
                self
            }
        }
    };
}

/// Makes an operation something to await, by its `run`.
///
/// Dropping the future abandons the attempt under way: it is not sent if it was
/// not yet, and its answer is ignored if it was.
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
