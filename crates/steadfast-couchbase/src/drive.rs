//! The client's loop around the orchestrator. All operations but those on documents run
//! in it; those run in [`KvFuture`](crate::kv::future::KvFuture), which handles failed
//! attempts by the functions of this module.
//!
//! The orchestrator decides. The loop makes the attempts, sleeps, and wakes early
//! when there is a new route or connection (decisions D18 and D24,
//! docs/decisions.md). An operation defines its attempts and its wake-ups by
//! [`Attempts`].

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use steadfast::report::Report;
use steadfast::strategy::{Answer, Cause, PendingDecision};
use steadfast::{Call, Failure, Orchestrator, RetryStrategy, Stage, Step, Verdict};
use tracing::Instrument;

use crate::client::Core;
use crate::error::{Error, ErrorKind};
use crate::fast_fail::Raised;
use crate::observe::{Dispatch, Finished, attempt_span, end_attempt, end_request, request_span};
use crate::options::RetryIf;
use crate::reason::APPLICATION_INDICATED;
use crate::world::{TokioWorld, now};

/// A request, as the loop knows it: its context for errors, spans and metrics.
pub(crate) trait Driven {
    /// The result of the request.
    type Output;

    /// Adds the operation's context to the error: its target, and the server's last
    /// response.
    fn add_context(&mut self, error: Error) -> Error;

    /// Records the end of the request in metrics and reports. A success has an output.
    fn finished(&mut self, _finished: &Finished, _output: Option<&Self::Output>) {}

    /// The time at which it succeeded.
    fn succeeded_at(&self) -> Instant {
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
    ) -> impl Future<Output = Result<Self::Output, Tried>> + Send;

    /// Completes when the wait after this failure has become pointless: there is
    /// a new route or connection, or the client was closed. May never complete.
    ///
    /// Cancel-safe: dropping the future changes nothing.
    fn woken(&mut self, failure: &Failure) -> impl Future<Output = ()> + Send;

    /// Keeps the report of a request that succeeded after retries, for an error that its
    /// output may still have.
    fn keep_report(&mut self, _output: &mut Self::Output, _report: Report) {}

    /// Completes when the client is closed. Cancel-safe.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

/// An attempt that did not succeed, and what it means for the operation.
pub(crate) enum Tried {
    /// A conclusive response that is an error of this kind. Never retried; the
    /// strategy counts it as a success (D37).
    Final(ErrorKind),
    /// The client cannot send the operation: an error of this kind. The strategy
    /// hears nothing of it, because it says nothing about the server.
    Unsendable(ErrorKind),
    /// The attempt failed and may be retried; otherwise an error of this kind.
    Failed(Failure, ErrorKind),
    /// The client was closed. The failure says how far the attempt came.
    Closed(Failure),
}

/// Runs an operation to its end.
///
/// Cancel-safe: dropping the future abandons the attempt in progress. Budget spent
/// on it stays spent, and nothing else is left behind (D39).
// Not an async function: its future would hold the arguments twice.
pub(crate) fn drive<'a, A: Attempts + Send>(
    call: Call,
    strategy: &'a dyn RetryStrategy,
    operation: &'a mut A,
) -> impl Future<Output = Result<A::Output, Error>> + Send + 'a {
    let mut request = Orchestrator::new(strategy, call);
    async move {
        let span = request_span(&request.request(), operation);
        let mut outcome = if span.is_disabled() {
            run(&mut request, operation, false).await
        } else {
            // The events of the engine are in the span too.
            let traced = run(&mut request, operation, true).instrument(span.clone());
            Box::pin(traced).await
        };
        let finished = finish(&request, operation, &outcome);
        end_request(&span, &finished);
        if let Ok(output) = &mut outcome
            && finished.retries > 0
        {
            operation.keep_report(output, request.take_report());
        }
        outcome
    }
}

/// Records the end of a request.
#[inline]
pub(crate) fn finish<D: Driven>(
    request: &Orchestrator<impl RetryStrategy>,
    driven: &mut D,
    outcome: &Result<D::Output, Error>,
) -> Finished {
    let ended = match outcome {
        Ok(_) => driven.succeeded_at(),
        Err(_) => now(),
    };
    let retries = match outcome {
        Ok(_) => request.request().retries(),
        Err(error) => error.context().report().map_or(0, Report::retries),
    };
    let finished = Finished {
        started: request.request().started().unwrap_or(ended),
        ended,
        retries,
        error: outcome.as_ref().err().map(Error::kind),
    };
    driven.finished(&finished, outcome.as_ref().ok());
    finished
}

#[expect(
    clippy::manual_async_fn,
    reason = "an async function keeps its arguments twice"
)]
fn run<A: Attempts + Send>(
    request: &mut Orchestrator<&dyn RetryStrategy>,
    operation: &mut A,
    traced: bool,
) -> impl Future<Output = Result<A::Output, Error>> + Send {
    async move {
        let mut step = request.begin(&TokioWorld(operation.core()));
        let mut kind = ErrorKind::UnambiguousTimeout;
        loop {
            step = match step {
                Step::Attempt => match attempt(which(request), operation, traced).await {
                    Ok(output) => {
                        request.handle_success(&TokioWorld(operation.core()));
                        return Ok(output);
                    }
                    Err(tried) => handle_tried(tried, &mut kind, request, operation)?,
                },
                Step::Wait { delay, .. } if delay.is_zero() => {
                    tokio::task::yield_now().await;
                    request.handle_waited(&TokioWorld(operation.core()))
                }
                Step::Wait { delay, .. } => {
                    let last = request.request().history().last();
                    let woken = match last {
                        Some(last) => wait(delay, operation.woken(&last.failure)).await,
                        // Boxed, because few strategies delay the first attempt.
                        None => Box::pin(wait(delay, operation.closed())).await,
                    };
                    if woken {
                        request.handle_woken(&TokioWorld(operation.core()))
                    } else {
                        request.handle_waited(&TokioWorld(operation.core()))
                    }
                }
                Step::Ask(pending) => {
                    let decided = decided(pending, request.request().deadline());
                    // Boxed, because few strategies decide asynchronously.
                    match Box::pin(unless(operation.closed(), decided)).await {
                        None => {
                            kind = ErrorKind::RequestCanceled;
                            request.handle_cancel(&TokioWorld(operation.core()))
                        }
                        Some(Some(answer)) => {
                            request.handle_decision(answer, &TokioWorld(operation.core()))
                        }
                        Some(None) => request.handle_deadline(&TokioWorld(operation.core())),
                    }
                }
                Step::GiveUp(verdict) => return Err(give_up(verdict, kind, request, operation)),
                Step::LeftAlone => return Err(wrong_state(request)),
            };
        }
    }
}

/// Tells the orchestrator of an attempt that did not succeed. `kind` is the error that the
/// request ends with if no retry follows. Returns the next step, or the final error.
#[cold]
pub(crate) fn handle_tried<S: RetryStrategy, D: Driven>(
    tried: Tried,
    kind: &mut ErrorKind,
    request: &mut Orchestrator<S>,
    driven: &mut D,
) -> Result<Step, Error> {
    match tried {
        Tried::Final(finally) => match indicated(finally, request, driven) {
            Some(failure) => {
                *kind = finally;
                Ok(request.handle_failure(failure, &TokioWorld(driven.core())))
            }
            None => {
                let stage = match driven.proves_not_applied(finally) {
                    true => Stage::Responded,
                    false => Stage::Inconclusive,
                };
                request.handle_final_response(stage, &TokioWorld(driven.core()));
                let error = error(finally, request).with_report(request.take_report());
                Err(driven.add_context(error))
            }
        },
        Tried::Unsendable(kind) => {
            request.handle_unsendable(&TokioWorld(driven.core()));
            let error = error(kind, request).with_report(request.take_report());
            Err(driven.add_context(error))
        }
        Tried::Failed(mut failure, failed) => {
            *kind = failed;
            // The stage stays: the law decides whether that is safe.
            if failure.stage == Stage::Inconclusive
                && failure.reason.never_retry()
                && asks_to_retry(failed, request, driven)
            {
                failure.reason = &APPLICATION_INDICATED;
            }
            Ok(request.handle_failure(failure, &TokioWorld(driven.core())))
        }
        Tried::Closed(failure) => {
            *kind = ErrorKind::RequestCanceled;
            Ok(request.handle_cancelled_attempt(failure, &TokioWorld(driven.core())))
        }
    }
}

/// Makes the error of a request that is not retried any more.
#[cold]
pub(crate) fn give_up<S: RetryStrategy, D: Driven>(
    verdict: Verdict,
    kind: ErrorKind,
    request: &mut Orchestrator<S>,
    driven: &mut D,
) -> Error {
    let report = request.take_report();
    let raised = report.refusal().and_then(Raised::kind_of);
    let kind = match (verdict, raised) {
        (Verdict::TimedOut(_), _) if verdict.is_ambiguous() => ErrorKind::AmbiguousTimeout,
        (Verdict::TimedOut(_), _) => ErrorKind::UnambiguousTimeout,
        (Verdict::Shed, _) => ErrorKind::TemporaryFailure,
        (Verdict::Failed(_) | Verdict::Succeeded, Some(raised)) => raised,
        (Verdict::Failed(_) | Verdict::Succeeded, None) => kind,
    };
    let note = note(&report);
    let mut error = driven.add_context(error(kind, request));
    if let Some(note) = note {
        error = error.because(note);
    }
    error.with_report(report)
}

/// Makes the error of a handler that was called in a state in which it does not apply. No
/// handler is.
#[cold]
pub(crate) fn wrong_state<S: RetryStrategy>(request: &Orchestrator<S>) -> Error {
    error(ErrorKind::Couchbase, request)
        .because("the orchestrator was called in the wrong state, which is a bug in this client")
}

/// Returns the failure that a final response becomes if the application asks for a
/// retry. The law then decides by its stage, and the strategy is asked.
#[cold]
fn indicated<S: RetryStrategy, D: Driven>(
    kind: ErrorKind,
    request: &Orchestrator<S>,
    operation: &mut D,
) -> Option<Failure> {
    if !asks_to_retry(kind, request, operation) {
        return None;
    }
    let failure = if operation.proves_not_applied(kind) {
        Failure::responded(&APPLICATION_INDICATED)
    } else {
        Failure::inconclusive(&APPLICATION_INDICATED)
    };
    Some(failure.with_note(kind.to_string()))
}

/// Asks the application whether a final response of this kind is to be retried.
fn asks_to_retry<S: RetryStrategy, D: Driven>(
    kind: ErrorKind,
    request: &Orchestrator<S>,
    operation: &mut D,
) -> bool {
    let Some(retry_if) = operation.retry_if().cloned() else {
        return false;
    };
    retry_if(&operation.add_context(error(kind, request)))
}

/// Makes an attempt, in a span of its own if the request has one. Cancel-safe like
/// [`Attempts::attempt`].
async fn attempt<A: Attempts + Send>(
    (number, deadline): (u32, Option<Instant>),
    operation: &mut A,
    traced: bool,
) -> Result<A::Output, Tried> {
    if !traced {
        return operation.attempt(deadline).await;
    }
    let span = attempt_span(number);
    let result = Box::pin(operation.attempt(deadline).instrument(span.clone())).await;
    let dispatch = operation.dispatch(result.as_ref().ok());
    end_attempt(&span, &dispatch, result.as_ref().err());
    result
}

/// Returns the number of the current attempt, and its deadline.
// Takes the orchestrator, because a borrowed request would live as long as the
// attempt.
fn which(request: &Orchestrator<&dyn RetryStrategy>) -> (u32, Option<Instant>) {
    let request = request.request();
    (request.attempts(), request.deadline())
}

/// Makes an error of the operation.
#[cold]
fn error<S: RetryStrategy>(kind: ErrorKind, request: &Orchestrator<S>) -> Error {
    Error::new(kind, request.request().operation())
}

/// Returns what the refusal says beyond its cause.
fn note(report: &Report) -> Option<String> {
    let refusal = report.refusal()?;
    match refusal.cause() {
        Cause::Cancelled => Some("the client was closed".to_owned()),
        _ => refusal.raised().map(ToString::to_string),
    }
}

/// Sleeps until the delay is over or `woken` completes. Returns whether it did.
fn wait<W: Future<Output = ()>>(delay: Duration, woken: W) -> Wait<W> {
    let sleep = tokio::time::sleep(delay);
    Wait { woken, sleep }
}

pin_project_lite::pin_project! {
    /// The future of [`wait`]. Waiting operations consist mostly of it, and
    /// `select!` would hold its parts twice.
    struct Wait<W> {
        #[pin]
        woken: W,
        #[pin]
        sleep: tokio::time::Sleep,
    }
}

impl<W: Future<Output = ()>> Future for Wait<W> {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let this = self.project();
        if this.woken.poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        this.sleep.poll(cx).map(|()| false)
    }
}

/// Returns the output of a future, unless `stop` completes first. Cancel-safe if
/// both are.
pub(crate) async fn unless<T>(
    stop: impl Future<Output = ()>,
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = stop => None,
        output = future => Some(output),
    }
}

/// Awaits a decision until the deadline.
///
/// Cancel-safe: dropping the future abandons the decision.
pub(crate) async fn decided(pending: PendingDecision, deadline: Option<Instant>) -> Option<Answer> {
    match deadline {
        None => Some(pending.await),
        Some(deadline) => tokio::time::timeout_at(deadline.into(), pending).await.ok(),
    }
}
