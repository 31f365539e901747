//! Retries for services that take `http` requests.

use std::any::{TypeId, type_name};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::{Extensions, HeaderMap, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use steadfast::Error;
use steadfast::strategy::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::any_error::AnyError;
use super::ready::{AttemptServices, CallError, never_ready, not_ready};
use super::replay::{Replay, ReplayBody};
use crate::classify::{Redirects, cannot_resend};
use crate::extensions::AttemptMark;
use crate::http_retry::{self, AnyResponse, FailedAttempt, HttpRetry};
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

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

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
    type Future = BoxFuture<Result<Response<R>, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(
            ready!(self.inner.poll_ready(cx)).map_err(|error| never_ready(AnyError::new(error))),
        )
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let services = AttemptServices::take(&mut self.inner);
        Box::pin(send(services, self.retry.clone(), request))
    }
}

async fn send<S, B, R>(
    mut services: AttemptServices<S>,
    retry: HttpRetry,
    request: Request<B>,
) -> Result<Response<R>, Error<AnyError>>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body + Send + Unpin + 'static,
    R: Send,
{
    let (mut parts, body) = request.into_parts();
    retry.add_key(&parts.method, &mut parts.headers);
    let address = || address(&parts.uri);
    let head = RequestHead::new(&parts.method, parts.uri.path(), &parts.headers);
    let started = retry.start(&head, parts.extensions.get(), address);
    let redirects = match sends_one_request::<S::Future>() {
        true => Redirects::None,
        false => retry.unseen_redirects(&head),
    };
    let replay = Replay::new(body, retry.body_limit_bytes());
    let abandon = || replay.abandon();
    let result = http_retry::run(&retry, started, address, &abandon, |attempt| {
        let mut request = Request::from_parts(parts.clone(), replay.next_body()?);
        if !is_known_client::<S>() {
            request.extensions_mut().insert(AttemptMark::from(attempt));
        }
        let calling = services.call(request);
        let (retry, replay) = (&retry, &replay);
        Some(async move {
            let result = match calling.await {
                Ok(response) => retry.check(Ok(response), redirects),
                Err(CallError::Failed(error)) => retry.check(Err(AnyError::new(error)), redirects),
                Err(CallError::NotReady(error)) => {
                    Err(FailedAttempt::new(AnyError::new(error), not_ready()))
                }
            };
            result.map_err(|failed| {
                replay.pause();
                failed.map(|failure| match replay.lost() {
                    Some(lost) => cannot_resend(failure, lost),
                    None => failure,
                })
            })
        })
    })
    .await;
    // On HTTP/1.1, an upload that is not needed stays paused until its connection closes.
    // On HTTP/2 that would keep a stream open. There the server controls the upload.
    if result
        .as_ref()
        .is_ok_and(|response| response.version() == Version::HTTP_2)
    {
        replay.resume();
    }
    result
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
