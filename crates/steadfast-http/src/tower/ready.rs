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

/// Makes the service of each attempt of one request.
pub(super) struct AttemptServices<S> {
    ready: Option<S>,
    prototype: S,
}

/// The service of one attempt.
pub(super) struct AttemptService<S> {
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
        let ready = std::mem::replace(inner, clone);
        Self {
            prototype: ready.clone(),
            ready: Some(ready),
        }
    }

    /// Returns the service of the next attempt.
    pub(super) fn next(&mut self) -> AttemptService<S> {
        let ready = self.ready.take();
        AttemptService {
            is_ready: ready.is_some(),
            service: ready.unwrap_or_else(|| self.prototype.clone()),
        }
    }
}

impl<S> AttemptService<S> {
    /// Calls the service as soon as it is ready. Dropping the future drops the
    /// call.
    pub(super) async fn call<R>(mut self, request: R) -> Result<S::Response, CallError<S::Error>>
    where
        S: Service<R>,
    {
        if !self.is_ready {
            let readiness = poll_fn(|cx| self.service.poll_ready(cx)).await;
            readiness.map_err(CallError::NotReady)?;
        }
        let called = self.service.call(request).await;
        called.map_err(CallError::Failed)
    }
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
