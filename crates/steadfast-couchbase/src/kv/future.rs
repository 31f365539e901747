//! The future of a key-value request: its attempts, one after the other.
//!
//! The same loop around the orchestrator as in [`drive`](crate::drive), written as a state
//! machine. An async function would need a box for each request, because its type has no
//! name, and would move the request several times. Whatever follows an attempt that did not
//! succeed is decided by the functions of `drive`.
//!
//! ```text
//!            ┌──────────── Step::Attempt ◀──────────────┐
//!            ▼                                          │
//!   New ─▶ Sent ── no success: tell the orchestrator ─▶ Waiting, Rare
//!            │                                          │
//!            └───────────────▶ Done ◀───────────────────┘
//! ```

use std::future::Future;
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
use super::connection::{Connection, Ticket};
use super::request::{KvRequest, KvResponse};
use crate::drive::{Driven, Tried, decided, finish, give_up, handle_tried, unless, wrong_state};
use crate::error::{ErrorKind, Result};
use crate::observe::{attempt_span, end_attempt, end_request, request_span, spans_are_wanted};
use crate::topology::Waiting;
use crate::world::TokioWorld;

pin_project! {
    /// The future of a key-value request.
    ///
    /// Cancel-safe: dropping it abandons the current attempt. An attempt that was not sent
    /// is never sent, and a late response is ignored.
    #[project = Projection]
    pub(crate) struct KvFuture<'a> {
        attempts: KvAttempts<'a>,
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
        // The connection has accepted the frame, with this collection id.
        Sent { ticket: Ticket, collection_id: u32 },
        // A delay before the next attempt. The timer is boxed, and so is a rare wait, so
        // that other requests stay small.
        Waiting { waiting: Waiting<'a>, sleep: Pin<Box<Sleep>> },
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

/// The spans of a request and of its current attempt.
struct Spans {
    request: Span,
    attempt: Span,
}

impl<'a> KvFuture<'a> {
    // Inlined always, so that it is made in place: it is large.
    #[inline(always)]
    pub(crate) fn new(request: KvRequest<'a>) -> Self {
        let call = request.call();
        let mut attempts = KvAttempts::new(request);
        let strategy = attempts.take_strategy();
        Self {
            attempts,
            request: Orchestrator::new(strategy, call),
            kind: ErrorKind::UnambiguousTimeout,
            spans: None,
            state: State::New,
        }
    }
}

impl<'a> Future for KvFuture<'a> {
    type Output = Result<KvResponse<'a>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let State::New = *this.state {
            this.attempts.request.check()?;
            if spans_are_wanted() {
                let span = request_span(&this.request.request(), this.attempts);
                *this.spans = (!span.is_disabled()).then(|| Spans::new(span));
            }
        }
        let outcome = if this.spans.is_none() {
            ready!(this.poll_outcome(cx))
        } else {
            ready!(this.poll_traced(cx))
        };
        if outcome.is_err() {
            this.state.set(State::Done);
        }
        let finished = finish(this.request, this.attempts, &outcome);
        if let Some(spans) = this.spans {
            end_request(&spans.request, &finished);
        }
        Poll::Ready(outcome.map(|frame| this.attempts.response(frame)))
    }
}

impl Projection<'_, '_> {
    /// Polls within the span of the request, so that the events of the engine are in it.
    #[cold]
    fn poll_traced(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame>> {
        let span = self.spans.as_ref().map(|spans| spans.request.clone());
        let _entered = span.as_ref().map(Span::enter);
        self.poll_outcome(cx)
    }

    #[inline]
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame>> {
        loop {
            let attempts = &mut *self.attempts;
            let request = &mut *self.request;
            let step = match self.state.as_mut().project() {
                StateProjection::New => request.begin(&TokioWorld(attempts.core())),
                StateProjection::Sent {
                    ticket,
                    collection_id,
                } => {
                    let (response, at, connection) = ready!(ticket.poll_response(cx));
                    let result = attempts.end(response, at, connection, *collection_id);
                    end_span(self.spans, attempts, result.as_ref());
                    match result {
                        Ok(frame) => {
                            request.handle_success(&TokioWorld(attempts.core()));
                            return Poll::Ready(Ok(frame));
                        }
                        Err(tried) => handle_tried(tried, self.kind, request, attempts)?,
                    }
                }
                StateProjection::Waiting { waiting, sleep } => {
                    if attempts.poll_woken(waiting, cx).is_ready() {
                        request.handle_woken(&TokioWorld(attempts.core()))
                    } else {
                        ready!(sleep.as_mut().poll(cx));
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

    /// Does what the orchestrator asks for, until there is something to wait for.
    #[inline]
    fn handle_step(&mut self, mut step: Step, cx: &mut Context<'_>) -> Result<()> {
        loop {
            let request = self.request.request();
            let bucket = self.attempts.request.bucket;
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
                        sleep: Box::pin(tokio::time::sleep(delay)),
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
    #[inline]
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
                let KvRequest {
                    bucket, collection, ..
                } = self.attempts.request;
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
#[inline]
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
