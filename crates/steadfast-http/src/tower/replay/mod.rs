//! Bodies that can be sent again.
//!
//! A body is a stream that can be read once. So an attempt keeps what it sends, up
//! to a limit. A later attempt sends the kept part first and then reads on. A body
//! that is in memory anyway is kept whole, without a limit.
//! Nothing is read ahead: a body that waits for the response to begin still works,
//! and a first attempt does not wait until its body is collected.

use std::any::TypeId;
use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::http_retry::{BoxSleep, LostBody};

/// One attempt's view of a request's body.
pub struct ReplayBody<B> {
    /// None for an empty body.
    source: Option<Source<B>>,
}

struct Source<B> {
    shared: Arc<SharedBody<B>>,
    /// The attempt that this belongs to. Only the newest may read.
    turn: u32,
    /// The number of kept frames that were sent.
    sent: usize,
}

/// What a request keeps of its body.
struct SharedBody<B>(Mutex<Shared<B>>);

struct Shared<B> {
    body: B,
    /// The length of the body, if it is known.
    exact: Option<u64>,
    ended: bool,
    turn: u32,
    /// Whether the attempt has failed and may not read on.
    paused: bool,
    /// Ends a paused upload of the last attempt.
    pause_end: Option<BoxSleep>,
    /// The attempt that waits for more of the body.
    waiting: Option<Waker>,
    limit: usize,
    /// The frames that were sent.
    kept: Vec<Kept>,
    size: usize,
    lost: Option<LostBody>,
}

enum Kept {
    Data(Bytes),
    /// In a box, because they are rare and larger.
    Trailers(Box<HeaderMap>),
}

/// A request's body could not be read.
#[derive(Debug)]
pub enum ReplayError<E> {
    /// The body's own error.
    Body(E),
    /// The attempt may not read on: another one follows, or the request was dropped.
    Superseded,
    /// The attempt failed before its body was sent, and no other follows. Only the connection
    /// sees this, after the response was returned.
    Abandoned,
}

/// Makes the body of each attempt.
pub(super) struct Replay<B> {
    /// None if the body is empty.
    shared: Option<Arc<SharedBody<B>>>,
}

impl<B: Body> Replay<B> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        let shared = (!body.is_end_stream()).then(|| {
            let shared = Shared {
                exact: body.size_hint().exact(),
                body,
                ended: false,
                turn: 0,
                paused: false,
                pause_end: None,
                waiting: None,
                limit,
                kept: Vec::new(),
                size: 0,
                lost: None,
            };
            Arc::new(SharedBody(Mutex::new(shared)))
        });
        Self { shared }
    }

    /// Returns the body of the first attempt. Must be called at most once, before `next_body`.
    pub(super) fn first_body(&self) -> ReplayBody<B> {
        self.body_of_turn(0)
    }

    /// Returns the body of the next attempt; none if the beginning is lost.
    pub(super) fn next_body(&self) -> Option<ReplayBody<B>> {
        let Some(shared) = &self.shared else {
            return Some(self.body_of_turn(0));
        };
        let mut shared = shared.lock();
        if shared.lost.is_some() {
            return None;
        }
        shared.next_turn();
        Some(self.body_of_turn(shared.turn))
    }

    fn body_of_turn(&self, turn: u32) -> ReplayBody<B> {
        let source = self.shared.as_ref().map(|shared| Source {
            shared: Arc::clone(shared),
            turn,
            sent: 0,
        });
        ReplayBody { source }
    }
}

impl<B> Replay<B> {
    /// Stops the upload of an attempt that failed, until it is known whether there is a
    /// next one. A server may respond before it has read the body.
    pub(super) fn pause(&self) {
        if let Some(shared) = &self.shared {
            shared.lock().paused = true;
        }
    }

    /// Lets a paused upload go on.
    pub(super) fn resume(&self) {
        if let Some(shared) = &self.shared {
            let mut shared = shared.lock();
            shared.paused = false;
            shared.wake();
        }
    }

    /// Ends a paused upload after a sleep, unless it is complete. Its connection closes then.
    pub(super) fn end_pause(&self, sleep: impl FnOnce() -> BoxSleep) {
        if let Some(shared) = &self.shared {
            let mut shared = shared.lock();
            if shared.paused {
                shared.pause_end = Some(sleep());
                shared.wake();
            }
        }
    }

    /// Ends the upload of an attempt that will be followed by another. Its connection
    /// closes.
    pub(super) fn abandon(&self) {
        if let Some(shared) = &self.shared {
            shared.lock().next_turn();
        }
    }

    /// Ends a paused upload of a request that is dropped, unless a sleep ends it. Its connection
    /// would wait forever.
    pub(super) fn abandon_if_paused(&self) {
        if let Some(shared) = &self.shared {
            let mut shared = shared.lock();
            if shared.paused && shared.pause_end.is_none() {
                shared.next_turn();
            }
        }
    }

    /// Returns why a further attempt cannot have the whole body, if so.
    pub(super) fn lost(&self) -> Option<LostBody> {
        self.shared.as_ref().and_then(|shared| shared.lock().lost)
    }
}

impl<B: Body + Unpin> Body for ReplayBody<B>
where
    B::Data: 'static,
{
    type Data = Bytes;
    type Error = ReplayError<B::Error>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(source) = &mut self.get_mut().source else {
            return Poll::Ready(None);
        };
        let mut shared = source.shared.lock();
        if shared.turn != source.turn {
            return Poll::Ready(Some(Err(ReplayError::Superseded)));
        }
        if shared.paused {
            if let Some(end) = &mut shared.pause_end {
                ready!(end.as_mut().poll(cx));
                shared.next_turn();
                return Poll::Ready(Some(Err(ReplayError::Abandoned)));
            }
            shared.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if let Some(kept) = shared.kept.get(source.sent) {
            source.sent += 1;
            return Poll::Ready(Some(Ok(kept.to_frame())));
        }
        let polled = shared.poll_more(cx);
        match &polled {
            Poll::Ready(Some(Ok(_))) => source.sent = shared.kept.len(),
            Poll::Ready(Some(Err(_)) | None) => {}
            Poll::Pending => shared.waiting = Some(cx.waker().clone()),
        }
        polled.map_err(ReplayError::Body)
    }

    fn is_end_stream(&self) -> bool {
        self.source.as_ref().is_none_or(|source| {
            let shared = source.shared.lock();
            let all_kept_sent = source.sent >= shared.kept.len();
            all_kept_sent && (shared.ended || shared.body.is_end_stream())
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(source) = &self.source else {
            return SizeHint::with_exact(0);
        };
        let shared = source.shared.lock();
        let unsent: u64 = shared.kept.iter().skip(source.sent).map(Kept::len).sum();
        let more = match shared.ended {
            true => SizeHint::with_exact(0),
            false => shared.body.size_hint(),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(more.lower().saturating_add(unsent));
        if let Some(upper) = more.upper().and_then(|upper| upper.checked_add(unsent)) {
            hint.set_upper(upper);
        }
        hint
    }
}

impl<B> SharedBody<B> {
    /// Ignores poison: only the reader of a body that panicked would read it again.
    fn lock(&self) -> MutexGuard<'_, Shared<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Shared<B> {
    /// Gives the body to the next attempt.
    fn next_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        self.paused = false;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }
}

impl<B: Body + Unpin> Shared<B>
where
    B::Data: 'static,
{
    /// Reads on, and keeps what it reads up to the limit.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame.map_data(|mut data| data.copy_to_bytes(data.remaining())),
            Some(Err(error)) => {
                self.lose(LostBody::Failed);
                self.ended = true;
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                self.ended = true;
                return Poll::Ready(None);
            }
        };
        if let Some(kept) = Kept::from_frame(&frame)
            && self.lost.is_none()
        {
            let length = frame.data_ref().map_or(0, Bytes::len);
            // A body in one piece was in memory before. To keep it is cheap.
            let in_memory = self.size == 0
                && self.exact == Some(length as u64)
                && TypeId::of::<B::Data>() == TypeId::of::<Bytes>();
            self.size = self.size.saturating_add(length);
            match self.size > self.limit && !in_memory {
                true => self.lose(LostBody::TooLarge { limit: self.limit }),
                false => self.kept.push(kept),
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    /// Drops the kept part, which is useless without the rest.
    fn lose(&mut self, lost: LostBody) {
        self.lost = Some(lost);
        self.kept = Vec::new();
    }
}

impl Kept {
    /// Copies a frame, except an empty one: there may be any number of those.
    fn from_frame(frame: &Frame<Bytes>) -> Option<Self> {
        let data = frame.data_ref().filter(|data| !data.is_empty());
        let data = data.cloned().map(Kept::Data);
        let trailers = || frame.trailers_ref().cloned().map(Box::new);
        data.or_else(|| trailers().map(Kept::Trailers))
    }

    fn to_frame(&self) -> Frame<Bytes> {
        match self {
            Kept::Data(data) => Frame::data(data.clone()),
            Kept::Trailers(trailers) => Frame::trailers(HeaderMap::clone(trailers)),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Kept::Data(data) => data.len() as u64,
            Kept::Trailers(_) => 0,
        }
    }
}

impl<E: fmt::Display> fmt::Display for ReplayError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Body(error) => write!(f, "the request's body failed: {error}"),
            ReplayError::Superseded => f.write_str("a later attempt sends the body now"),
            ReplayError::Abandoned => f.write_str("the rest of the body is not needed"),
        }
    }
}

impl<E: StdError + 'static> StdError for ReplayError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            ReplayError::Body(error) => Some(error),
            ReplayError::Superseded | ReplayError::Abandoned => None,
        }
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
