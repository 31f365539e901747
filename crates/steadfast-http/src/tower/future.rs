//! The future of a request under the layer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast::Error;
use steadfast::strategy::BoxError;
use tower_service::Service;

use super::any_error::AnyError;
use super::http::Attempts;
use super::ready::{AttemptCall, CallError, not_ready};
use super::replay::ReplayBody;
use crate::http_retry::HttpDriver;

pin_project! {
    /// The future of an [`HttpRetryService`](super::HttpRetryService).
    ///
    /// Dropping it drops the attempt that is under way; its cost stays paid.
    #[must_use = "futures do nothing unless polled"]
    pub struct HttpRetryFuture<S, B, R>
    where
        S: Service<Request<ReplayBody<B>>>,
    {
        // The attempt that is under way, or the first one before it begins.
        #[pin]
        call: Option<AttemptCall<S, Request<ReplayBody<B>>, S::Future>>,
        under_way: bool,
        driver: HttpDriver<Response<R>, AnyError>,
        attempts: Attempts<S, B>,
    }
}

impl<S, B, R> HttpRetryFuture<S, B, R>
where
    S: Service<Request<ReplayBody<B>>>,
{
    /// Waits for the first attempt, which is `under_way` unless the driver has to wait.
    pub(super) const fn new(
        call: AttemptCall<S, Request<ReplayBody<B>>, S::Future>,
        under_way: bool,
        driver: HttpDriver<Response<R>, AnyError>,
        attempts: Attempts<S, B>,
    ) -> Self {
        Self {
            call: Some(call),
            under_way,
            driver,
            attempts,
        }
    }
}

impl<S, B, R> Future for HttpRetryFuture<S, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body + Send + Unpin + 'static,
    R: Send + 'static,
{
    type Output = Result<Response<R>, Error<AnyError>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (mut call, driver, attempts) = (this.call, this.driver, &*this.attempts);
        loop {
            if !*this.under_way {
                if !ready!(driver.poll_next(cx, attempts)) {
                    return Poll::Ready(attempts.give_up(driver));
                }
                let attempt = driver.attempt();
                if call.is_none() {
                    call.set(attempts.call_again(attempt));
                }
                if call.is_none() {
                    driver.fail_unmade(attempts);
                    continue;
                }
                *this.under_way = true;
            }
            let called = call.as_mut().as_pin_mut();
            let called = called.expect("a future is not polled after its end");
            let result = ready!(driver.poll_attempt(cx, |cx| called.poll(cx)));
            call.set(None);
            let result = match result {
                Some(Ok(response)) => Some(Ok(response)),
                Some(Err(CallError::Failed(error))) => Some(Err(AnyError::new(error))),
                Some(Err(CallError::NotReady(error))) => {
                    driver.fail(Some(Err(AnyError::new(error))), not_ready(), attempts);
                    *this.under_way = false;
                    continue;
                }
                None => None,
            };
            if let Some(response) = driver.end(result, attempts) {
                return Poll::Ready(Ok(response));
            }
            *this.under_way = false;
        }
    }
}

impl<S, B, R> fmt::Debug for HttpRetryFuture<S, B, R>
where
    S: Service<Request<ReplayBody<B>>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRetryFuture").finish_non_exhaustive()
    }
}
