//! Retries for all calls of a tonic client.

use std::task::{Context, Poll};

use http::Request;
use tonic::body::Body;
use tower_service::Service;

use crate::HttpRetry;
use crate::tower::{HttpRetryService, ReplayBody};

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
/// If a call gets no response, its [`Status`](tonic::Status) has the code that tonic gives to
/// the channel's error. The source of the status is the
/// `steadfast::Error<`[`AnyError`](crate::tower::AnyError)`>` with the history.
pub type RetryChannel<S> = HttpRetryService<TonicBodies<S>>;

/// Makes a channel whose calls are retried. See [`RetryChannel`].
pub fn retry_channel<S: Clone>(channel: S, retry: HttpRetry) -> RetryChannel<S> {
    HttpRetryService::new(TonicBodies { channel }, retry)
}

/// Adapts a channel: converts request bodies to tonic's body type.
#[derive(Clone, Debug)]
pub struct TonicBodies<S> {
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
