//! Calls of a service that has to get ready first.
//!
//! tower allows one call for each time that a service was polled ready. The first attempt
//! calls the service that its caller polled, and each later attempt polls it first.

use std::future::poll_fn;

use steadfast::failure::Safety;
use steadfast::{Error, FailFast, Failure, reason, retry};
use tower_service::Service;

use crate::http_retry::fail_at_once;

/// Says whether the service was called at all.
pub(super) enum CallError<E> {
    NotReady(E),
    Failed(E),
}

impl<E> CallError<E> {
    pub(super) fn into_inner(self) -> E {
        match self {
            CallError::NotReady(error) | CallError::Failed(error) => error,
        }
    }
}

/// Calls a service, as soon as it is ready. Dropping the future drops the call.
pub(super) async fn call<S: Service<Q>, Q>(
    service: &mut S,
    is_ready: bool,
    request: Q,
) -> Result<S::Response, CallError<S::Error>> {
    if !is_ready {
        let ready = poll_fn(|cx| service.poll_ready(cx)).await;
        ready.map_err(CallError::NotReady)?;
    }
    service.call(request).await.map_err(CallError::Failed)
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
