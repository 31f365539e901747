//! The future of a key-value request.
//!
//! Like [`drive`](crate::drive::drive), but a future with a name: an async function would
//! need a box for each attempt, because its type has no name, and would move the request
//! several times. The driver decides, and the connection ends an attempt at the deadline.
//!
//! ```text
//!   New ──▶ Ready ──────────────▶ Sent ──▶ Ended
//!     │     ▲  │                  ▲  │
//!     │     │  └─▶ LookingUp ─────┘  │ no success
//!     ▼     │            │           │
//!    Waiting ◀───────────┴───────────┘
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tracing::Span;

use super::attempt::{Begun, KvAttempts, Success};
use super::connection::{Connection, Ticket};
use super::request::KvRequest;
use super::response::KvResponse;
use crate::drive::{
    AttemptError, ClientDriver, Driven, WakeUp, end_wait, finish, give_up, handle_error,
};
use crate::error::{Error, ErrorKind, Result};
use crate::observe::{attempt_span, end_attempt, end_request, request_span, spans_are_wanted};
use crate::topology::Waiting;
use crate::world::BoxSleep;

/// The future of a key-value request.
///
/// Cancel-safe: dropping it abandons the current attempt. An attempt that was not sent
/// is never sent, and a late response is ignored.
pub(crate) struct KvFuture<'a> {
    attempts: KvAttempts<'a>,
    driver: ClientDriver<'a>,
    state: KvState<'a>,
    timer: Option<BoxSleep>,
    /// The error that the request ends with if no retry follows.
    kind: ErrorKind,
    /// Set if a subscriber wants spans.
    spans: Option<Box<Spans>>,
}

enum KvState<'a> {
    New,
    /// An attempt follows.
    Ready,
    /// The attempt looks up the id of its collection.
    LookingUp(LookingUp<'a>),
    /// The connection has accepted the frame.
    Sent(Ticket),
    /// No attempt is under way. What ends the wait early is there from the first poll on.
    Waiting(Option<(WakeUp, Waiting<'a>)>),
    Ended,
}

type LookingUp<'a> = Pin<Box<dyn Future<Output = LookedUp> + Send + 'a>>;
type LookedUp = (Result<u32, AttemptError>, Arc<Connection>);

/// The spans of a request and of its current attempt.
struct Spans {
    request: Span,
    attempt: Span,
}

impl<'a> KvFuture<'a> {
    // Inlined always, so that it is made in place.
    #[inline(always)]
    pub(crate) fn new(request: KvRequest<'a>) -> Self {
        Self {
            driver: request.driver(),
            attempts: KvAttempts::new(request),
            state: KvState::New,
            timer: None,
            kind: ErrorKind::UnambiguousTimeout,
            spans: None,
        }
    }

    /// Adds what the request knows to the error of a response that means success and cannot
    /// be read.
    #[cold]
    pub(crate) fn add_context(&mut self, error: Error) -> Error {
        let report = self.driver.take_report();
        self.attempts.add_context(error).with_report(report)
    }

    /// Starts the request.
    fn begin(&mut self) -> Result<()> {
        self.attempts.request.check()?;
        let at_once = self.driver.begin();
        self.go_on(at_once);
        Ok(())
    }

    /// Continues with an attempt, or with what comes before it.
    fn go_on(&mut self, at_once: bool) {
        self.state = match at_once {
            true => KvState::Ready,
            false => KvState::Waiting(None),
        };
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Success>> {
        loop {
            match &mut self.state {
                KvState::New => self.begin()?,
                KvState::Ready => {
                    self.start_attempt_span();
                    let deadline = self.driver.request().deadline();
                    let begun = self.attempts.begin(deadline, cx.waker());
                    self.handle_begun(begun)?;
                }
                KvState::LookingUp(looking_up) => {
                    let (id, connection) = ready!(looking_up.as_mut().poll(cx));
                    let deadline = self.driver.request().deadline();
                    let waker = cx.waker();
                    let begun = (self.attempts).continue_with(id, connection, deadline, waker);
                    self.handle_begun(begun)?;
                }
                KvState::Sent(ticket) => {
                    let received = ready!(ticket.poll_response(cx));
                    let deadline = self.driver.request().deadline();
                    match self.attempts.end(received, deadline) {
                        Ok(success) => {
                            self.end_attempt_span(Ok(&success));
                            self.driver.succeed();
                            return Poll::Ready(Ok(success));
                        }
                        Err(error) => self.handle_error(error)?,
                    }
                }
                KvState::Waiting(_) => match ready!(self.poll_next(cx)) {
                    true => self.state = KvState::Ready,
                    false => {
                        let error = give_up(self.kind, &mut self.driver, &mut self.attempts);
                        return Poll::Ready(Err(error));
                    }
                },
                KvState::Ended => unreachable!("a future is not polled after its end"),
            }
            // The connection has the waker already.
            if let KvState::Sent(_) = self.state {
                return Poll::Pending;
            }
        }
    }

    /// Waits for the response of an attempt or for an id, or handles the attempt's failure.
    #[inline]
    fn handle_begun(&mut self, begun: Result<Begun, AttemptError>) -> Result<()> {
        match begun {
            Ok(Begun::Sent(ticket)) => self.state = KvState::Sent(ticket),
            Ok(Begun::NeedsCollectionId(connection)) => {
                let request = &self.attempts.request;
                let (bucket, collection) = (request.bucket(), &request.collection.entry);
                let deadline = self.driver.request().deadline();
                self.state = KvState::LookingUp(Box::pin(async move {
                    let id = collection.look_up(bucket, &connection, deadline).await;
                    (id, connection)
                }));
            }
            Err(error) => self.handle_error(error)?,
        }
        Ok(())
    }

    #[cold]
    fn handle_error(&mut self, error: AttemptError) -> Result<()> {
        self.end_attempt_span(Err(&error));
        let (driver, attempts) = (&mut self.driver, &mut self.attempts);
        let at_once = handle_error(error, &mut self.kind, driver, attempts)?;
        self.go_on(at_once);
        Ok(())
    }

    /// Waits for the next attempt. Returns whether there is one.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            let timer = Pin::new(&mut self.timer);
            if let Poll::Ready(next) = self.driver.poll_next(timer, cx) {
                return Poll::Ready(next);
            }
            let KvState::Waiting(waiting) = &mut self.state else {
                unreachable!("a request without an attempt waits");
            };
            let wake_up = WakeUp::of(&self.driver);
            let waiting = match waiting {
                _ if wake_up == WakeUp::Never => return Poll::Pending,
                Some((same, waiting)) if *same == wake_up => waiting,
                other => &mut other.insert((wake_up, self.attempts.wait(wake_up))).1,
            };
            ready!(self.attempts.poll_woken(waiting, cx));
            end_wait(&mut self.driver, Pin::new(&mut self.timer), &mut self.kind);
        }
    }

    /// Polls within the span of the request, so that the events of the engine are in it.
    #[cold]
    fn poll_traced(&mut self, cx: &mut Context<'_>) -> Poll<Result<Success>> {
        let spans = self.spans.get_or_insert_with(|| {
            let request = request_span(&self.driver.request(), &self.attempts);
            let attempt = Span::none();
            Box::new(Spans { request, attempt })
        });
        let span = spans.request.clone();
        let _entered = span.enter();
        self.poll_outcome(cx)
    }

    fn start_attempt_span(&mut self) {
        if let Some(spans) = &mut self.spans {
            spans.attempt = attempt_span(self.driver.request().attempts());
        }
    }

    fn end_attempt_span(&self, result: Result<&Success, &AttemptError>) {
        if let Some(spans) = &self.spans {
            let dispatch = self.attempts.dispatch(result.ok());
            end_attempt(&spans.attempt, &dispatch, result.err());
        }
    }
}

impl<'a> Future for KvFuture<'a> {
    type Output = Result<KvResponse<'a>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let is_traced = match this.state {
            KvState::New => spans_are_wanted(),
            _ => this.spans.is_some(),
        };
        let outcome = match is_traced {
            false => ready!(this.poll_outcome(cx)),
            true => ready!(this.poll_traced(cx)),
        };
        this.state = KvState::Ended;
        let finished = finish(&this.driver, &mut this.attempts, &outcome);
        if let Some(spans) = &this.spans {
            end_request(&spans.request, &finished);
        }
        Poll::Ready(outcome.map(|success| this.attempts.response(success.frame)))
    }
}
