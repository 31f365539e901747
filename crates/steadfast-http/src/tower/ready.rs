//! Readiness of the services that attempts call.
//!
//! tower allows one call for each time that a service was polled ready, and a
//! clone is not ready. So the first attempt calls the service that was polled,
//! and each later attempt polls a clone first.

use std::future::poll_fn;

use steadfast::failure::Safety;
use steadfast::{Error, FailFast, Failure, reason, retry};
use tower_service::Service;

use crate::http_retry::fail_at_once;

/// Calls the service for each attempt of one request.
pub(super) struct AttemptServices<S> {
    service: S,
    is_ready: bool,
}

/// Says whether the service was called at all.
pub(super) enum CallError<E> {
    NotReady(E),
    Failed(E),
}

impl<S: Clone> AttemptServices<S> {
    /// Takes the ready service and leaves a clone in its place. A permit that
    /// readiness acquired is thereby used by this request.
    pub(super) fn take(inner: &mut S) -> Self {
        let clone = inner.clone();
        Self {
            service: std::mem::replace(inner, clone),
            is_ready: true,
        }
    }

    /// Uses a service that was not polled, for attempts after the first.
    pub(super) const fn after_first(service: S) -> Self {
        Self {
            service,
            is_ready: false,
        }
    }

    /// Calls the service, in a later attempt as soon as it is ready. Dropping the future
    /// drops the call.
    pub(super) fn call<R>(
        &mut self,
        request: R,
    ) -> impl Future<Output = Result<S::Response, CallError<S::Error>>> + Send + use<S, R>
    where
        S: Service<R> + Send + 'static,
        S::Future: Send,
        R: Send + 'static,
    {
        let is_ready = std::mem::take(&mut self.is_ready);
        let called = match is_ready {
            true => Ok(self.service.call(request)),
            // In a box, because it is rare and would make every future larger.
            false => Err(Box::pin(call_when_ready(self.service.clone(), request))),
        };
        async move {
            match called {
                Ok(called) => called.await.map_err(CallError::Failed),
                Err(later) => later.await,
            }
        }
    }
}

async fn call_when_ready<S: Service<R>, R>(
    mut service: S,
    request: R,
) -> Result<S::Response, CallError<S::Error>> {
    let readiness = poll_fn(|cx| service.poll_ready(cx)).await;
    readiness.map_err(CallError::NotReady)?;
    service.call(request).await.map_err(CallError::Failed)
}

impl<E> CallError<E> {
    pub(super) fn into_inner(self) -> E {
        match self {
            CallError::NotReady(error) | CallError::Failed(error) => error,
        }
    }
}

/// The failure of an attempt whose service did not get ready: nothing was sent.
pub(super) fn not_ready() -> Failure {
    Failure::not_sent(&reason::NOT_AVAILABLE).with_note("the service is not ready")
}

/// Makes the error of a service that fails to get ready before there is a
/// request.
#[cold]
pub(super) fn never_ready<E>(error: E) -> Error<E> {
    let retry = retry(FailFast::new()).operation("poll_ready");
    fail_at_once(retry, not_ready().with_safety(Safety::No), error)
}
