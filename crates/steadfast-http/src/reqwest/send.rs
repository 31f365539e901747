//! Sends one reqwest request with retries.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::library::{self, Body, Request, RequestBuilder, Response, Url};
use bytes::Bytes;
use http::{Extensions, HeaderMap, Method, StatusCode, Version};
use http_body::Body as _;
use steadfast::{Attempt, Error};

use super::redirect::{Hops, redirects, watched};
use crate::classify::Redirects;
use crate::http_retry::{self, AnyResponse, HttpDriver, HttpRetry, LostBody, SentRequest};
use crate::idempotent::RequestHead;

/// Adds `send` with retries to requests. See the [module](super).
pub trait SendWithRetry: sealed::Sealed {
    /// Sends the request, and sends it again where that is safe and useful.
    ///
    /// Dropping the future drops the attempt that is under way; its cost stays
    /// paid.
    fn send_with_retry(
        self,
        retry: &HttpRetry,
    ) -> impl Future<Output = Result<Response, Error<library::Error>>> + Send;
}

impl SendWithRetry for RequestBuilder {
    async fn send_with_retry(self, retry: &HttpRetry) -> Result<Response, Error<library::Error>> {
        let (client, request) = self.build_split();
        let mut retried = match request {
            Ok(request) => RetriedRequest::new(retry, false, request),
            Err(error) => return Err(retry.not_built(error)),
        };
        while let Some((request, _)) = retried.next().await {
            if let Some(response) = retried.attempt(client.execute(request)).await {
                return Ok(response);
            }
        }
        retried.give_up()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::RequestBuilder {}
}

/// A request that is sent attempt by attempt.
pub(super) struct RetriedRequest<E> {
    driver: HttpDriver<Response, E>,
    first: Option<Request>,
    kept: KeptRequest,
}

impl<E: StdError + 'static> RetriedRequest<E> {
    /// Begins a request. If it is `marked`, an outer layer makes the retries.
    pub(super) fn new(retry: &HttpRetry, marked: bool, mut request: Request) -> Self {
        let method = request.method().clone();
        retry.add_key(&method, request.headers_mut());
        let head = RequestHead::new(&method, request.url().path(), request.headers());
        let mut driver = retry.driver(&head, marked, || address(request.url()));
        driver.begin();
        Self {
            driver,
            kept: KeptRequest::of(&mut request),
            first: Some(request),
        }
    }

    /// Waits for the next attempt, and returns what it sends. Returns none if the request has
    /// ended.
    pub(super) async fn next(&mut self) -> Option<(Request, Attempt)> {
        while self.driver.next(&self.kept).await {
            let attempt = self.driver.attempt();
            match self.first.take().or_else(|| self.kept.request()) {
                Some(request) => return Some((request, attempt)),
                None => self.driver.fail_unmade(&self.kept),
            }
        }
        None
    }

    /// Makes an attempt. Returns its response if that is a success. Dropping the future drops
    /// the attempt.
    pub(super) async fn attempt(
        &mut self,
        sending: impl Future<Output = Result<Response, E>>,
    ) -> Option<Response> {
        let result = {
            let mut sending = pin!(watched(sending));
            let result = self.driver.run(sending.as_mut()).await;
            self.kept.hops = sending.take_value().unwrap_or_default().into_inner();
            result
        };
        self.driver.end(result, &self.kept)
    }

    /// Returns the result of a request that has ended: its last response, or an error.
    pub(super) fn give_up(mut self) -> Result<Response, Error<E>> {
        self.driver.give_up()
    }
}

impl<E: StdError + 'static> SentRequest<Response, E> for KeptRequest {
    fn address(&self) -> String {
        address(&self.url)
    }

    fn redirects(&self, result: &Result<Response, E>, unseen: Redirects) -> Redirects {
        redirects((&self.method, &self.url), unseen, result, self.hops)
    }

    fn lost(&self) -> Option<LostBody> {
        self.is_lost().then_some(LostBody::Stream)
    }
}

/// The parts of a request that a retry sends again. It shares the body.
///
/// `Request::try_clone` makes a table of extensions and drops it, which takes three
/// allocations. This copy has all that reqwest reads of a request.
struct KeptRequest {
    url: Url,
    method: Method,
    headers: HeaderMap,
    version: Version,
    timeout: Option<Duration>,
    body: KeptBody,
    /// The requests of the last attempt.
    hops: Hops,
}

enum KeptBody {
    None,
    InMemory(Bytes),
    /// A stream cannot be copied. The request is sent once.
    Lost,
}

impl KeptRequest {
    /// Copies a request. The request stays as it is.
    fn of(request: &mut Request) -> Self {
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
            hops: Hops::default(),
        }
    }

    /// Returns the request again, unless its body is lost.
    fn request(&self) -> Option<Request> {
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
    const fn is_lost(&self) -> bool {
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

fn address(url: &Url) -> String {
    http_retry::address(url.host_str(), url.port(), Some(url.scheme()))
}

impl AnyResponse for Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn extensions(&self) -> &Extensions {
        self.extensions()
    }

    fn extensions_mut(&mut self) -> &mut Extensions {
        self.extensions_mut()
    }
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
