//! Calls of a service that has to get ready first.
//!
//! tower allows one call for each time that a service was polled ready, and a
//! clone is not ready. So the first attempt calls the service that was polled,
//! and each later attempt polls a clone first.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use steadfast::failure::Safety;
use steadfast::{Error, FailFast, Failure, reason, retry};
use tower_service::Service;

use crate::http_retry::fail_at_once;

pin_project! {
    /// The call of one attempt. Dropping it drops the call.
    #[project = AttemptCallProjection]
    pub(super) enum AttemptCall<S, Q, F> {
        // In a box, because it is rare and would make every future larger.
        NotReady { service: Box<(S, Option<Q>)> },
        Called { #[pin] future: F },
    }
}

/// Says whether the service was called at all.
pub(super) enum CallError<E> {
    NotReady(E),
    Failed(E),
}

impl<S: Service<Q>, Q> AttemptCall<S, Q, S::Future> {
    /// Calls the service as soon as it is ready.
    pub(super) fn when_ready(service: S, request: Q) -> Self {
        let service = Box::new((service, Some(request)));
        Self::NotReady { service }
    }
}

impl<S: Service<Q>, Q> Future for AttemptCall<S, Q, S::Future> {
    type Output = Result<S::Response, CallError<S::Error>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let future = match self.as_mut().project() {
                AttemptCallProjection::Called { future } => {
                    return future.poll(cx).map_err(CallError::Failed);
                }
                AttemptCallProjection::NotReady { service } => {
                    let (service, request) = &mut **service;
                    ready!(service.poll_ready(cx)).map_err(CallError::NotReady)?;
                    let request = request.take().expect("a service that failed is not polled");
                    service.call(request)
                }
            };
            self.set(Self::Called { future });
        }
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
