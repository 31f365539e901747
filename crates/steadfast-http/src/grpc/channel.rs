//! Retries for all calls of a tonic client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use pin_project_lite::pin_project;
use steadfast::Error;
use steadfast::strategy::BoxError;
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use crate::HttpRetry;
use crate::tower::{AnyError, HttpRetryFuture, HttpRetryService, ReplayBody};

/// A channel whose calls are retried.
///
/// ```
/// use steadfast_http::grpc::retry_channel;
/// use steadfast_http::{HttpClassifier, HttpRetry};
/// use tonic::transport::Endpoint;
/// use tonic_health::pb::health_client::HealthClient;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// # let _guard = runtime.enter();
/// let retry = HttpRetry::guidance()
///     .classify(HttpClassifier::grpc())
///     .also_idempotent(|request| request.path == "/grpc.health.v1.Health/Check");
/// let channel = Endpoint::from_static("http://127.0.0.1:50051").connect_lazy();
/// let client = HealthClient::new(retry_channel(channel, retry));
/// # let _ = client;
/// ```
///
/// If a call gets no response, its error is the [`Status`] that tonic makes of the channel's
/// error. The source of the status is a `steadfast::Error<Status>` with the history.
#[derive(Clone, Debug)]
pub struct RetryChannel<S> {
    retried: HttpRetryService<TonicBodies<S>>,
}

/// Makes a channel whose calls are retried. See [`RetryChannel`].
pub fn retry_channel<S: Clone>(channel: S, retry: HttpRetry) -> RetryChannel<S> {
    let retried = HttpRetryService::new(TonicBodies { channel }, retry);
    RetryChannel { retried }
}

impl<S, R> Service<Request<Body>> for RetryChannel<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = Status;
    type Future = RetryChannelFuture<S, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.retried.poll_ready(cx).map_err(to_status)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        RetryChannelFuture {
            retried: self.retried.call(request),
        }
    }
}

pin_project! {
    /// The future of a [`RetryChannel`].
    pub struct RetryChannelFuture<S, R>
    where
        S: Service<Request<Body>>,
    {
        #[pin]
        retried: HttpRetryFuture<TonicBodies<S>, Body, R>,
    }
}

impl<S, R> Future for RetryChannelFuture<S, R>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    R: Send + 'static,
{
    type Output = Result<Response<R>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().retried.poll(cx).map_err(to_status)
    }
}

impl<S: Service<Request<Body>>, R> fmt::Debug for RetryChannelFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryChannelFuture").finish_non_exhaustive()
    }
}

/// tonic finds the code of an error in its chain of sources, and that of an [`Error`] has no
/// error of the channel.
#[cold]
fn to_status(error: Error<AnyError>) -> Status {
    let text = error.to_string();
    let (report, last) = error.into_parts();
    let last = last.map(|last| Status::from_error(last.into_inner()));
    let code = last.as_ref().map_or(tonic::Code::Unknown, Status::code);
    let mut status = Status::new(code, text);
    status.set_source(Arc::new(Error::from_parts(report, last)));
    status
}

/// Adapts a channel: converts request bodies to tonic's body type.
#[derive(Clone, Debug)]
struct TonicBodies<S> {
    channel: S,
}

impl<S: Service<Request<Body>>> Service<Request<ReplayBody<Body>>> for TonicBodies<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.channel.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReplayBody<Body>>) -> S::Future {
        self.channel.call(request.map(Body::new))
    }
}
