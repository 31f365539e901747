//! The parts of a request that a retry sends again.
//!
//! `Request::try_clone` makes a table of extensions and drops it, which takes three
//! allocations. This copy has all that reqwest reads of a request.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::library::{Body, Request, Url};
use bytes::Bytes;
use http::{HeaderMap, Method, Version};
use http_body::Body as _;

/// A copy of a request. It shares the body.
pub(super) struct KeptRequest {
    pub(super) url: Url,
    pub(super) method: Method,
    headers: HeaderMap,
    version: Version,
    timeout: Option<Duration>,
    body: KeptBody,
}

enum KeptBody {
    None,
    InMemory(Bytes),
    /// A stream cannot be copied. The request is sent once.
    Lost,
}

impl KeptRequest {
    /// Copies a request. The request stays as it is.
    pub(super) fn of(request: &mut Request) -> Self {
        let body = match request.body_mut() {
            None => KeptBody::None,
            Some(body) => shared_bytes(body).map_or(KeptBody::Lost, KeptBody::InMemory),
        };
        Self {
            url: request.url().clone(),
            method: request.method().clone(),
            headers: request.headers().clone(),
            version: request.version(),
            timeout: request.timeout().copied(),
            body,
        }
    }

    /// Returns the request again, unless its body is lost.
    pub(super) fn request(&self) -> Option<Request> {
        let body = match &self.body {
            KeptBody::None => None,
            KeptBody::InMemory(bytes) => Some(Body::from(bytes.clone())),
            KeptBody::Lost => return None,
        };
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.version_mut() = self.version;
        *request.body_mut() = body;
        if self.timeout.is_some() {
            *request.timeout_mut() = self.timeout;
        }
        Some(request)
    }

    /// Returns whether the body was a stream.
    pub(super) const fn is_lost(&self) -> bool {
        matches!(self.body, KeptBody::Lost)
    }
}

/// Returns the bytes of a body in memory, which it keeps; none for a stream. reqwest lends
/// them only as a slice. A body in memory is one frame that is always ready, so it is read
/// and made again.
///
/// # Panics
/// If a version of reqwest returns only a part of it: a shorter body must not be sent.
fn shared_bytes(body: &mut Body) -> Option<Bytes> {
    let len = body.as_bytes()?.len();
    let mut cx = Context::from_waker(Waker::noop());
    let bytes = match Pin::new(&mut *body).poll_frame(&mut cx) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        Poll::Ready(Some(Err(_)) | None) | Poll::Pending => Bytes::new(),
    };
    assert_eq!(bytes.len(), len, "a body in memory is one frame");
    *body = Body::from(bytes.clone());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::library as reqwest;
    use super::*;

    #[test]
    fn a_copy_has_all_that_is_sent_and_the_timeout() {
        let client = reqwest::Client::new();
        let builder = client
            .put("http://user:secret@example.com:81/a?b#c")
            .header("x-one", "1")
            .header("x-one", "2")
            .version(Version::HTTP_2)
            .timeout(Duration::from_secs(3));
        for body in [None, Some(""), Some("text")] {
            let builder = builder.try_clone().unwrap();
            let builder = match body {
                Some(body) => builder.body(body.to_owned()),
                None => builder,
            };
            let mut request = builder.build().unwrap();
            let kept = KeptRequest::of(&mut request);
            assert!(!kept.is_lost());
            for request in [request, kept.request().unwrap()] {
                assert_eq!(request.method(), Method::PUT);
                assert_eq!(request.url().as_str(), "http://example.com:81/a?b#c");
                assert_eq!(request.headers().len(), 3, "two, and the password");
                assert_eq!(request.headers().get_all("x-one").iter().count(), 2);
                assert_eq!(request.version(), Version::HTTP_2);
                assert_eq!(request.timeout(), Some(&Duration::from_secs(3)));
                let bytes = request.body().map(|body| body.as_bytes().unwrap());
                assert_eq!(bytes, body.map(str::as_bytes));
            }
        }
    }

    #[test]
    fn a_stream_is_not_read_and_cannot_be_sent_again() {
        let stream = Body::wrap("text".to_owned());
        let request = reqwest::Client::new()
            .put("http://example.com")
            .body(stream);
        let mut request = request.build().unwrap();
        let kept = KeptRequest::of(&mut request);
        assert!(kept.is_lost() && kept.request().is_none());
        let left = request.body().unwrap().size_hint();
        assert_eq!(left.exact(), Some(4));
    }
}
