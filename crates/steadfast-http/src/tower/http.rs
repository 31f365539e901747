//! Retries for services that take `http` requests.

use std::any::TypeId;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::request::Parts;
use ::http::{Extensions, HeaderMap, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use steadfast::strategy::BoxError;
use steadfast::{Attempt, Error};
use tower_layer::Layer;
use tower_service::Service;

use super::any_error::AnyError;
use super::ready::{CallError, call, never_ready, not_ready};
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

impl<S> Layer<S> for HttpRetryLayer {
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
}

impl<S> HttpRetryService<S> {
    /// Wraps a service, without a layer.
    pub const fn new(inner: S, retry: HttpRetry) -> Self {
        Self { inner, retry }
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
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, Self::Error>> + Send>>;

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
        driver.begin();
        let attempts = Attempts {
            follows_redirects: !sends_one_request::<S::Future>(),
            parts: parts.clone(),
            replay: Replay::new(body, self.retry.body_limit_bytes()),
        };
        let request = Request::from_parts(parts, attempts.replay.first_body());
        // A permit that readiness acquired is used by this request.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        Box::pin(send(ready, driver, attempts, request))
    }
}

/// Sends a request, attempt by attempt. Dropping the future drops the attempt under way.
async fn send<S, B, R>(
    mut service: S,
    mut driver: HttpDriver<Response<R>, AnyError>,
    attempts: Attempts<B>,
    request: Request<ReplayBody<B>>,
) -> Result<Response<R>, Error<AnyError>>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    let mut first = Some(request);
    while driver.next(&attempts).await {
        let attempt = driver.attempt();
        let is_ready = first.is_some();
        let Some(request) = first.take().or_else(|| attempts.request(attempt)) else {
            driver.fail_unmade(&attempts);
            continue;
        };
        let result = match driver.run(call(&mut service, is_ready, request)).await {
            Some(Err(CallError::NotReady(error))) => {
                driver.fail(Some(Err(AnyError::new(error))), not_ready(), &attempts);
                continue;
            }
            Some(Err(CallError::Failed(error))) => Some(Err(AnyError::new(error))),
            Some(Ok(response)) => Some(Ok(response)),
            None => None,
        };
        if let Some(response) = driver.end(result, &attempts) {
            return Ok(response);
        }
    }
    attempts.give_up(&mut driver)
}

/// How long a failed request with an incomplete upload keeps its connection.
const PAUSE: Duration = Duration::from_secs(30);

/// What all attempts of a request share.
struct Attempts<B> {
    follows_redirects: bool,
    parts: Parts,
    replay: Replay<B>,
}

impl<B: Body> Attempts<B> {
    /// Returns the request of a retry; none if the body is lost.
    fn request(&self, attempt: Attempt) -> Option<Request<ReplayBody<B>>> {
        let (body, mut parts) = (self.replay.next_body()?, self.parts.clone());
        parts.extensions.insert(AttemptMark::from(attempt));
        Some(Request::from_parts(parts, body))
    }

    /// Ends the request, and decides what becomes of a paused upload.
    fn give_up<R>(
        &self,
        driver: &mut HttpDriver<Response<R>, AnyError>,
    ) -> Result<Response<R>, Error<AnyError>> {
        let result = driver.give_up().map_err(with_source);
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

impl<B, R> SentRequest<Response<R>, AnyError> for Attempts<B> {
    fn address(&self) -> String {
        address(&self.parts.uri)
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

impl<B> Drop for Attempts<B> {
    fn drop(&mut self) {
        self.replay.abandon_if_paused();
    }
}

/// Lets code that searches the sources of an error, such as tonic's, find that of the service.
fn with_source(error: Error<AnyError>) -> Error<AnyError> {
    let (mut report, last) = error.into_parts();
    if let Some(AnyError(source)) = &last {
        report = report.with_source(Arc::clone(source));
    }
    Error::from_parts(report, last)
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
