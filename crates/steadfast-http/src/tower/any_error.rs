//! Errors without a type.

use std::error::Error as StdError;
use std::fmt;

/// An error of any kind, as a type.
///
/// Many of tower's layers (timeouts, limits, buffers) have a boxed error, and a
/// box of an error is not an error itself, so that nobody can look behind it. A
/// service with such a layer is put under an
/// [`HttpRetryLayer`](super::HttpRetryLayer) with its error in this:
///
/// ```
/// use http::{Request, Response};
/// use steadfast_http::HttpRetry;
/// use steadfast_http::tower::{AnyError, HttpRetryLayer, ReplayBody};
/// use tower::{BoxError, Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # type Body = http_body_util::Full<bytes::Bytes>;
/// let stack = service_fn(|_: Request<ReplayBody<Body>>| async {
///     Ok::<_, BoxError>(Response::new(()))
/// });
/// let client = HttpRetryLayer::new(HttpRetry::guidance()).layer(stack.map_err(AnyError::from));
/// let request = Request::get("http://example.com/").body(Body::default())?;
/// assert_eq!(client.oneshot(request).await?.status(), 200);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AnyError(Box<dyn StdError + Send + Sync>);

impl AnyError {
    /// The error in it.
    pub fn get_ref(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }

    /// The error in it.
    pub fn into_inner(self) -> Box<dyn StdError + Send + Sync> {
        self.0
    }
}

impl From<Box<dyn StdError + Send + Sync>> for AnyError {
    fn from(error: Box<dyn StdError + Send + Sync>) -> Self {
        Self(error)
    }
}

/// It speaks for the error in it.
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
