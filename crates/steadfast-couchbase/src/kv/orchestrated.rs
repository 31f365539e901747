//! A key-value request under the orchestrator: its attempts, one after the other.
//!
//! The same loop around the orchestrator as in [`drive`](crate::drive), written as a state
//! machine. An async function would need a box for each attempt, because its type has no
//! name, and would move the request several times. Whatever follows an attempt that did not
//! succeed is decided by the functions of `drive`.
//!
//! ```text
//!                      ┌──────────── Step::Attempt ◀──────────────┐
//!                      ▼                                          │
//!   New, Admitted ─▶ Sent ─▶ Received ─ no success: tell the ──▶ Waiting, Rare
//!                               │       orchestrator              │
//!                               └──────▶ Done ◀───────────────────┘
//! ```

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use steadfast::strategy::{Answer, AnyStrategy};
use steadfast::{Orchestrator, Step};
use steadfast_wire::Frame;
use tokio::time::Sleep;
use tracing::Span;

use super::attempt::{Begun, KvAttempts, NoCollectionId, look_up};
use super::connection::{Connection, Received, Ticket};
use super::future::{Admitted, FirstAttempt, Unsent};
use super::request::{KvRequest, KvResponse};
use crate::drive::{Driven, Tried, decided, finish, give_up, handle_tried, unless, wrong_state};
use crate::error::{Error, ErrorKind, Result};
use crate::observe::{attempt_span, end_attempt, end_request, request_span, spans_are_wanted};
use crate::topology::Waiting;
use crate::world::TokioWorld;

/// A key-value request under the orchestrator.
///
/// Cancel-safe: dropping it abandons the current attempt. An attempt that was not sent
/// is never sent, and a late response is ignored.
pub(crate) struct Orchestrated<'a> {
    /// Stored where the request was before it was orchestrated.
    attempts: KvAttempts<'a>,
    /// On the heap, so that requests without an orchestrator stay small.
    retries: Pin<Box<Retries<'a>>>,
}

pin_project! {
    #[project = RetriesProjection]
    struct Retries<'a> {
        request: Orchestrator<AnyStrategy<'a>>,
        // The error that the request ends with if no retry follows.
        kind: ErrorKind,
        // Set if a subscriber wants spans.
        spans: Option<Box<Spans>>,
        #[pin]
        state: State<'a>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<'a> {
        New,
        // The strategy has admitted the first attempt, which is not sent yet.
        Admitted,
        // The connection has accepted the frame, with this collection id.
        Sent { ticket: Ticket, collection_id: u32 },
        // The first attempt ended before the request was orchestrated.
        Received { received: Option<Box<Received>>, collection_id: u32 },
        // A delay before the next attempt.
        Waiting { waiting: Waiting<'a>, #[pin] sleep: Sleep },
        Rare { event: Pin<Box<dyn Future<Output = Event> + Send + 'a>> },
        Done,
    }
}

/// The end of a rare wait.
enum Event {
    /// The id of the collection was looked up.
    LookedUp(std::result::Result<u32, NoCollectionId>, Arc<Connection>),
    /// A delay is over.
    Waited,
    /// The client was closed during a delay.
    Woken,
    /// An asynchronous strategy has decided, or the deadline passed.
    Decided(Option<Answer>),
    /// The client was closed during a decision.
    Closed,
}

const ONCE: &str = "the end of the first attempt is handled once";

/// The spans of a request and of its current attempt.
struct Spans {
    request: Span,
    attempt: Span,
}

impl<'a> Orchestrated<'a> {
    /// Makes a request of which nothing was sent.
    pub(super) fn new(request: KvRequest<'a>, unsent: Unsent) -> Self {
        let call = request.call();
        let mut attempts = KvAttempts::new(request, unsent.compressed);
        let retries = match unsent.admitted {
            None => Retries::new(Orchestrator::new(attempts.strategy(), call), State::New),
            Some(Admitted { strategy, started }) => {
                let strategy = attempts.request.any_strategy(strategy);
                let world = &TokioWorld(attempts.core());
                let orchestrator =
                    Orchestrator::in_first_attempt(strategy, call, Some(started), world);
                Retries::new(orchestrator, State::Admitted)
            }
        };
        Self { attempts, retries }
    }

    /// Takes over after a first attempt that did not succeed.
    pub(super) fn after_first(
        request: KvRequest<'a>,
        mut first: FirstAttempt,
        received: Received,
    ) -> Self {
        let (call, started) = (request.call(), Some(first.started));
        let strategy = first.take_strategy(&request);
        let world = &TokioWorld(&request.bucket().core);
        let orchestrator = Orchestrator::in_first_attempt(strategy, call, started, world);
        let state = State::Received {
            received: Some(Box::new(received)),
            collection_id: first.collection_id,
        };
        Self {
            attempts: KvAttempts::in_first_attempt(request, first),
            retries: Retries::new(orchestrator, state),
        }
    }

    /// Completes with the response, or the error that ends the request.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<KvResponse<'a>>> {
        let RetriesProjection {
            request,
            kind,
            spans,
            state,
        } = self.retries.as_mut().project();
        let mut running = Running {
            attempts: &mut self.attempts,
            request,
            kind,
            spans,
            state,
        };
        if let State::New = *running.state
            && spans_are_wanted()
        {
            let span = request_span(&running.request.request(), running.attempts);
            *running.spans = (!span.is_disabled()).then(|| Spans::new(span));
        }
        let outcome = if running.spans.is_none() {
            ready!(running.poll_outcome(cx))
        } else {
            ready!(running.poll_traced(cx))
        };
        running.state.set(State::Done);
        let finished = finish(running.request, running.attempts, &outcome);
        if let Some(spans) = running.spans {
            end_request(&spans.request, &finished);
        }
        Poll::Ready(outcome.map(|frame| running.attempts.response(frame)))
    }
}

impl Orchestrated<'_> {
    /// Adds context to the error of a response that means success and cannot be read.
    pub(super) fn add_context(&mut self, error: Error) -> Error {
        let report = self.retries.as_mut().project().request.take_report();
        self.attempts.add_context(error).with_report(report)
    }
}

impl<'a> Retries<'a> {
    fn new(request: Orchestrator<AnyStrategy<'a>>, state: State<'a>) -> Pin<Box<Self>> {
        Box::pin(Self {
            request,
            kind: ErrorKind::UnambiguousTimeout,
            spans: None,
            state,
        })
    }
}

/// Both parts of a request, while it is polled.
struct Running<'p, 'a> {
    attempts: &'p mut KvAttempts<'a>,
    request: &'p mut Orchestrator<AnyStrategy<'a>>,
    kind: &'p mut ErrorKind,
    spans: &'p mut Option<Box<Spans>>,
    state: Pin<&'p mut State<'a>>,
}

impl Running<'_, '_> {
    /// Polls within the span of the request, so that the events of the engine are in it.
    #[cold]
    fn poll_traced(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame>> {
        let span = self.spans.as_ref().map(|spans| spans.request.clone());
        let _entered = span.as_ref().map(Span::enter);
        self.poll_outcome(cx)
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame>> {
        loop {
            let attempts = &mut *self.attempts;
            let request = &mut *self.request;
            let step = match self.state.as_mut().project() {
                StateProjection::New => request.begin(&TokioWorld(attempts.core())),
                StateProjection::Admitted => Step::Attempt,
                StateProjection::Sent {
                    ticket,
                    collection_id,
                } => {
                    let (received, id) = (ready!(ticket.poll_response(cx)), *collection_id);
                    match self.handle_received(received, id)? {
                        ControlFlow::Continue(step) => step,
                        ControlFlow::Break(frame) => return Poll::Ready(Ok(frame)),
                    }
                }
                StateProjection::Received {
                    received,
                    collection_id,
                } => {
                    let (received, id) = (received.take().expect(ONCE), *collection_id);
                    match self.handle_received(*received, id)? {
                        ControlFlow::Continue(step) => step,
                        ControlFlow::Break(frame) => return Poll::Ready(Ok(frame)),
                    }
                }
                StateProjection::Waiting { waiting, sleep } => {
                    if attempts.poll_woken(waiting, cx).is_ready() {
                        request.handle_woken(&TokioWorld(attempts.core()))
                    } else {
                        ready!(sleep.poll(cx));
                        request.handle_waited(&TokioWorld(attempts.core()))
                    }
                }
                StateProjection::Rare { event } => {
                    let event = ready!(event.as_mut().poll(cx));
                    match self.handle_rare(event, cx)? {
                        Some(step) => step,
                        None => continue,
                    }
                }
                StateProjection::Done => unreachable!("a future is not polled after its end"),
            };
            self.handle_step(step, cx)?;
            // The connection has the waker already.
            if let State::Sent { .. } = *self.state {
                return Poll::Pending;
            }
        }
    }

    /// Handles the end of an attempt that a connection had accepted. Returns the response
    /// of a success, or the next step.
    fn handle_received(
        &mut self,
        received: Received,
        collection_id: u32,
    ) -> Result<ControlFlow<Frame, Step>> {
        let (request, attempts) = (&mut *self.request, &mut *self.attempts);
        let result = attempts.end(received, collection_id);
        end_span(self.spans, attempts, result.as_ref());
        match result {
            Ok(frame) => {
                request.handle_success(&TokioWorld(attempts.core()));
                Ok(ControlFlow::Break(frame))
            }
            Err(tried) => {
                handle_tried(tried, self.kind, request, attempts).map(ControlFlow::Continue)
            }
        }
    }

    /// Does what the orchestrator asks for, until there is something to wait for.
    fn handle_step(&mut self, mut step: Step, cx: &mut Context<'_>) -> Result<()> {
        loop {
            let request = self.request.request();
            let bucket = self.attempts.request.bucket();
            let event: Pin<Box<dyn Future<Output = Event> + Send + '_>> = match step {
                Step::Attempt => {
                    let (number, deadline) = (request.attempts(), request.deadline());
                    if let Some(spans) = self.spans {
                        spans.attempt = attempt_span(number);
                    }
                    let begun = self.attempts.begin(deadline, cx.waker());
                    match self.handle_begun(begun)? {
                        Some(next) => step = next,
                        None => return Ok(()),
                    }
                    continue;
                }
                Step::Wait { delay, .. } if delay.is_zero() => Box::pin(async {
                    tokio::task::yield_now().await;
                    Event::Waited
                }),
                Step::Wait { delay, .. } if request.history().last().is_some() => {
                    self.state.set(State::Waiting {
                        waiting: self.attempts.wait(),
                        sleep: tokio::time::sleep(delay),
                    });
                    return Ok(());
                }
                // Few strategies delay the first attempt.
                Step::Wait { delay, .. } => Box::pin(async move {
                    let closed = bucket.core.closed.cancelled();
                    match tokio::time::timeout(delay, closed).await {
                        Ok(()) => Event::Woken,
                        Err(_) => Event::Waited,
                    }
                }),
                Step::Ask(pending) => {
                    let decided = decided(pending, request.deadline());
                    Box::pin(async move {
                        match unless(bucket.core.closed.cancelled(), decided).await {
                            Some(answer) => Event::Decided(answer),
                            None => Event::Closed,
                        }
                    })
                }
                Step::GiveUp(verdict) => {
                    return Err(give_up(verdict, *self.kind, self.request, self.attempts));
                }
                Step::LeftAlone => return Err(wrong_state(self.request)),
            };
            self.state.set(State::Rare { event });
            return Ok(());
        }
    }

    /// Waits for the response of an attempt, or handles its failure. Returns the next step
    /// after a failure.
    fn handle_begun(&mut self, begun: Begun) -> Result<Option<Step>> {
        match begun {
            Begun::Sent(ticket, collection_id) => {
                self.state.set(State::Sent {
                    ticket,
                    collection_id,
                });
                Ok(None)
            }
            Begun::NeedsCollectionId(connection) => {
                let request = &self.attempts.request;
                let (bucket, collection) = (request.bucket(), &request.collection.entry);
                let deadline = self.request.request().deadline();
                let event = Box::pin(async move {
                    let id = look_up(bucket, collection, &connection, deadline).await;
                    Event::LookedUp(id, connection)
                });
                self.state.set(State::Rare { event });
                Ok(None)
            }
            Begun::Unsent(tried) => {
                end_span(self.spans, self.attempts, Err(&tried));
                let (request, attempts) = (&mut *self.request, &mut *self.attempts);
                handle_tried(*tried, self.kind, request, attempts).map(Some)
            }
        }
    }

    #[cold]
    fn handle_rare(&mut self, event: Event, cx: &mut Context<'_>) -> Result<Option<Step>> {
        let request = &mut *self.request;
        let world = &TokioWorld(self.attempts.core());
        Ok(Some(match event {
            Event::LookedUp(id, connection) => {
                let deadline = request.request().deadline();
                let waker = cx.waker();
                let begun = (self.attempts).begin_with_id(id, connection, deadline, waker);
                return self.handle_begun(begun);
            }
            Event::Waited => request.handle_waited(world),
            Event::Woken => request.handle_woken(world),
            Event::Decided(Some(answer)) => request.handle_decision(answer, world),
            Event::Decided(None) => request.handle_deadline(world),
            Event::Closed => {
                *self.kind = ErrorKind::RequestCanceled;
                request.handle_cancel(world)
            }
        }))
    }
}

impl Spans {
    #[cold]
    fn new(request: Span) -> Box<Self> {
        let attempt = Span::none();
        Box::new(Self { request, attempt })
    }
}

/// Ends the span of an attempt, if there is one.
fn end_span(
    spans: &Option<Box<Spans>>,
    attempts: &KvAttempts<'_>,
    result: std::result::Result<&Frame, &Tried>,
) {
    if let Some(spans) = spans {
        let dispatch = attempts.dispatch(result.ok());
        end_attempt(&spans.attempt, &dispatch, result.err());
    }
}
