//! Sends one request, attempt by attempt. All integrations share this code.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
#[cfg(feature = "tower")]
use std::time::Duration;

use http::{Extensions, HeaderMap, Method, StatusCode};
use steadfast::classify::{ByInfo, guarded};
use steadfast::failure::{Safety, Stage};
use steadfast::strategy::Refusal;
#[cfg(feature = "tower")]
use steadfast::world::Timer;
use steadfast::{
    Attempt, Call, Driver, Error, FailFast, Failure, Retry, RetryStrategy, Step, World, reason,
};

use super::{BoxSleep, HttpRetry, HttpSettings, LostBody, Strategies};
use crate::classify::{HttpOutcome, Redirects, cannot_resend};
use crate::clock;
use crate::extensions::{AttemptCount, ResponseReport};
use crate::idempotent::{IDEMPOTENCY_KEY, RequestHead, generate_key, is_idempotent};

/// A response of some HTTP library.
pub(crate) trait AnyResponse {
    fn status(&self) -> StatusCode;
    fn headers(&self) -> &HeaderMap;
    fn extensions(&self) -> &Extensions;
    fn extensions_mut(&mut self) -> &mut Extensions;
}

/// What an integration knows about the request that it sends.
pub(crate) trait SentRequest<R, E> {
    /// Returns host and port.
    fn address(&self) -> String;

    /// Returns what is known about redirects in the attempt that ended; `unseen` if the client
    /// does not report them.
    fn redirects(&self, result: &Result<R, E>, unseen: Redirects) -> Redirects;

    /// Returns why another attempt cannot have the whole body, if so.
    fn lost(&self) -> Option<LostBody>;

    /// Notes that an attempt got a result that is not a success.
    fn failed(&self) {}

    /// Notes that another attempt follows, so that the one before is of no use.
    fn retried(&self) {}
}

/// One request: its driver, its timer, and the last result of an attempt that failed.
pub(crate) struct HttpDriver<R, E> {
    driver: Driver<Arc<dyn RetryStrategy>, Call, Arc<HttpSettings>>,
    timer: Option<BoxSleep>,
    /// In a box, because it is rare.
    last: Option<Box<Result<R, E>>>,
    /// The panic of the rule of `also_idempotent`, which forbids retries.
    panicked: Option<Refusal>,
}

impl HttpRetry {
    /// Prepares a request that has not begun. If it is `marked`, an outer layer makes the
    /// retries.
    pub(crate) fn driver<R, E>(
        &self,
        head: &RequestHead<'_>,
        marked: bool,
        address: impl FnOnce() -> String,
    ) -> HttpDriver<R, E> {
        let inner = &self.inner;
        let strategy: Arc<dyn RetryStrategy> = match &inner.strategies {
            _ if marked => Arc::new(FailFast::new()),
            Strategies::Shared(strategy) => Arc::clone(strategy),
            Strategies::PerHost(strategies) => strategies.for_host(address()),
        };
        let idempotent = guarded(|| self.is_idempotent(head));
        let mut call = Call::new(operation_name(head.method))
            .service("http")
            .idempotent(*idempotent.as_ref().unwrap_or(&false))
            .when_too_late(inner.when_too_late);
        if let Some(timeout) = inner.timeout {
            call = call.timeout(timeout);
        }
        if let Some(timeout) = inner.attempt_timeout {
            call = call.attempt_timeout(timeout);
        }
        HttpDriver {
            driver: Driver::new(strategy, call, Arc::clone(inner)),
            timer: None,
            last: None,
            panicked: idempotent.err(),
        }
    }

    /// Adds a generated `Idempotency-Key` to a request that is not idempotent, if the
    /// settings say so. All attempts then have the same key.
    pub(crate) fn add_key(&self, method: &Method, headers: &mut HeaderMap) {
        if self.inner.generate_keys && !is_idempotent(method, headers) {
            headers.insert(&IDEMPOTENCY_KEY, generate_key());
        }
    }

    fn is_idempotent(&self, head: &RequestHead<'_>) -> bool {
        let also = self.inner.idempotent.as_ref();
        is_idempotent(head.method, head.headers) || also.is_some_and(|also| also(head))
    }

    /// Makes the error of a request that could not be built.
    #[cfg(feature = "reqwest-any")]
    pub(crate) fn not_built<E>(&self, error: E) -> Error<E> {
        let failure = Failure::not_sent(&reason::OPERATION_FAILED)
            .with_safety(Safety::No)
            .with_note("the request could not be built");
        let retry = steadfast::retry(FailFast::new()).world(&*self.inner);
        fail_at_once(retry.service("http").operation("build"), failure, error)
    }
}

/// Fails a request that cannot be attempted. `retry` must not retry.
#[cold]
pub(crate) fn fail_at_once<E, W: World>(
    retry: Retry<'_, FailFast, ByInfo, W>,
    failure: Failure,
    error: E,
) -> Error<E> {
    let mut error = Some(error);
    let Err(failed) = retry
        .classify(move |_: &Option<E>| failure.clone())
        .run_blocking(|_| Err::<Infallible, _>(error.take()));
    let (report, last) = failed.into_parts();
    Error::from_parts(report, last.flatten())
}

impl<R: AnyResponse, E> HttpDriver<R, E> {
    /// Begins the request.
    pub(crate) fn begin(&mut self) {
        self.driver.begin();
    }

    /// Returns the attempt to make now.
    pub(crate) fn attempt(&mut self) -> Attempt {
        self.driver.attempt()
    }

    /// Awaits the attempt under way, until its time is over.
    pub(crate) async fn run<F: Future>(&mut self, attempt: F) -> Option<F::Output> {
        let timer = Pin::new(&mut self.timer);
        self.driver.run(timer, attempt).await
    }

    /// Ends an attempt, which has no result if its time was over. Returns its response if that
    /// is a success.
    pub(crate) fn end(
        &mut self,
        result: Option<Result<R, E>>,
        sent: &impl SentRequest<R, E>,
    ) -> Option<R>
    where
        E: StdError + 'static,
    {
        let classifier = &self.driver.world().classifier;
        match result {
            // The clock is not read for most successes.
            Some(Ok(response)) if classifier.accepts(response.status(), response.headers()) => {
                Some(self.succeed(response))
            }
            Some(result) => match (self.classify(&result, sent), self.panicked.take()) {
                (Ok(Ok(())), _) => result.ok().map(|response| self.succeed(response)),
                (Ok(Err(failure)), None) => {
                    self.fail(Some(result), failure, sent);
                    None
                }
                (Err(panicked), _) | (Ok(Err(_)), Some(panicked)) => {
                    self.last = Some(Box::new(result));
                    sent.failed();
                    self.driver.fail_unread(panicked);
                    None
                }
            },
            None => {
                self.cut_off(sent);
                None
            }
        }
    }

    /// Ends an attempt whose failure is known. It has no result if it could not be made.
    #[cold]
    pub(crate) fn fail(
        &mut self,
        result: Option<Result<R, E>>,
        failure: Failure,
        sent: &impl SentRequest<R, E>,
    ) {
        self.last = result.map(Box::new);
        sent.failed();
        let failure = match sent.lost() {
            Some(lost) => lost.forbid_retries(failure),
            None => failure,
        };
        self.driver.fail(failure.with_peer(sent.address()));
        self.drop_failed(sent);
    }

    /// Ends an attempt that could not be made, because the body was lost after the retry was
    /// decided. Another attempt could not be made either.
    #[cold]
    pub(crate) fn fail_unmade(&mut self, sent: &impl SentRequest<R, E>) {
        let failure = Failure::not_sent(&reason::OPERATION_FAILED)
            .with_safety(Safety::No)
            .with_note("the body cannot be sent again");
        self.fail(None, failure, sent);
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, sent: &impl SentRequest<R, E>) -> Poll<bool> {
        let undecided = self.driver.step() == Step::Ask;
        let polled = self.driver.poll_next(Pin::new(&mut self.timer), cx);
        if undecided {
            self.drop_failed(sent);
        }
        polled
    }

    /// Awaits the next attempt. Returns whether there is one.
    pub(crate) async fn next(&mut self, sent: &impl SentRequest<R, E>) -> bool {
        poll_fn(|cx| self.poll_next(cx, sent)).await
    }

    /// Returns the last response of a request that ended, also if it is a failure: its report
    /// is then in its extensions. Returns an error if there is no response.
    #[cold]
    pub(crate) fn give_up(&mut self) -> Result<R, Error<E>> {
        let report = self.driver.take_report();
        match self.last.take().map(|last| *last) {
            Some(Ok(mut response)) => {
                let extensions = response.extensions_mut();
                insert_count(extensions, report.attempts());
                extensions.insert(ResponseReport(Arc::new(report)));
                Ok(response)
            }
            Some(Err(error)) => Err(Error::from_parts(report, Some(error))),
            None => Err(Error::from_parts(report, None)),
        }
    }

    /// Returns a wait in its world.
    #[cfg(feature = "tower")]
    pub(crate) fn sleep(&self, delay: Duration) -> BoxSleep {
        self.driver.world().sleep(delay)
    }

    fn succeed(&mut self, mut response: R) -> R {
        self.driver.succeed();
        insert_count(response.extensions_mut(), self.driver.request().attempts());
        response
    }

    #[cold]
    fn cut_off(&mut self, sent: &impl SentRequest<R, E>) {
        self.last = None;
        match sent.lost() {
            Some(lost) => {
                let failure = Failure::in_flight(&reason::TIMEOUT).timed_out();
                let failure = lost.forbid_retries(failure.with_note("no response in time"));
                self.driver.fail(failure.with_peer(sent.address()))
            }
            None => self.driver.cut_off(),
        };
        self.drop_failed(sent);
    }

    /// Drops a failed response as soon as a retry is granted. Otherwise every request that
    /// waits would hold a connection.
    fn drop_failed(&mut self, sent: &impl SentRequest<R, E>) {
        if let Step::Attempt | Step::Wait { capped: false, .. } = self.driver.step() {
            self.last = None;
            sent.retried();
        }
    }

    /// Classifies the result of an attempt. An error is a panic of the classifier, which may
    /// run code of the user's. Decision D13 (docs/decisions.md) says what it means.
    fn classify(
        &self,
        result: &Result<R, E>,
        sent: &impl SentRequest<R, E>,
    ) -> Result<Result<(), Failure>, Refusal>
    where
        E: StdError + 'static,
    {
        let inner = self.driver.world();
        let without_redirects = inner.without_redirects
            || inner.classifier.has_no_redirects()
            // It may be sent again after a redirect too.
            || self.driver.request().is_idempotent();
        let unseen = match without_redirects {
            true => Redirects::None,
            false => Redirects::Unknown,
        };
        let redirects = sent.redirects(result, unseen);
        guarded(|| {
            let outcome = match result {
                Ok(response) => {
                    HttpOutcome::response(response.status(), response.headers(), clock::now())
                }
                Err(error) => HttpOutcome::error(error, clock::now()),
            };
            let classified = inner
                .classifier
                .classify(&outcome.with_redirects(redirects));
            match (classified, result) {
                (Err(failure), Ok(response)) => {
                    Err(already_retried(failure, response.extensions()))
                }
                (Ok(()), Err(_)) => {
                    let note = "the classifier calls an error a success";
                    Err(Failure::in_flight(&reason::UNKNOWN).with_note(note))
                }
                (classified, _) => classified,
            }
        })
    }
}

/// Forbids to send a request again that an inner layer has sent again already.
fn already_retried(mut failure: Failure, response: &Extensions) -> Failure {
    match response.get() {
        Some(&AttemptCount(attempts)) if attempts > 1 => {}
        _ => return failure,
    }
    // An attempt before the last one may have been applied.
    let report = response.get::<ResponseReport>();
    if report.is_none_or(|report| report.request().may_have_been_applied())
        && !failure.stage.may_have_been_applied()
    {
        failure.stage = Stage::Inconclusive;
    }
    cannot_resend(failure, "an inner layer has sent it again")
}

fn insert_count(extensions: &mut Extensions, attempts: u32) {
    if attempts > 1 {
        extensions.insert(AttemptCount(attempts));
    }
}

/// Returns the name of an operation, for errors and events.
fn operation_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::CONNECT => "CONNECT",
        _ => "an extension method",
    }
}

#[cfg(test)]
mod tests;
