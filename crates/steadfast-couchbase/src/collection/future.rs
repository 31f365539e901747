//! The future of an operation on a document.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::error::{Error, Result};
use crate::kv::future::KvFuture;
use crate::kv::request::KvRequest;
use crate::kv::response::KvResponse;

/// The future of an operation on a document, which `.await` makes of its builder.
///
/// Cancel-safe: dropping it abandons the current attempt. An attempt that was not sent is
/// never sent, and a late response is ignored.
#[must_use = "nothing happens until it is awaited"]
pub struct OperationFuture<'a, T> {
    kind: Kind<'a, T>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are requests, and a box would be an allocation for each"
)]
enum Kind<'a, T> {
    /// One request. Reads the result from its response.
    Request {
        request: KvFuture<'a>,
        read: fn(KvResponse<'_>) -> Result<T>,
    },
    /// An option is invalid.
    Invalid { error: Option<Error> },
    /// Several requests, or one that needs more than its response.
    Other {
        future: Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>,
    },
}

impl<'a, T> OperationFuture<'a, T> {
    /// Sends a request and reads the result from its response.
    #[inline(always)]
    pub(super) fn request(request: KvRequest<'a>, read: fn(KvResponse<'_>) -> Result<T>) -> Self {
        let request = request.execute();
        Self {
            kind: Kind::Request { request, read },
        }
    }

    /// Fails at once.
    #[cold]
    pub(super) fn invalid(error: Error) -> Self {
        let error = Some(error);
        Self {
            kind: Kind::Invalid { error },
        }
    }

    /// Runs another future.
    pub(super) fn other(future: impl Future<Output = Result<T>> + Send + 'a) -> Self {
        let future = Box::pin(future);
        Self {
            kind: Kind::Other { future },
        }
    }
}

impl<T> Future for OperationFuture<'_, T> {
    type Output = Result<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut self.kind {
            Kind::Request { request, read } => {
                let response = ready!(Pin::new(&mut *request).poll(cx))?;
                Poll::Ready(read(response).map_err(|error| request.add_context(error)))
            }
            Kind::Invalid { error } => {
                let error = error.take();
                Poll::Ready(Err(error.expect("a future is not polled after its end")))
            }
            Kind::Other { future } => future.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for OperationFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationFuture").finish_non_exhaustive()
    }
}
