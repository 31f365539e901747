//! The macro that defines the operation builders.

/// Defines a builder with its options, and makes it awaitable.
///
/// `Name { fields } + options => Output` sends one request and reads the output
/// from its response. With `, prepare` the builder's method of that name checks and
/// encodes its options first. With `, run` its async method of that name does
/// everything, in a box. With `, future` its method of that name makes the future.
///
/// Cancel-safe: dropping the future abandons the current attempt. An attempt that
/// was not sent is never sent, and a late response is ignored.
macro_rules! operation {
    (
        $(#[$doc:meta])*
        $Operation:ident { $($(#[$field_doc:meta])* $field:ident: $Type:ty),* }
        $(+ $option:ident)* => $Output:ty $(, $how:ident)?
    ) => {
        $(#[$doc])*
        #[must_use = "nothing happens until it is awaited"]
        pub struct $Operation<'a> {
            request: crate::kv::request::KvRequest<'a>,
            $($(#[$field_doc])* $field: $Type,)*
        }

        impl<'a> $Operation<'a> {
            crate::request_options::request_option_methods!(|it| it.request.options.get_or_insert_default());
            $(operation!(@option $option);)*
        }

        impl<'a> std::future::IntoFuture for $Operation<'a> {
            type Output = crate::error::Result<$Output>;
            type IntoFuture = crate::collection::OperationFuture<'a, $Output>;

            #[inline(always)]
            fn into_future(self) -> Self::IntoFuture {
                operation!(@future self, $Output $(, $how)?)
            }
        }
    };
    (@future $self:ident, $Output:ty, run) => {
        crate::collection::OperationFuture::other($self.run())
    };
    (@future $self:ident, $Output:ty, future) => {
        $self.future()
    };
    (@future $self:ident, $Output:ty, prepare) => {{
        let mut operation = $self;
        match operation.prepare() {
            Ok(()) => {
                crate::collection::OperationFuture::request(operation.request, <$Output>::read)
            }
            Err(error) => crate::collection::OperationFuture::invalid(error),
        }
    }};
    (@future $self:ident, $Output:ty) => {
        crate::collection::OperationFuture::request($self.request, <$Output>::read)
    };
    (@option durability) => {
        /// Waits until the write is this durable. The timeout is then ten seconds by
        /// default, and 1.5 s at least.
        pub fn durability(mut self, level: crate::kv::request::DurabilityLevel) -> Self {
            self.request.durability = Some(level);
            self
        }
    };
    (@option cas) => {
        /// Requires that the document still has this version.
        pub fn cas(mut self, cas: u64) -> Self {
            self.request.require_cas(cas);
            self
        }
    };
    (@option expiry) => {
        /// Sets when the document expires: after a [`Duration`], or at a
        /// [`SystemTime`].
        ///
        /// [`Duration`]: std::time::Duration
        /// [`SystemTime`]: std::time::SystemTime
        pub fn expiry(mut self, expiry: impl Into<crate::collection::Expiry>) -> Self {
            self.expiry = expiry.into();
            self
        }
    };
    (@option preserve_expiry) => {
        /// Keeps the current expiry of the document.
        pub fn preserve_expiry(mut self) -> Self {
            self.request.preserve_expiry = true;
            self
        }
    };
}

pub(super) use operation;
