//! A request, and the moment in which it begins to leave.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Method;
use hyper::body::{Body, Frame, SizeHint};

/// A request to a service, without the node and the credentials.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    /// Path and query, both escaped already.
    pub(crate) path: String,
    /// The content's type, and a header of the service's own if it has one.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Outgoing {
    /// A request without a body.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// A request with JSON in it.
    pub(crate) fn json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, path).content("application/json", body)
    }

    /// With a body.
    pub(crate) fn content(mut self, kind: &str, body: impl Into<Bytes>) -> Self {
        // A body takes the place of the one before.
        self.headers.retain(|(name, _)| *name != "content-type");
        self.headers.push(("content-type", kind.to_owned()));
        self.body = body.into();
        self
    }
}

/// Whether a connection has taken the request up.
#[derive(Clone, Default)]
pub(super) struct Mark(Arc<AtomicBool>);

impl Mark {
    /// False: not a byte of the request has left. True: some may have.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A body that notices when it is looked at.
///
/// A connection asks a body for its size before it encodes the head of the
/// request, and nobody asks before: the pool only hands the request on. A request
/// whose body was never looked at is therefore one that no connection has begun
/// to write. Should some other layer ever ask earlier, the mark errs on the safe
/// side.
pub(crate) struct Marked {
    mark: Mark,
    body: Option<Bytes>,
}

impl Marked {
    pub(super) fn new(body: Bytes) -> (Self, Mark) {
        let mark = Mark::default();
        let body = (!body.is_empty()).then_some(body);
        let marked = Self {
            mark: mark.clone(),
            body,
        };
        (marked, mark)
    }
}

impl Body for Marked {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.mark.set();
        Poll::Ready(self.body.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.mark.set();
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.mark.set();
        let bytes = self.body.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_bodies_the_last_is_sent_as_what_it_is() {
        let json = Outgoing::json("/x", "{}");
        let form = json.content("application/x-www-form-urlencoded", "a=1");
        let kind = "application/x-www-form-urlencoded".to_owned();
        assert_eq!(form.headers, [("content-type", kind)]);
        assert_eq!(form.body, "a=1");
    }
}
