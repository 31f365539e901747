//! Boxed errors as a type.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The error of the service under an [`HttpRetryLayer`](super::HttpRetryLayer), boxed.
///
/// Many of tower's layers (timeouts, limits, buffers) have a boxed error, which does not
/// implement [`Error`](StdError). This one does, so any of them may be under the layer:
///
/// ```
/// use http::{Request, Response};
/// use steadfast_http::HttpRetry;
/// use steadfast_http::tower::{HttpRetryLayer, ReplayBody};
/// use tower::{BoxError, Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # type Body = http_body_util::Full<bytes::Bytes>;
/// let stack = service_fn(|_: Request<ReplayBody<Body>>| async {
///     Ok::<_, BoxError>(Response::new(()))
/// });
/// let client = HttpRetryLayer::new(HttpRetry::guidance()).layer(stack);
/// let request = Request::get("http://example.com/").body(Body::default())?;
/// assert_eq!(client.oneshot(request).await?.status(), 200);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AnyError(pub(super) Arc<dyn StdError + Send + Sync>);

impl AnyError {
    /// Boxes an error. One that is boxed already is not boxed again.
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        match error.into().downcast::<AnyError>() {
            Ok(boxed) => *boxed,
            Err(error) => Self(error.into()),
        }
    }

    /// Returns the wrapped error.
    pub fn get_ref(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }

    /// Returns the wrapped error, if it is an `E`: such as an error of hyper's client.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl From<Box<dyn StdError + Send + Sync>> for AnyError {
    fn from(error: Box<dyn StdError + Send + Sync>) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for AnyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}
