//! Sends one request, attempt by attempt. All integrations share this code.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error as StdError;
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::{Extensions, HeaderMap, Method, StatusCode};
use steadfast::classify::{ByInfo, Classifier, guarded};
use steadfast::failure::Safety;
use steadfast::first_try::FirstTry;
use steadfast::report::Outcome;
use steadfast::strategy::Refusal;
use steadfast::world::SharedWorld;
use steadfast::{Error, FailFast, Failure, Retry, RetryEvent, RetryStrategy, World, reason};

use super::first::MadeAttempt;
use super::{HttpRetry, Inner, Strategies};
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
use crate::classify::cannot_resend;
use crate::classify::{HttpOutcome, Redirects};
use crate::clock;
use crate::extensions::{AttemptCount, AttemptMark, ResponseReport};
use crate::idempotent::{IDEMPOTENCY_KEY, RequestHead, generate_key, is_idempotent};

/// A request as the engine has to know it.
pub(crate) struct HttpCall {
    /// None for the strategy of the settings.
    strategy: Option<Arc<dyn RetryStrategy>>,
    operation: &'static str,
    idempotent: bool,
}

/// A response of some HTTP library.
pub(crate) trait AnyResponse {
    fn status(&self) -> StatusCode;
    fn headers(&self) -> &HeaderMap;
    fn extensions_mut(&mut self) -> &mut Extensions;
}

/// An attempt that did not succeed. In a box, because it is rare and would make the result
/// of every attempt larger.
pub(crate) struct FailedAttempt<R, E>(Box<FailedParts<R, E>>);

struct FailedParts<R, E> {
    /// The response or the error; none if the attempt could not be made.
    result: Option<Result<R, E>>,
    /// The failure, or a refusal if the classifier panicked. The engine takes it.
    failure: Cell<Option<Result<Failure, Refusal>>>,
}

impl HttpRetry {
    /// Starts a request. `outer` is the mark of an outer layer, which then makes
    /// the retries.
    pub(crate) fn start(
        &self,
        head: &RequestHead<'_>,
        outer: Option<&AttemptMark>,
        address: impl FnOnce() -> String,
    ) -> HttpCall {
        let strategy: Option<Arc<dyn RetryStrategy>> = match (outer, &self.inner.strategies) {
            (Some(_), _) => Some(Arc::new(FailFast::new())),
            (None, Strategies::Shared(_)) => None,
            (None, Strategies::PerHost(strategies)) => Some(strategies.for_host(address())),
        };
        HttpCall {
            strategy,
            operation: operation_name(head.method),
            idempotent: self.is_idempotent(head),
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

    /// Returns what to assume about redirects if the client does not report them. An
    /// idempotent request may be sent again after a redirect too.
    pub(crate) fn unseen_redirects(&self, call: &HttpCall) -> Redirects {
        let Inner {
            without_redirects,
            classifier,
            ..
        } = &*self.inner;
        match *without_redirects || classifier.has_no_redirects() || call.idempotent {
            true => Redirects::None,
            false => Redirects::Unknown,
        }
    }

    /// Ends a first attempt that is a success at first sight. Returns whether it is.
    pub(crate) fn end_if_accepted<R: AnyResponse>(
        &self,
        call: &HttpCall,
        first: &FirstTry,
        response: &R,
    ) -> bool {
        let accepted = self.accepts(response);
        if accepted {
            self.succeed(call, first);
        }
        accepted
    }

    /// Records that a first attempt succeeded.
    pub(crate) fn succeed(&self, call: &HttpCall, first: &FirstTry) {
        first.succeed(self.strategy(call));
    }

    pub(super) fn strategy<'a>(&'a self, call: &'a HttpCall) -> &'a dyn RetryStrategy {
        match &call.strategy {
            Some(strategy) => &**strategy,
            None => self.inner.strategies.common(),
        }
    }

    /// Applies the world, the time limits and the observer.
    pub(crate) fn retry<S: RetryStrategy>(
        &self,
        strategy: S,
    ) -> Retry<'_, S, ByInfo, &SharedWorld> {
        let mut retry = steadfast::retry(strategy)
            .world(&self.inner.world)
            .service("http")
            .when_too_late(self.inner.when_too_late);
        if let Some(timeout) = self.inner.timeout {
            retry = retry.timeout(timeout);
        }
        if let Some(timeout) = self.inner.attempt_timeout {
            retry = retry.attempt_timeout(timeout);
        }
        if let Some(observer) = &self.inner.observer {
            retry = retry.observe(&**observer);
        }
        retry
    }

    /// Returns whether a response is a success that needs no further look.
    fn accepts<R: AnyResponse>(&self, response: &R) -> bool {
        let classifier = &self.inner.classifier;
        classifier.accepts(response.status(), response.headers())
    }

    /// Classifies the result of an attempt.
    pub(crate) fn check<R: AnyResponse, E: StdError + 'static>(
        &self,
        result: Result<R, E>,
        redirects: impl FnOnce(&Result<R, E>) -> Redirects,
    ) -> Result<R, FailedAttempt<R, E>> {
        // The clock is not read for most successes.
        let result = match result {
            Ok(response) if self.accepts(&response) => return Ok(response),
            result => result,
        };
        let (classifier, redirects) = (&self.inner.classifier, redirects(&result));
        // The classifier may run code of the user's. Decision D13
        // (docs/decisions.md) says what a panic in it means.
        let classified = guarded(|| {
            let outcome = match &result {
                Ok(response) => {
                    HttpOutcome::response(response.status(), response.headers(), clock::now())
                }
                Err(error) => HttpOutcome::error(error, clock::now()),
            };
            classifier.classify(&outcome.with_redirects(redirects))
        });
        let (result, failure) = match (classified, result) {
            (Ok(Ok(())), Ok(response)) => return Ok(response),
            (Ok(Ok(())), Err(error)) => {
                let note = "the classifier calls an error a success";
                (
                    Err(error),
                    Ok(Failure::in_flight(&reason::UNKNOWN).with_note(note)),
                )
            }
            (Ok(Err(failure)), result) => (result, Ok(failure)),
            (Err(panicked), result) => (result, Err(panicked)),
        };
        Err(FailedAttempt::from_parts(Some(result), Some(failure)))
    }
}

/// Sends a request by `send` until an attempt succeeds or the engine gives up.
/// `send` returns none if the request cannot be sent any more. If the first attempt was
/// made already, the engine begins with its failure, or with the end of its time.
///
/// Returns the last response, also if it is a failure: its report is then in its
/// extensions. Returns an error if there is no response.
///
/// A failed response is dropped as soon as a retry is granted, and `on_retry` is called.
/// Otherwise every request that waits would hold a connection.
///
/// `cut_off` returns the failure of an attempt whose time was over, if there cannot be
/// another one.
///
/// Dropping the future drops the attempt that is under way; its cost stays paid.
pub(crate) async fn run<R, E, F>(
    settings: &HttpRetry,
    call: &HttpCall,
    made: Option<MadeAttempt<R, E>>,
    cut_off: impl Fn() -> Option<FailedAttempt<R, E>>,
    address: impl Fn() -> String,
    on_retry: &(dyn Fn() + Send + Sync),
    mut send: impl FnMut(AttemptMark) -> Option<F>,
) -> Result<R, Error<E>>
where
    R: AnyResponse + Send,
    E: Send,
    F: Future<Output = Result<R, FailedAttempt<R, E>>>,
{
    let address = &address;
    // The last result of an attempt that failed.
    let last = &Mutex::new(None);
    let observer = |event: &RetryEvent<'_>| {
        // Without another attempt, this result is the last.
        if matches!(event.outcome(), Outcome::Retry { capped: false, .. }) {
            drop(lock(last).take());
            on_retry();
        }
        if let Some(observer) = &settings.inner.observer {
            observer(event);
        }
    };
    let keep = |mut failed: FailedAttempt<R, E>| {
        *lock(last) = failed.0.result.take();
        failed.map(|failure| failure.with_peer(address()))
    };
    // The engine has a place for the first attempt and one for the others. Here they share
    // one, because a large future is slow to move.
    let place = pin!(None);
    let place = &Mutex::new(place);
    let result = settings
        .retry(settings.strategy(call))
        .operation(call.operation)
        .idempotent(call.idempotent)
        .observe(&observer)
        .classify(AlreadyClassified)
        .run_after(
            made.map(|made| (made.first, made.failed.map(keep))),
            || cut_off().map(keep),
            |attempt| {
                let sending = Sending::new(place, send(attempt.into()));
                // Drops the result of the attempt before.
                drop(lock(last).take());
                async move {
                    match sending.await {
                        Some(Ok(response)) => Ok((response, attempt.number())),
                        Some(Err(failed)) => Err(keep(failed)),
                        None => Err(keep(FailedAttempt::not_made())),
                    }
                }
            },
        )
        .await;
    let error = match result {
        Ok((response, 1)) => return Ok(response),
        Ok((mut response, attempts)) => {
            response.extensions_mut().insert(AttemptCount(attempts));
            return Ok(response);
        }
        Err(error) => error,
    };
    let (report, _) = error.into_parts();
    match lock(last).take() {
        Some(Ok(mut response)) => {
            let extensions = response.extensions_mut();
            if report.attempts() > 1 {
                extensions.insert(AttemptCount(report.attempts()));
            }
            extensions.insert(ResponseReport(Arc::new(report)));
            Ok(response)
        }
        Some(Err(error)) => Err(Error::from_parts(report, Some(error))),
        None => Err(Error::from_parts(report, None)),
    }
}

/// An attempt that is polled in a place outside of it.
struct Sending<'a, 'b, F>(&'a Mutex<Pin<&'b mut Option<F>>>);

impl<'a, 'b, F> Sending<'a, 'b, F> {
    fn new(place: &'a Mutex<Pin<&'b mut Option<F>>>, sending: Option<F>) -> Self {
        lock(place).set(sending);
        Self(place)
    }
}

impl<F: Future> Future for Sending<'_, '_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match lock(self.0).as_mut().as_pin_mut() {
            Some(sending) => sending.poll(cx).map(Some),
            None => Poll::Ready(None),
        }
    }
}

impl<F> Drop for Sending<'_, '_, F> {
    /// Drops the attempt, which may have been cut off.
    fn drop(&mut self) {
        lock(self.0).set(None);
    }
}

/// Ignores poison: results and attempts are replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

impl<R, E> FailedAttempt<R, E> {
    /// An attempt that could not be made, because the body was lost after the retry was
    /// decided. Another attempt could not be made either.
    fn not_made() -> Self {
        let failure = Failure::not_sent(&reason::OPERATION_FAILED)
            .with_safety(Safety::No)
            .with_note("the body cannot be sent again");
        Self::from_parts(None, Some(Ok(failure)))
    }

    /// An attempt whose time was over, and whose body cannot be sent again.
    #[cfg(any(feature = "tower", feature = "reqwest-any"))]
    pub(crate) fn cut_off(why: impl fmt::Display) -> Self {
        let failure = Failure::in_flight(&reason::TIMEOUT).timed_out();
        let failure = cannot_resend(failure.with_note("no response in time"), why);
        Self::from_parts(None, Some(Ok(failure)))
    }

    /// Returns whether it has a response or an error.
    #[cfg(feature = "reqwest-middleware")]
    pub(super) const fn has_result(&self) -> bool {
        self.0.result.is_some()
    }

    /// An attempt whose failure is known without a classifier.
    #[cfg(feature = "tower")]
    pub(crate) fn new(error: E, failure: Failure) -> Self {
        Self::from_parts(Some(Err(error)), Some(Ok(failure)))
    }

    #[cold]
    fn from_parts(result: Option<Result<R, E>>, failure: Option<Result<Failure, Refusal>>) -> Self {
        let failure = Cell::new(failure);
        Self(Box::new(FailedParts { result, failure }))
    }

    /// Changes the failure, if there is one.
    pub(crate) fn map(self, change: impl FnOnce(Failure) -> Failure) -> Self {
        let failure = &self.0.failure;
        failure.set(failure.take().map(|failure| failure.map(change)));
        self
    }
}

/// Hands the engine the failure of a [`FailedAttempt`].
struct AlreadyClassified;

impl<R, E> Classifier<FailedAttempt<R, E>> for AlreadyClassified {
    fn classify(&self, _: &FailedAttempt<R, E>) -> Failure {
        Failure::not_sent(&reason::OPERATION_FAILED)
    }

    fn classify_guarded(&self, failed: &FailedAttempt<R, E>) -> Result<Failure, Refusal> {
        let failure = failed.0.failure.take();
        failure.unwrap_or_else(|| Ok(self.classify(failed)))
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

/// Returns host and port, for errors and budgets. Leaves out the rest of an
/// authority, such as a password.
pub(crate) fn address(host: Option<&str>, port: Option<u16>, scheme: Option<&str>) -> String {
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let port = port.or(match scheme {
        Some("http") => Some(80),
        Some("https") => Some(443),
        Some(_) | None => None,
    });
    match port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

#[cfg(all(test, feature = "tower"))]
mod tests {
    use http::Response;

    use super::*;

    /// The connection may read a body to its end while a retry is being decided.
    #[tokio::test]
    async fn a_request_whose_body_is_lost_before_a_retry_is_not_tried_again() {
        let settings = HttpRetry::new(steadfast::Standard::guidance()).unwrap();
        let call = HttpCall {
            strategy: None,
            operation: "http PUT",
            idempotent: true,
        };
        let asked = Cell::new(0);
        let reset = || Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
        let send = |_| {
            asked.set(asked.get() + 1);
            let sent: Result<Response<()>, _> = Err(FailedAttempt::new("reset", reset()));
            (asked.get() == 1).then(|| std::future::ready(sent))
        };
        let address = || "localhost".to_owned();
        let sent = run(&settings, &call, None, || None, address, &|| (), send).await;
        assert_eq!(sent.unwrap_err().report().attempts(), 2);
        assert_eq!(asked.get(), 2);
    }
}
