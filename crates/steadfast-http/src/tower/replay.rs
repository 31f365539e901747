//! Bodies that can be sent again.
//!
//! A body is a stream; what was read from it is gone. So what the first attempt
//! sends is kept beside, up to a limit, and a later attempt sends that first and
//! then goes on reading. Nothing is read ahead: a body that waits for the answer
//! to begin still works, and a request that succeeds at once has not waited for
//! its own body to be collected.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// One attempt's view of a request's body.
pub struct ReplayBody<B> {
    /// None for a body without content, which needs no keeping.
    source: Option<Source<B>>,
}

struct Source<B> {
    shared: Arc<Mutex<Shared<B>>>,
    /// Which attempt reads through it. Only the newest may.
    turn: u32,
    /// How many of the kept frames it has sent.
    sent: usize,
}

struct Shared<B> {
    body: B,
    ended: bool,
    turn: u32,
    limit: usize,
    kept: Vec<Kept>,
    size: usize,
    /// Something was read that was not kept, or could not be read.
    lost: Option<Lost>,
}

/// Why a body cannot be sent from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    TooLarge,
    Failed,
}

enum Kept {
    Data(Bytes),
    Trailers(HeaderMap),
}

/// A request's body could not be read.
#[derive(Debug)]
pub enum ReplayError<E> {
    /// The body's own error.
    Body(E),
    /// A later attempt reads the body now. Only an attempt that nobody waits
    /// for any more sees this.
    Superseded,
}

/// Makes the body of each attempt.
pub(super) struct Replay<B> {
    shared: Option<Arc<Mutex<Shared<B>>>>,
}

impl<B: Body> Replay<B> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        let shared = (!body.is_end_stream()).then(|| {
            Arc::new(Mutex::new(Shared {
                body,
                ended: false,
                turn: 0,
                limit,
                kept: Vec::new(),
                size: 0,
                lost: None,
            }))
        });
        Self { shared }
    }

    /// The next attempt's body; none if it cannot be sent from the beginning.
    pub(super) fn next(&self) -> Option<ReplayBody<B>> {
        let Some(shared) = &self.shared else {
            return Some(ReplayBody { source: None });
        };
        let mut locked = lock(shared);
        if locked.lost.is_some() {
            return None;
        }
        locked.turn = locked.turn.wrapping_add(1);
        let source = Source {
            shared: Arc::clone(shared),
            turn: locked.turn,
            sent: 0,
        };
        Some(ReplayBody {
            source: Some(source),
        })
    }

    /// Why a further attempt could not have the whole body, if so.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.shared.as_ref().and_then(|shared| lock(shared).lost)
    }
}

impl<B: Body + Unpin> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = ReplayError<B::Error>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(source) = &mut self.get_mut().source else {
            return Poll::Ready(None);
        };
        let mut shared = lock(&source.shared);
        if shared.turn != source.turn {
            return Poll::Ready(Some(Err(ReplayError::Superseded)));
        }
        if let Some(kept) = shared.kept.get(source.sent) {
            source.sent += 1;
            return Poll::Ready(Some(Ok(kept.to_frame())));
        }
        let polled = shared.poll_more(cx);
        if let Poll::Ready(Some(Ok(_))) = &polled {
            source.sent = shared.kept.len();
        }
        polled.map_err(ReplayError::Body)
    }

    fn is_end_stream(&self) -> bool {
        self.source.as_ref().is_none_or(|source| {
            let shared = lock(&source.shared);
            let all_kept_sent = source.sent >= shared.kept.len();
            all_kept_sent && (shared.ended || shared.body.is_end_stream())
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(source) = &self.source else {
            return SizeHint::with_exact(0);
        };
        let shared = lock(&source.shared);
        let unsent = shared.kept.iter().skip(source.sent);
        let unsent: u64 = unsent.map(Kept::len).sum();
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

impl<B: Body + Unpin> Shared<B> {
    /// Reads on, and keeps what it reads while there is room.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame.map_data(|mut data| data.copy_to_bytes(data.remaining())),
            Some(Err(error)) => {
                self.lose(Lost::Failed);
                self.ended = true;
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                self.ended = true;
                return Poll::Ready(None);
            }
        };
        if let Some(kept) = Kept::of(&frame)
            && self.lost.is_none()
        {
            self.size = self
                .size
                .saturating_add(frame.data_ref().map_or(0, Bytes::len));
            match self.size > self.limit {
                true => self.lose(Lost::TooLarge),
                false => self.kept.push(kept),
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    /// What is there in part is of no use.
    fn lose(&mut self, lost: Lost) {
        self.lost = Some(lost);
        self.kept = Vec::new();
    }
}

impl Kept {
    /// An empty frame is not kept: it says nothing, and there may be any number
    /// of them.
    fn of(frame: &Frame<Bytes>) -> Option<Self> {
        let data = frame.data_ref().filter(|data| !data.is_empty());
        let data = data.cloned().map(Kept::Data);
        data.or_else(|| frame.trailers_ref().cloned().map(Kept::Trailers))
    }

    fn to_frame(&self) -> Frame<Bytes> {
        match self {
            Kept::Data(data) => Frame::data(data.clone()),
            Kept::Trailers(trailers) => Frame::trailers(trailers.clone()),
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
        }
    }
}

impl<E: StdError + 'static> StdError for ReplayError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            ReplayError::Body(error) => Some(error),
            ReplayError::Superseded => None,
        }
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").finish_non_exhaustive()
    }
}

/// A body that panicked is asked again by nobody but its own reader, so there is
/// no broken state to be kept from.
fn lock<B>(shared: &Mutex<Shared<B>>) -> MutexGuard<'_, Shared<B>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
