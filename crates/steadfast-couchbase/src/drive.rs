//! Drives requests: the engine's driver decides, waits and limits, and this module makes
//! errors, spans and metrics of it.
//!
//! [`drive`] runs all operations whose attempts are async functions ([`Attempts`]). Those on
//! documents are [`KvFuture`](crate::kv::future::KvFuture)s, with the same driver and the
//! same functions after an attempt.

mod after_attempt;

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

pub(crate) use after_attempt::{finish, give_up, handle_error};
use steadfast::report::Report;
use steadfast::strategy::AnyStrategy;
use steadfast::{Call, Driver, Failure, Stage, Step};
use tracing::Instrument;

use crate::client::Core;
use crate::error::{Error, ErrorKind};
use crate::observe::{Dispatch, Finished, attempt_span, end_attempt, end_request, request_span};
use crate::options::RetryIf;
use crate::world::{BoxSleep, TokioWorld, now};

/// A request, without its attempts: its context for errors, spans and metrics.
pub(crate) trait Driven {
    /// The result of the request.
    type Output;

    /// Adds the operation's context to the error: its target, and the server's last
    /// response.
    fn add_context(&mut self, error: Error) -> Error;

    /// Records the end of the request in metrics and reports. A success has an output.
    fn finished(&mut self, _finished: &Finished, _output: Option<&Self::Output>) {}

    /// Returns the time at which it succeeded.
    fn succeeded_at(&self, _output: &Self::Output) -> Instant {
        now()
    }

    /// The client.
    fn core(&self) -> &Core;

    /// The names of bucket, scope and collection, empty where there is none.
    fn place(&self) -> [&str; 3];

    /// The durability that a write asks for.
    fn durability(&self) -> Option<&'static str> {
        None
    }

    /// Describes the attempt that just ended, for its span.
    fn dispatch(&self, _output: Option<&Self::Output>) -> Dispatch {
        Dispatch::default()
    }

    /// Returns the application's rule for final responses, if it has one.
    fn retry_if(&self) -> Option<&RetryIf> {
        None
    }

    /// Whether a final response of this kind proves that nothing was applied.
    fn proves_not_applied(&self, _: ErrorKind) -> bool {
        true
    }
}

/// A request whose attempts are async functions.
pub(crate) trait Attempts: Driven {
    /// Makes an attempt, and ends it at the deadline.
    ///
    /// Cancel-safe: dropping the future abandons the attempt and leaves shared
    /// state in order.
    fn attempt(
        &mut self,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Self::Output, AttemptError>> + Send;

    /// Completes when the wait after an attempt that failed at this stage has become
    /// pointless: there is a new route or connection, or the client was closed. May never
    /// complete.
    ///
    /// Cancel-safe: dropping the future changes nothing.
    fn woken(&mut self, stage: Stage) -> impl Future<Output = ()> + Send;

    /// Keeps the report of a request that succeeded after retries, for an error that its
    /// output may still have.
    fn keep_report(&mut self, _output: &mut Self::Output, _report: Report) {}
}

/// An attempt that did not succeed, and what it means for the operation.
#[derive(Clone, Debug)]
pub(crate) enum AttemptError {
    /// A conclusive response that is an error of this kind. Never retried; the
    /// strategy counts it as a success (D37).
    Final(ErrorKind),
    /// The client cannot send the operation: an error of this kind. It says nothing about
    /// the server, so the strategy learns only that the request ended.
    Unsendable(ErrorKind),
    /// The attempt failed and may be retried; otherwise an error of this kind.
    Failed(Failure, ErrorKind),
    /// The client was closed. The failure says how far the attempt came.
    Closed(Failure),
}

/// The driver of a request of this client.
pub(crate) type ClientDriver<'a> = Driver<AnyStrategy<'a>, Call, TokioWorld<'a>>;

/// Runs an operation to its end.
///
/// Cancel-safe: dropping the future abandons the attempt in progress. Budget spent
/// on it stays spent, and nothing else is left behind (D39).
// Not an async function: its future would hold the arguments twice.
pub(crate) fn drive<'a, A: Attempts + Send>(
    call: Call,
    strategy: AnyStrategy<'a>,
    core: &'a Core,
    operation: &'a mut A,
) -> impl Future<Output = Result<A::Output, Error>> + Send + 'a {
    let mut driver = Driver::new(strategy, call, TokioWorld(core));
    async move {
        let span = request_span(&driver.request(), operation);
        let mut outcome = if span.is_disabled() {
            run(&mut driver, operation, false).await
        } else {
            // The events of the engine are in the span too.
            let traced = run(&mut driver, operation, true).instrument(span.clone());
            Box::pin(traced).await
        };
        let finished = finish(&driver, operation, &outcome);
        end_request(&span, &finished);
        if let Ok(output) = &mut outcome
            && finished.retries > 0
        {
            operation.keep_report(output, driver.take_report());
        }
        outcome
    }
}

#[expect(
    clippy::manual_async_fn,
    reason = "an async function keeps its arguments twice"
)]
fn run<A: Attempts + Send>(
    driver: &mut ClientDriver<'_>,
    operation: &mut A,
    traced: bool,
) -> impl Future<Output = Result<A::Output, Error>> + Send {
    async move {
        let mut kind = ErrorKind::UnambiguousTimeout;
        let mut at_once = driver.begin();
        loop {
            if !at_once && !next(driver, operation, &mut kind).await {
                return Err(give_up(kind, driver, operation));
            }
            let (number, deadline) = (driver.attempt().number(), driver.request().deadline());
            match attempt(number, deadline, operation, traced).await {
                Ok(output) => {
                    driver.succeed();
                    return Ok(output);
                }
                Err(error) => at_once = handle_error(error, &mut kind, driver, operation)?,
            }
        }
    }
}

/// Makes an attempt, in its own span if the request has one. Cancel-safe like
/// [`Attempts::attempt`].
async fn attempt<A: Attempts + Send>(
    number: u32,
    deadline: Option<Instant>,
    operation: &mut A,
    traced: bool,
) -> Result<A::Output, AttemptError> {
    if !traced {
        return operation.attempt(deadline).await;
    }
    let span = attempt_span(number);
    let result = Box::pin(operation.attempt(deadline).instrument(span.clone())).await;
    let dispatch = operation.dispatch(result.as_ref().ok());
    end_attempt(&span, &dispatch, result.as_ref().err());
    result
}

/// Waits for the next attempt. Returns whether there is one.
async fn next<A: Attempts + Send>(
    driver: &mut ClientDriver<'_>,
    operation: &mut A,
    kind: &mut ErrorKind,
) -> bool {
    let mut timer = pin!(None);
    loop {
        let wake_up = WakeUp::of(driver);
        let mut woken = pin!(woken(operation, wake_up, driver.world().0));
        let next = poll_fn(|cx| {
            let mut next = driver.poll_next(timer.as_mut(), cx);
            if next.is_pending() && woken.as_mut().poll(cx).is_ready() {
                end_wait(driver, timer.as_mut(), kind);
                next = driver.poll_next(timer.as_mut(), cx);
            }
            match next {
                // Its strategy has decided, and now it waits for something else.
                Poll::Pending if WakeUp::of(driver) != wake_up => Poll::Ready(None),
                next => next.map(Some),
            }
        });
        if let Some(next) = next.await {
            return next;
        }
    }
}

/// Completes when a wait ends early. Cancel-safe.
async fn woken<A: Attempts>(operation: &mut A, wake_up: WakeUp, core: &Core) {
    match wake_up {
        WakeUp::Never => pending().await,
        WakeUp::Closing => core.closed.cancelled().await,
        WakeUp::Change(stage) => operation.woken(stage).await,
    }
}

/// What ends a wait early, besides its timer (decisions D18 and D24, docs/decisions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeUp {
    /// Nothing: the request only lets other tasks run.
    Never,
    /// The end of the client. The request waits for its first attempt, or its strategy
    /// decides.
    Closing,
    /// A new route or connection, or the end of the client. The last attempt failed at this
    /// stage.
    Change(Stage),
}

impl WakeUp {
    /// Returns what ends the wait of a request.
    pub(crate) fn of(driver: &ClientDriver<'_>) -> Self {
        match (driver.step(), driver.request().history().last()) {
            (Step::Wait { delay, .. }, _) if delay.is_zero() => Self::Never,
            (Step::Wait { .. }, Some(last)) => Self::Change(last.failure.stage),
            _ => Self::Closing,
        }
    }
}

/// Ends a wait early. A request whose strategy decides is cancelled: only the end of the
/// client wakes it.
#[cold]
pub(crate) fn end_wait(
    driver: &mut ClientDriver<'_>,
    timer: Pin<&mut Option<BoxSleep>>,
    kind: &mut ErrorKind,
) {
    if driver.step() == Step::Ask {
        *kind = ErrorKind::RequestCanceled;
        driver.cancel();
    } else {
        driver.wake(timer);
    }
}
