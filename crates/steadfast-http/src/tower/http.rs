//! Retries for services that take `http` requests.

use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::http::{Extensions, HeaderMap, Request, Response, StatusCode, Uri, request::Parts};
use http_body::Body;
use steadfast::FailFast;
use steadfast::failure::Safety;
use steadfast::{Attempt, Error, Failure, RetryStrategy, reason};
use tower_layer::Layer;
use tower_service::Service;

use super::generic::{never_ready, not_ready};
use super::replay::{Lost, Replay, ReplayBody};
use crate::attempt::{self, Answer, AttemptMark, Unsuccessful, failure, operation, settle};
use crate::http_retry::HttpRetry;
use crate::idempotent::RequestHead;

/// Wraps services in [`HttpRetryService`].
#[derive(Clone, Debug)]
pub struct HttpRetryLayer {
    policy: HttpRetry,
}

impl HttpRetryLayer {
    /// Retries as the policy says. Services made by one layer share its budget.
    pub const fn new(policy: HttpRetry) -> Self {
        Self { policy }
    }
}

impl<S> Layer<S> for HttpRetryLayer {
    type Service = HttpRetryService<S>;

    fn layer(&self, inner: S) -> HttpRetryService<S> {
        let policy = self.policy.clone();
        HttpRetryService { inner, policy }
    }
}

/// A service that sends requests again where that is safe and of use. See the
/// [module](super).
///
/// The inner service gets bodies of type [`ReplayBody`]. It is asked for
/// readiness before every attempt. Dropping a call's future drops the attempt
/// that is under way; what was paid for it stays paid.
#[derive(Clone, Debug)]
pub struct HttpRetryService<S> {
    inner: S,
    policy: HttpRetry,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, B, R> Service<Request<B>> for HttpRetryService<S>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: StdError + Send + 'static,
    S::Future: Send,
    B: Body + Send + Unpin + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = Error<S::Error>;
    type Future = BoxFuture<Result<Response<R>, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(ready!(self.inner.poll_ready(cx)).map_err(never_ready))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // What was asked for readiness is used, and its clone is asked next
        // time: a permit that readiness took is not left behind.
        let later = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, later);
        Box::pin(run(service, self.policy.clone(), request))
    }
}

async fn run<S, B, R>(
    service: S,
    policy: HttpRetry,
    request: Request<B>,
) -> Result<Response<R>, Error<S::Error>>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: StdError + 'static,
    B: Body + Unpin,
{
    let (parts, body) = request.into_parts();
    // A layer around this one is in charge (see `AttemptMark`).
    let strategy: Arc<dyn RetryStrategy> = match parts.extensions.get::<AttemptMark>() {
        Some(_) => Arc::new(FailFast::new()),
        None => policy.strategy_for(|| address(&parts.uri)),
    };
    let head = RequestHead::new(&parts.method, parts.uri.path(), &parts.headers);
    let idempotent = policy.is_idempotent(&head);
    let replay = Replay::new(body, policy.body_limit_bytes());
    // The service that is ready makes the first attempt, not a clone, which is
    // not.
    let mut later = service.clone();
    let mut ready = Some(service);
    let result = policy
        .retry(&*strategy)
        .operation(operation(&parts.method))
        .idempotent(idempotent)
        .classify(failure)
        .run(|attempt| {
            let request = replay.next().map(|body| again(&parts, body, attempt));
            // Borrowed to be changed, so that it need not be `Sync`.
            let later = &mut later;
            let (is_ready, service) = match ready.take() {
                Some(service) => (true, service),
                None => (false, later.clone()),
            };
            let (policy, replay, uri) = (&policy, &replay, &parts.uri);
            async move {
                let end = match request {
                    None => Err(Unsuccessful {
                        end: None,
                        failure: Some(Failure::not_sent(&reason::OPERATION_FAILED)),
                    }),
                    Some(request) => send(service, is_ready, request, policy).await,
                };
                match end {
                    Ok(response) => Ok((response, attempt.number())),
                    Err(attempt) => Err(attempt.map_failure(|failure| {
                        let failure = failure.with_peer(address(uri));
                        match replay.lost() {
                            Some(lost) => unreplayable(failure, lost, policy.body_limit_bytes()),
                            None => failure,
                        }
                    })),
                }
            }
        })
        .await;
    settle(result)
}

/// One attempt.
async fn send<S, B, R>(
    mut service: S,
    is_ready: bool,
    request: Request<ReplayBody<B>>,
    policy: &HttpRetry,
) -> Result<Response<R>, Unsuccessful<Response<R>, S::Error>>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    S::Error: StdError + 'static,
{
    if !is_ready && let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await {
        return Err(Unsuccessful {
            end: Some(Err(error)),
            failure: Some(not_ready()),
        });
    }
    Unsuccessful::read(policy.classifier(), service.call(request).await)
}

/// The request as it is sent in this attempt.
fn again<B>(parts: &Parts, body: B, attempt: Attempt) -> Request<B> {
    let mut request = Request::from_parts(parts.clone(), body);
    request.extensions_mut().insert(AttemptMark::from(attempt));
    request
}

fn address(uri: &Uri) -> String {
    attempt::address(uri.host(), uri.port_u16(), uri.scheme_str())
}

fn unreplayable(failure: Failure, lost: Lost, limit: usize) -> Failure {
    let before = failure.note().unwrap_or("failed");
    let note = match lost {
        Lost::TooLarge => format!(
            "{before}; more than {limit} bytes of the body were sent, so it cannot be sent again"
        ),
        Lost::Failed => format!("{before}; the body failed, so it cannot be sent again"),
    };
    failure.with_safety(Safety::No).with_note(note)
}

impl<B> Answer for Response<B> {
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
