//! Sends one reqwest request with retries.

use std::cell::Cell;
use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::pin;

use super::library::{self, Request, RequestBuilder, Response, Url};
use http::{Extensions, HeaderMap, StatusCode};
use steadfast::failure::Safety;
use steadfast::first_try::FirstTry;
use steadfast::{Error, FailFast, Failure, reason};
use tokio::task::futures::TaskLocalFuture;

use super::kept::KeptRequest;
use super::redirect::{Hops, redirects, watched};
use crate::classify::{Redirects, cannot_resend};
use crate::extensions::AttemptMark;
use crate::http_retry::{
    self, AnyResponse, FailedAttempt, FirstAttempt, HttpCall, HttpRetry, MadeAttempt, fail_at_once,
};
use crate::idempotent::RequestHead;

/// Adds `send` with retries to requests. See the [module](super).
pub trait SendWithRetry: sealed::Sealed {
    /// Sends the request, and sends it again where that is safe and useful.
    ///
    /// Dropping the future drops the attempt that is under way; its cost stays
    /// paid.
    fn send_with_retry(
        self,
        retry: &HttpRetry,
    ) -> impl Future<Output = Result<Response, Error<library::Error>>> + Send;
}

impl SendWithRetry for RequestBuilder {
    async fn send_with_retry(self, retry: &HttpRetry) -> Result<Response, Error<library::Error>> {
        let (client, request) = self.build_split();
        let (sender, started) = match request {
            Ok(request) => Sender::start(retry, None, request, |request| client.execute(request)),
            Err(error) => return Err(not_built(retry, error)),
        };
        let begun = match sender.end_first(started).await {
            Ok(response) => return Ok(response),
            Err(begun) => begun,
        };
        // In a box, because it is rare and would make every future larger.
        Box::pin(sender.run(begun, |request, _| client.execute(request))).await
    }
}

#[cold]
fn not_built(retry: &HttpRetry, error: library::Error) -> Error<library::Error> {
    let failure = Failure::not_sent(&reason::OPERATION_FAILED)
        .with_safety(Safety::No)
        .with_note("the request could not be built");
    let retry = retry.retry(FailFast::new()).operation("build");
    fail_at_once(retry, failure, error)
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::RequestBuilder {}
}

/// Sends one request.
pub(super) struct Sender<'a> {
    retry: &'a HttpRetry,
    kept: KeptRequest,
    call: HttpCall,
    unseen: Redirects,
}

/// A request at its beginning.
pub(super) enum Started<F> {
    /// The first attempt is under way, and needs nothing of the engine unless it fails.
    First(FirstTry, F),
    /// The engine has to make the first attempt.
    Not(Box<Request>),
}

/// How far a request is when the engine takes over.
pub(super) enum Begun<E> {
    Not(Box<Request>),
    /// The first attempt was made.
    Made(MadeAttempt<Response, E>),
}

impl<'a> Sender<'a> {
    /// Starts a request: makes its first attempt by `send`, if that needs no engine. `outer` is
    /// the mark of an outer middleware, which then makes the retries.
    pub(super) fn start<F>(
        retry: &'a HttpRetry,
        outer: Option<&AttemptMark>,
        mut request: Request,
        send: impl FnOnce(Request) -> F,
    ) -> (Self, Started<F>) {
        let method = request.method().clone();
        retry.add_key(&method, request.headers_mut());
        let head = RequestHead::new(&method, request.url().path(), request.headers());
        let call = retry.start(&head, outer, || address(request.url()));
        let sender = Self {
            unseen: retry.unseen_redirects(&call),
            kept: KeptRequest::of(&mut request),
            retry,
            call,
        };
        let started = match retry.first_try(&sender.call) {
            Some(mut first) => {
                let sending = first.watch(|| send(request));
                Started::First(first, sending)
            }
            None => Started::Not(Box::new(request)),
        };
        (sender, started)
    }

    /// Ends an attempt whose time was over. Returns its failure if the body is lost;
    /// otherwise the engine makes one.
    fn cut_off<E>(&self) -> Option<FailedAttempt<Response, E>> {
        let lost = self.kept.is_lost();
        lost.then(|| FailedAttempt::cut_off("the body is a stream"))
    }

    /// Waits for a first attempt that is under way, until its time is over. Unless it
    /// succeeds, [`run`](Self::run) has to follow. Dropping the future drops the attempt.
    pub(super) async fn end_first<E: StdError + 'static>(
        &self,
        started: Started<impl Future<Output = Result<Response, E>>>,
    ) -> Result<Response, Begun<E>> {
        let (mut first, sending) = match started {
            Started::First(first, sending) => (FirstAttempt::new(first), watched(sending)),
            Started::Not(request) => return Err(Begun::Not(request)),
        };
        let mut sending = pin!(Some(sending));
        let result = poll_fn(|cx| {
            let sending = sending.as_mut().as_pin_mut();
            let sending = sending.expect("it is dropped after its last poll");
            first.poll(self.retry, cx, |cx| sending.poll(cx))
        });
        let result = result.await;
        let result = match result {
            Some(Ok(response))
                if (self.retry).end_if_accepted(&self.call, &first.first, &response) =>
            {
                return Ok(response);
            }
            Some(result) => result,
            None => {
                // Calls inside it are dropped with it.
                first.first.watch(|| sending.set(None));
                return Err(Begun::Made(first.end(self.cut_off())));
            }
        };
        let hops = sending.as_pin_mut().and_then(TaskLocalFuture::take_value);
        match self.check(result, hops) {
            Ok(response) => {
                self.retry.succeed(&self.call, &first.first);
                Ok(response)
            }
            Err(failed) => Err(Begun::Made(first.end(Some(failed)))),
        }
    }

    /// Sends the request by `send`, attempt by attempt. Dropping the future drops the
    /// attempt that is under way.
    pub(super) async fn run<E, F>(
        &self,
        begun: Begun<E>,
        mut send: impl FnMut(Request, AttemptMark) -> F,
    ) -> Result<Response, Error<E>>
    where
        E: StdError + Send + 'static,
        F: Future<Output = Result<Response, E>>,
    {
        let (mut unsent, made) = match begun {
            Begun::Not(request) => (Some(request), None),
            Begun::Made(made) => (None, Some(made)),
        };
        let address = || address(&self.kept.url);
        let attempt = |mark| {
            let request = match unsent.take() {
                Some(request) => *request,
                None => self.kept.request()?,
            };
            let sending = watched(send(request, mark));
            Some(async move {
                let mut sending = pin!(sending);
                let result = sending.as_mut().await;
                self.check(result, sending.take_value())
            })
        };
        let cut_off = || self.cut_off();
        http_retry::run(
            self.retry,
            &self.call,
            made,
            cut_off,
            address,
            &|| (),
            attempt,
        )
        .await
    }

    /// Classifies the result of an attempt.
    fn check<E: StdError + 'static>(
        &self,
        result: Result<Response, E>,
        hops: Option<Cell<Hops>>,
    ) -> Result<Response, FailedAttempt<Response, E>> {
        let hops = hops.map(Cell::into_inner).unwrap_or_default();
        let sent = (&self.kept.method, &self.kept.url);
        let redirects = |result: &Result<Response, E>| redirects(sent, self.unseen, result, hops);
        self.retry.check(result, redirects).map_err(|failed| {
            failed.map(|failure| match self.kept.is_lost() {
                true => cannot_resend(failure, "the body is a stream"),
                false => failure,
            })
        })
    }
}

fn address(url: &Url) -> String {
    http_retry::address(url.host_str(), url.port(), Some(url.scheme()))
}

impl AnyResponse for Response {
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
