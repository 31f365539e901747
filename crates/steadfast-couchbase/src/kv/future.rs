//! The future of a key-value request.
//!
//! Most requests succeed at their first attempt. They need no orchestrator: no state of a
//! retry is made, moved or dropped. If the first attempt cannot be sent at once, or does
//! not succeed, the request continues as [`Orchestrated`].
//!
//! ```text
//!   Direct ── success at the first attempt ──▶ still Direct; another poll panics
//!     │  └─── an invalid request ──▶ an error, and still Direct
//!     │ anything else
//!     ▼
//!   Orchestrated ── success ──▶ still Orchestrated; another poll panics
//!     │
//!     └─ error ──▶ Ended
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use steadfast::RetryStrategy;
use steadfast::strategy::AnyStrategy;
use steadfast_wire::{Feature, Status};

use super::attempt::server_duration;
use super::compression::CompressedValue;
use super::connection::{Admission, Received, Ticket};
use super::orchestrated::Orchestrated;
use super::request::{KvRequest, KvResponse};
use crate::error::{Error, KvContext, Result};
use crate::observe::{Finished, spans_are_wanted};
use crate::topology::NodeId;
use crate::world::now;

/// The future of a key-value request.
///
/// Cancel-safe: dropping it abandons the current attempt. An attempt that was not sent
/// is never sent, and a late response is ignored.
pub(crate) enum KvFuture<'a> {
    /// Without an orchestrator: new, or in its first attempt.
    Direct {
        request: KvRequest<'a>,
        first: Option<FirstAttempt>,
    },
    Orchestrated(Orchestrated<'a>),
    Ended,
}

/// A first attempt that a connection has accepted.
pub(crate) struct FirstAttempt {
    pub(super) ticket: Ticket,
    /// `None` for the client's.
    strategy: Option<Arc<dyn RetryStrategy>>,
    pub(super) started: Instant,
    pub(super) node: NodeId,
    pub(super) vbucket: u16,
    pub(super) collection_id: u32,
    /// For the attempts that may follow.
    pub(super) compressed: CompressedValue,
}

impl<'a> KvFuture<'a> {
    // Inlined always, so that it is made in place.
    #[inline(always)]
    pub(crate) fn new(request: KvRequest<'a>) -> Self {
        let first = None;
        Self::Direct { request, first }
    }

    /// Continues with the orchestrator: from the start, or after a first attempt that did
    /// not succeed.
    #[cold]
    fn orchestrate(&mut self, begun: Begun, cx: &mut Context<'_>) -> Poll<Result<KvResponse<'a>>> {
        let Self::Direct { request, first } = std::mem::replace(self, Self::Ended) else {
            unreachable!("a request is orchestrated once");
        };
        *self = Self::Orchestrated(match (begun, first) {
            (Begun::Not(unsent), None) => Orchestrated::new(request, unsent),
            (Begun::Ended(received), Some(first)) => {
                Orchestrated::after_first(request, first, received)
            }
            (Begun::Not(_), Some(_)) | (Begun::Ended(_), None) => {
                unreachable!("a response belongs to a first attempt, which ends with it")
            }
        });
        self.poll_orchestrated(cx)
    }

    fn poll_orchestrated(&mut self, cx: &mut Context<'_>) -> Poll<Result<KvResponse<'a>>> {
        let Self::Orchestrated(request) = self else {
            unreachable!("a future is not polled after its end");
        };
        let outcome = ready!(request.poll(cx));
        if outcome.is_err() {
            *self = Self::Ended;
        }
        Poll::Ready(outcome)
    }

    /// Adds what the request knows to the error of a response that means success and cannot
    /// be read.
    #[cold]
    pub(crate) fn add_context(&mut self, error: Error) -> Error {
        match self {
            Self::Direct { request, first } => {
                let context = KvContext {
                    status: Some(Status::Success),
                    opaque: first.as_ref().map(|first| first.ticket.opaque()),
                    ..KvContext::default()
                };
                error.with_target(request.target()).with_kv(context)
            }
            Self::Orchestrated(request) => request.add_context(error),
            Self::Ended => error,
        }
    }
}

/// The first attempt of a request that needs the orchestrator.
enum Begun {
    /// It was not sent.
    Not(Unsent),
    /// It ended without success.
    Ended(Received),
}

/// A first attempt that was not sent.
pub(super) struct Unsent {
    /// The value may be compressed already.
    pub(super) compressed: CompressedValue,
    /// Set if the strategy admitted it. The strategy is not asked again, because a brake
    /// counts each question.
    pub(super) admitted: Option<Admitted>,
}

/// A first attempt that the strategy admitted without a token.
pub(super) struct Admitted {
    /// `None` for the client's.
    pub(super) strategy: Option<Arc<dyn RetryStrategy>>,
    pub(super) started: Instant,
}

impl<'a> Future for KvFuture<'a> {
    type Output = Result<KvResponse<'a>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Self::Direct { request, first } = this else {
            return this.poll_orchestrated(cx);
        };
        let Some(first) = first else {
            request.check()?;
            let mut unsent = Unsent {
                compressed: CompressedValue::new(request.compressible),
                admitted: None,
            };
            *first = FirstAttempt::send(request, &mut unsent, cx.waker());
            return match first {
                // The connection has the waker.
                Some(_) => Poll::Pending,
                None => this.orchestrate(Begun::Not(unsent), cx),
            };
        };
        let Received {
            response,
            at,
            connection,
        } = ready!(first.ticket.poll_response(cx));
        let frame = match response {
            Ok(frame) if frame.is_success() => frame,
            response => {
                let received = Received {
                    response,
                    at,
                    connection,
                };
                return this.orchestrate(Begun::Ended(received), cx);
            }
        };
        // The ticket is used up, and rejects another poll.
        let response = request.response(frame, first.vbucket);
        first.strategy(&*request).record_first_success();
        let finished = Finished {
            started: first.started,
            ended: at,
            retries: 0,
            error: None,
        };
        request.record_end(&finished, || {
            let opaque = Some(first.ticket.opaque());
            let server_duration = server_duration(&response.frame);
            request.slow(&finished, opaque, Some(&connection), server_duration)
        });
        Poll::Ready(Ok(response))
    }
}

impl FirstAttempt {
    /// Sends the first attempt, if that can be done at once. Otherwise nothing was sent.
    #[inline]
    fn send(request: &KvRequest<'_>, unsent: &mut Unsent, waker: &Waker) -> Option<Self> {
        let bucket = request.bucket();
        if spans_are_wanted() || bucket.core.is_closed() {
            return None;
        }
        let timeout = request.timeout();
        if timeout.is_zero() {
            return None;
        }
        let collection_id = request.collection_id()?;
        let routes = bucket.routes.load();
        let routes = routes.as_ref()?;
        let vbucket = request.vbucket_in(routes);
        let (node, connection) = routes.connected(vbucket, request.copy)?;
        if node.breaker.is_some() || request.lacking_feature(connection, collection_id).is_some() {
            return None;
        }
        let strategy = request.special_strategy(Some(node));
        let admitted = strategy_of(&strategy, request).admits_without_token();
        if !admitted {
            return None;
        }
        // Before the compression, which takes time.
        let started = now();
        let deadline = started.checked_add(timeout);
        let compressed = &mut unsent.compressed;
        if connection.has(Feature::Snappy) {
            compressed.compress(&request.value, bucket.core.options.compression);
        }
        let target = (vbucket, collection_id);
        let opcode = request.operation.opcode();
        let (admission, waker) = (Admission::InOrder, Some(waker.clone()));
        let accepted = connection.accept(opcode, deadline, admission, waker, |opaque, out| {
            request.encode(
                connection,
                target,
                compressed.bytes(),
                deadline,
                opaque,
                out,
            )
        });
        let Ok(opaque) = accepted else {
            // The connection is full or closed, or the request does not fit the protocol.
            unsent.admitted = Some(Admitted { strategy, started });
            return None;
        };
        Some(Self {
            ticket: Ticket::new(connection.clone(), opaque),
            strategy,
            started,
            node: node.id,
            vbucket,
            collection_id,
            compressed: std::mem::take(compressed),
        })
    }

    #[inline]
    fn strategy<'r>(&'r self, request: &KvRequest<'r>) -> &'r dyn RetryStrategy {
        strategy_of(&self.strategy, request)
    }

    /// Takes the strategy, for the orchestrator.
    pub(super) fn take_strategy<'a>(&mut self, request: &KvRequest<'a>) -> AnyStrategy<'a> {
        request.any_strategy(self.strategy.take())
    }
}

#[inline]
fn strategy_of<'r>(
    special: &'r Option<Arc<dyn RetryStrategy>>,
    request: &KvRequest<'r>,
) -> &'r dyn RetryStrategy {
    match special {
        Some(strategy) => &**strategy,
        None => &*request.bucket().core.strategy,
    }
}
