//! The future of a request under the layer.
//!
//! A first attempt is polled here, in a future that has a name. So a request that succeeds at
//! once needs no box. Whatever follows a failure is rare, and is in a box.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast::Error;
use steadfast::first_try::FirstTry;
use steadfast::strategy::BoxError;
use tower_service::Service;

use super::any_error::AnyError;
use super::http::Attempts;
use super::replay::ReplayBody;
use crate::http_retry::FirstAttempt;

pin_project! {
    /// The future of an [`HttpRetryService`](super::HttpRetryService).
    ///
    /// Dropping it drops the attempt that is under way; its cost stays paid.
    #[must_use = "futures do nothing unless polled"]
    pub struct HttpRetryFuture<S, B, R>
    where
        S: Service<Request<ReplayBody<B>>>,
    {
        // The first attempt, until it ends.
        #[pin]
        calling: Option<S::Future>,
        rest: Rest<S, B, R>,
    }
}

#[expect(
    clippy::large_enum_variant,
    reason = "a box for the first attempt would be an allocation for every request"
)]
enum Rest<S, B, R> {
    First {
        first: FirstAttempt,
        attempts: Attempts<S, B>,
    },
    Retries(BoxFuture<R>),
    Ended,
}

type BoxFuture<R> = Pin<Box<dyn Future<Output = Result<Response<R>, Error<AnyError>>> + Send>>;

impl<S, B, R> HttpRetryFuture<S, B, R>
where
    S: Service<Request<ReplayBody<B>>>,
{
    /// Waits for a first attempt that is under way.
    pub(super) fn first(calling: S::Future, first: FirstTry, attempts: Attempts<S, B>) -> Self {
        Self {
            calling: Some(calling),
            rest: Rest::First {
                first: FirstAttempt::new(first),
                attempts,
            },
        }
    }

    /// Makes all attempts by this future.
    pub(super) fn retries(
        run: impl Future<Output = Result<Response<R>, Error<AnyError>>> + Send + 'static,
    ) -> Self {
        Self {
            calling: None,
            rest: Rest::Retries(Box::pin(run)),
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
        let (mut calling, rest) = (this.calling, this.rest);
        if let (Some(polled), Rest::First { first, attempts }) =
            (calling.as_mut().as_pin_mut(), &mut *rest)
        {
            let retry = attempts.retry();
            let result = ready!(first.poll(retry, cx, |cx| polled.poll(cx)));
            match result {
                Some(_) => calling.set(None),
                // Calls inside it are dropped with it.
                None => first.first.watch(|| calling.set(None)),
            }
            let failed = match result {
                Some(Ok(response)) if attempts.end_if_accepted(&first.first, &response) => {
                    return Poll::Ready(Ok(response));
                }
                Some(result) => match attempts.end_first(&first.first, result) {
                    Ok(response) => return Poll::Ready(Ok(response)),
                    Err(failed) => Some(failed),
                },
                None => attempts.cut_off(),
            };
            if let Rest::First { first, attempts } = mem::replace(rest, Rest::Ended) {
                let retries = attempts.run_after(first.end(failed));
                *rest = Rest::Retries(Box::pin(retries));
            }
        }
        match rest {
            Rest::Retries(retries) => retries.as_mut().poll(cx),
            Rest::First { .. } | Rest::Ended => panic!("a future is not polled after its end"),
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
