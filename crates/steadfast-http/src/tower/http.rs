//! Retries for services that take `http` requests.

use std::any::TypeId;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::{Extensions, HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use steadfast::strategy::BoxError;
use steadfast::{Attempt, Error};
use tower_layer::Layer;
use tower_service::Service;

use super::any_error::AnyError;
use super::future::HttpRetryFuture;
use super::ready::{AttemptCall, never_ready};
use super::replay::{Replay, ReplayBody};
use crate::classify::Redirects;
use crate::extensions::AttemptMark;
use crate::http_retry::{self, AnyResponse, HttpDriver, HttpRetry, LostBody, SentRequest};
use crate::idempotent::RequestHead;

/// Wraps services in [`HttpRetryService`].
#[derive(Clone, Debug)]
pub struct HttpRetryLayer {
    retry: HttpRetry,
}

impl HttpRetryLayer {
    /// Retries as `retry` says. The services that one layer makes share a budget.
    pub const fn new(retry: HttpRetry) -> Self {
        Self { retry }
    }
}

impl<S: Clone> Layer<S> for HttpRetryLayer {
    type Service = HttpRetryService<S>;

    fn layer(&self, inner: S) -> HttpRetryService<S> {
        HttpRetryService::new(inner, self.retry.clone())
    }
}

/// Sends requests again where that is safe and useful. See the [module](super).
///
/// The inner service gets bodies of type [`ReplayBody`]. It is polled for
/// readiness before every attempt. Dropping a call's future drops the attempt
/// that is under way; its cost stays paid.
#[derive(Clone, Debug)]
pub struct HttpRetryService<S> {
    inner: S,
    retry: HttpRetry,
    /// Retries use a clone of it. To clone it for each request would be a waste: a clone of
    /// tonic's channel allocates.
    service: Arc<Mutex<S>>,
}

impl<S: Clone> HttpRetryService<S> {
    /// Wraps a service, without a layer. Retries use clones of it.
    pub fn new(inner: S, retry: HttpRetry) -> Self {
        let service = Arc::new(Mutex::new(inner.clone()));
        Self {
            inner,
            retry,
            service,
        }
    }
}

impl<S, B, R> Service<Request<B>> for HttpRetryService<S>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body + Send + Unpin + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = Error<AnyError>;
    type Future = HttpRetryFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(
            ready!(self.inner.poll_ready(cx)).map_err(|error| never_ready(AnyError::new(error))),
        )
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        self.retry.add_key(&parts.method, &mut parts.headers);
        let head = RequestHead::new(&parts.method, parts.uri.path(), &parts.headers);
        let marked = parts.extensions.get::<AttemptMark>().is_some();
        let mut driver = (self.retry).driver(&head, marked, || address(&parts.uri));
        let attempts = Attempts {
            service: Arc::clone(&self.service),
            follows_redirects: !sends_one_request::<S::Future>(),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            extensions: parts.extensions.clone(),
            replay: Replay::new(&parts.headers, body, self.retry.body_limit_bytes()),
        };
        let request = Request::from_parts(parts, attempts.replay.first_body());
        if driver.begin() {
            driver.attempt();
            let future = self.inner.call(request);
            return HttpRetryFuture::new(AttemptCall::Called { future }, true, driver, attempts);
        }
        // A permit that readiness acquired is used by this request.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        HttpRetryFuture::new(
            AttemptCall::when_ready(ready, request),
            false,
            driver,
            attempts,
        )
    }
}

/// A failed request whose upload is incomplete keeps its connection for so long.
const PAUSE: Duration = Duration::from_secs(30);

/// What all attempts of a request share.
pub(super) struct Attempts<S, B> {
    service: Arc<Mutex<S>>,
    follows_redirects: bool,
    method: Method,
    uri: Uri,
    version: Version,
    extensions: Extensions,
    /// Has the headers too.
    replay: Replay<B>,
}

impl<S: Clone, B: Body> Attempts<S, B> {
    /// Returns the call of a retry; none if the body is lost.
    pub(super) fn call_again(
        &self,
        attempt: Attempt,
    ) -> Option<AttemptCall<S, Request<ReplayBody<B>>, S::Future>>
    where
        S: Service<Request<ReplayBody<B>>>,
    {
        let mut request = Request::new(self.replay.next_body()?);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.replay.headers();
        *request.extensions_mut() = self.extensions.clone();
        request.extensions_mut().insert(AttemptMark::from(attempt));
        // Poison is harmless: a clone leaves the service as it is.
        let service = self.service.lock();
        let service = service.unwrap_or_else(PoisonError::into_inner).clone();
        Some(AttemptCall::when_ready(service, request))
    }
}

impl<S, B> Attempts<S, B> {
    /// Ends the request, and decides what becomes of a paused upload.
    pub(super) fn give_up<R>(
        &self,
        driver: &mut HttpDriver<Response<R>, AnyError>,
    ) -> Result<Response<R>, Error<AnyError>> {
        let result = driver.give_up();
        match result.as_ref().map(Response::version) {
            // A paused upload would keep a stream open. The server controls the upload.
            Ok(Version::HTTP_2) => self.replay.resume(),
            // To end the upload closes the connection. Before that, the caller has time to read
            // the response.
            Ok(_) => self.replay.end_pause(|| driver.sleep(PAUSE)),
            Err(_) => {}
        }
        result
    }
}

impl<S, B, R> SentRequest<Response<R>, AnyError> for Attempts<S, B> {
    fn address(&self) -> String {
        address(&self.uri)
    }

    fn redirects(&self, _: &Result<Response<R>, AnyError>, unseen: Redirects) -> Redirects {
        match self.follows_redirects {
            true => unseen,
            false => Redirects::None,
        }
    }

    fn lost(&self) -> Option<LostBody> {
        self.replay.lost()
    }

    fn failed(&self) {
        self.replay.pause();
    }

    fn retried(&self) {
        self.replay.abandon();
    }
}

impl<S, B> Drop for Attempts<S, B> {
    fn drop(&mut self) {
        self.replay.abandon_if_paused();
    }
}

/// Returns whether a service with this future follows no redirects. hyper's client
/// follows none. Only it can make this future, so a service that returns it cannot
/// wait for a first response and then send a second request.
fn sends_one_request<F: 'static>() -> bool {
    TypeId::of::<F>() == TypeId::of::<hyper_util::client::legacy::ResponseFuture>()
}

fn address(uri: &Uri) -> String {
    http_retry::address(uri.host(), uri.port_u16(), uri.scheme_str())
}

impl<B> AnyResponse for Response<B> {
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
    use super::*;

    #[test]
    fn an_address_is_host_and_port_and_never_a_password() {
        for (uri, expected) in [
            ("http://Example.com/a", "example.com:80"),
            ("https://example.com", "example.com:443"),
            ("http://user:secret@example.com:8080/", "example.com:8080"),
            ("http://[::1]:9/", "[::1]:9"),
            ("/only/a/path", ""),
        ] {
            assert_eq!(address(&uri.parse().unwrap()), expected);
        }
    }
}
