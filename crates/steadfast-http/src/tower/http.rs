//! Retries for services that take `http` requests.

use std::any::{TypeId, type_name};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::{Extensions, HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use steadfast::Error;
use steadfast::first_try::FirstTry;
use steadfast::strategy::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::any_error::AnyError;
use super::future::HttpRetryFuture;
use super::ready::{AttemptServices, CallError, never_ready, not_ready};
use super::replay::{Replay, ReplayBody};
use crate::classify::{Redirects, cannot_resend};
use crate::extensions::AttemptMark;
use crate::http_retry::{self, AnyResponse, FailedAttempt, HttpCall, HttpRetry, MadeAttempt};
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
    shared: Arc<SharedParts<S>>,
}

/// What a service and its requests share, so that a request has one reference to count.
#[derive(Debug)]
struct SharedParts<S> {
    retry: HttpRetry,
    /// Retries use a clone of it. To clone it for each request would be a waste: a clone of
    /// tonic's channel allocates.
    service: Mutex<S>,
}

impl<S: Clone> HttpRetryService<S> {
    /// Wraps a service, without a layer. Retries use clones of it.
    pub fn new(inner: S, retry: HttpRetry) -> Self {
        let service = Mutex::new(inner.clone());
        let shared = Arc::new(SharedParts { retry, service });
        Self { inner, shared }
    }
}

impl<S: Clone> SharedParts<S> {
    fn service(&self) -> S {
        // Poison is harmless: a clone leaves the service as it is.
        let service = self.service.lock();
        service.unwrap_or_else(PoisonError::into_inner).clone()
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
        let shared = Arc::clone(&self.shared);
        let retry = &shared.retry;
        let (mut parts, body) = request.into_parts();
        retry.add_key(&parts.method, &mut parts.headers);
        let head = RequestHead::new(&parts.method, parts.uri.path(), &parts.headers);
        let call = retry.start(&head, parts.extensions.get(), || address(&parts.uri));
        let attempts = Attempts {
            redirects: match sends_one_request::<S::Future>() {
                true => Redirects::None,
                false => retry.unseen_redirects(&call),
            },
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            extensions: parts.extensions.clone(),
            replay: Replay::new(&parts.headers, body, retry.body_limit_bytes()),
            shared,
            call,
        };
        let retry = &attempts.shared.retry;
        let Some(mut first) = retry.first_try(&attempts.call) else {
            let services = AttemptServices::take(&mut self.inner);
            return HttpRetryFuture::retries(attempts.run(services, None));
        };
        let mut request = Request::from_parts(parts, attempts.replay.first_body());
        add_mark::<S, _>(&mut request, || retry.first_mark());
        let calling = first.watch(|| self.inner.call(request));
        HttpRetryFuture::first(calling, first, attempts)
    }
}

/// A failed request whose upload is incomplete keeps its connection for so long.
const PAUSE: Duration = Duration::from_secs(30);

/// What all attempts of a request share.
pub(super) struct Attempts<S, B> {
    shared: Arc<SharedParts<S>>,
    call: HttpCall,
    redirects: Redirects,
    method: Method,
    uri: Uri,
    version: Version,
    extensions: Extensions,
    /// Has the headers too.
    replay: Replay<B>,
}

type Failed<R> = FailedAttempt<Response<R>, AnyError>;

impl<S, B: Body> Attempts<S, B> {
    /// Returns the settings.
    pub(super) fn retry(&self) -> &HttpRetry {
        &self.shared.retry
    }

    /// Ends a first attempt that is a success at first sight. Returns whether it is.
    pub(super) fn end_if_accepted<R>(&self, first: &FirstTry, response: &Response<R>) -> bool {
        let retry = &self.shared.retry;
        retry.end_if_accepted(&self.call, first, response)
    }

    /// Ends a first attempt that was made without the engine.
    #[inline(never)]
    pub(super) fn end_first<R, E: Into<BoxError>>(
        &self,
        first: &FirstTry,
        result: Result<Response<R>, E>,
    ) -> Result<Response<R>, Failed<R>> {
        let result = self.check(result.map_err(CallError::Failed));
        if result.is_ok() {
            self.shared.retry.succeed(&self.call, first);
        }
        result
    }

    /// Ends an attempt whose time was over. Returns its failure if the body is lost;
    /// otherwise the engine makes one.
    pub(super) fn cut_off<R>(&self) -> Option<Failed<R>> {
        self.replay.lost().map(FailedAttempt::cut_off)
    }

    /// Classifies the result of an attempt.
    fn check<R, E: Into<BoxError>>(
        &self,
        result: Result<Response<R>, CallError<E>>,
    ) -> Result<Response<R>, Failed<R>> {
        let retry = &self.shared.retry;
        let result = match result {
            Ok(response) => retry.check(Ok(response), |_| self.redirects),
            Err(CallError::Failed(error)) => {
                retry.check(Err(AnyError::new(error)), |_| self.redirects)
            }
            Err(CallError::NotReady(error)) => {
                Err(FailedAttempt::new(AnyError::new(error), not_ready()))
            }
        };
        result.map_err(|failed| {
            self.replay.pause();
            failed.map(|failure| match self.replay.lost() {
                Some(lost) => cannot_resend(lost.weaken(failure), lost),
                None => failure,
            })
        })
    }

    /// Returns the request of the next attempt; none if the body is lost.
    fn next_request(&self) -> Option<Request<ReplayBody<B>>> {
        let mut request = Request::new(self.replay.next_body()?);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.replay.headers();
        *request.extensions_mut() = self.extensions.clone();
        Some(request)
    }

    /// Sends the request again after a first attempt that failed. Dropping the future drops
    /// the attempt that is under way.
    pub(super) fn run_after<R>(
        self,
        first: MadeAttempt<Response<R>, AnyError>,
    ) -> impl Future<Output = Result<Response<R>, Error<AnyError>>> + Send
    where
        S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: Send + Unpin + 'static,
        R: Send,
    {
        let services = AttemptServices::after_first(self.shared.service());
        self.run(services, Some(first))
    }

    /// Sends the request, or sends it again if the first attempt was made and failed.
    /// Dropping the future drops the attempt that is under way.
    async fn run<R>(
        self,
        mut services: AttemptServices<S>,
        made: Option<MadeAttempt<Response<R>, AnyError>>,
    ) -> Result<Response<R>, Error<AnyError>>
    where
        S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: Send + Unpin + 'static,
        R: Send,
    {
        let attempts = &self;
        let _ends_pause = attempts.replay.ends_pause();
        let cut_off = || attempts.cut_off();
        let abandon = || attempts.replay.abandon();
        let address = || address(&attempts.uri);
        let send = |mark| {
            let mut request = attempts.next_request()?;
            add_mark::<S, _>(&mut request, || mark);
            let calling = services.call(request);
            Some(async move { attempts.check(calling.await) })
        };
        let (retry, call) = (&attempts.shared.retry, &attempts.call);
        let result = http_retry::run(retry, call, made, cut_off, address, &abandon, send).await;
        match result.as_ref().map(Response::version) {
            // A paused upload would keep a stream open. The server controls the upload.
            Ok(Version::HTTP_2) => attempts.replay.resume(),
            // To end the upload closes the connection. Before that, the caller has time to read
            // the response.
            Ok(_) => attempts.replay.end_pause(|| retry.sleep(PAUSE)),
            Err(_) => {}
        }
        result
    }
}

/// Marks the request of an attempt, unless nothing inside the service can read the mark.
fn add_mark<S, B>(request: &mut Request<B>, mark: impl FnOnce() -> AttemptMark) {
    if !is_known_client::<S>() {
        request.extensions_mut().insert(mark());
    }
}

/// Returns whether a service with this future follows no redirects. hyper's client
/// follows none. Only it can make this future, so a service that returns it cannot
/// wait for a first response and then send a second request.
fn sends_one_request<F: 'static>() -> bool {
    TypeId::of::<F>() == TypeId::of::<hyper_util::client::legacy::ResponseFuture>()
}

/// Returns whether the service is a client of hyper or tonic itself, without a layer around
/// it. Then no code reads the mark, which takes three allocations.
///
/// The clients are generic, or not a dependency of this crate, so they have no `TypeId`
/// here. If a compiler writes their names in another way, the mark is inserted again.
fn is_known_client<S>() -> bool {
    let name = type_name::<S>();
    name.starts_with("hyper_util::client::legacy::client::Client<")
        || name.ends_with("::TonicBodies<tonic::transport::channel::Channel>")
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

    fn extensions_mut(&mut self) -> &mut Extensions {
        self.extensions_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hypers_client_is_known_and_a_layer_around_it_is_not() {
        use hyper_util::client::legacy::{Client, connect::HttpConnector};
        struct Layered<S>(S);
        assert!(is_known_client::<Client<HttpConnector, String>>());
        assert!(!is_known_client::<Layered<Client<HttpConnector, String>>>());
        assert!(!is_known_client::<Layered<()>>());
    }

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
