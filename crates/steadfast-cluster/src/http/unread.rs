//! Responses that clients have not read yet, over all connections.
//!
//! A large response stays in memory while its client reads slowly. Without a bound, a few
//! hundred clients that read nothing would take all of it. Beyond the bound, the response
//! that has waited longest for its client is dropped, and its connection with it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::message::{BrokenOff, ResponseBody};

/// The most bytes that all responses may have together. One response may have more.
const MAX_UNREAD: usize = 256 * 1024 * 1024;
/// The most bytes that the transport gets at a time. It keeps them until they are sent.
const PIECE_BYTES: usize = 64 * 1024;

/// The responses that are under way.
#[derive(Debug, Default)]
pub(crate) struct UnreadResponses(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// By the time of their last progress, the longest ago first.
    responses: BTreeMap<u64, (usize, CancellationToken)>,
    bytes: usize,
    next: u64,
}

/// A response that is under way. Dropping it makes room for others.
#[derive(Debug)]
pub(super) struct Unread {
    all: Arc<UnreadResponses>,
    at: u64,
    displaced: CancellationToken,
}

impl Unread {
    /// Counts a response of this size. The token is cancelled if it must make room.
    pub(super) fn enter(
        all: &Arc<UnreadResponses>,
        bytes: usize,
        displaced: CancellationToken,
    ) -> Self {
        let mut unread = Self {
            all: Arc::clone(all),
            at: 0,
            displaced,
        };
        unread.progress(bytes);
        unread
    }

    /// The client has taken something, and this number of bytes remains.
    fn progress(&mut self, bytes: usize) {
        let mut waiting = self.all.0.lock();
        if let Some((before, _)) = waiting.responses.remove(&self.at) {
            waiting.bytes -= before;
        }
        if self.displaced.is_cancelled() {
            return;
        }
        waiting.next += 1;
        self.at = waiting.next;
        waiting.bytes += bytes;
        let displaced = self.displaced.clone();
        waiting.responses.insert(self.at, (bytes, displaced));
        while waiting.bytes > MAX_UNREAD
            && waiting.responses.len() > 1
            && let Some((_, (bytes, oldest))) = waiting.responses.pop_first()
        {
            waiting.bytes -= bytes;
            oldest.cancel();
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let mut waiting = self.all.0.lock();
        if let Some((bytes, _)) = waiting.responses.remove(&self.at) {
            waiting.bytes -= bytes;
        }
    }
}

/// The body of a response, in pieces that are small enough to hold back the transport.
pub(super) struct BodyInPieces {
    body: ResponseBody,
    /// What is left of a large piece.
    rest: Bytes,
    /// What the rest of the body holds in memory, about.
    held: usize,
    unread: Unread,
}

impl BodyInPieces {
    pub(super) fn new(body: ResponseBody, held: usize, unread: Unread) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held,
            unread,
        }
    }
}

impl Body for BodyInPieces {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        let source = match &mut this.body {
            ResponseBody::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            ResponseBody::Whole(bytes) => bytes,
            ResponseBody::Stream(pieces) => {
                if this.rest.is_empty() {
                    match ready!(Pin::new(pieces).poll_next(context)) {
                        Some(Ok(piece)) => this.rest = piece,
                        Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                        None => return Poll::Ready(None),
                    }
                }
                &mut this.rest
            }
        };
        let piece = source.split_to(source.len().min(PIECE_BYTES));
        let left = source.len();
        this.unread.progress(this.held.max(left));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.body, ResponseBody::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            ResponseBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use http_body_util::BodyExt;

    const MIB: usize = 1024 * 1024;

    fn enter(all: &Arc<UnreadResponses>, bytes: usize) -> Unread {
        Unread::enter(all, bytes, CancellationToken::new())
    }

    #[test]
    fn beyond_the_bound_the_response_that_waited_longest_makes_room() {
        let all: Arc<UnreadResponses> = Arc::default();
        let mut first = enter(&all, 100 * MIB);
        let second = enter(&all, 100 * MIB);
        first.progress(90 * MIB);
        let third = enter(&all, 80 * MIB);
        let displaced = [&first, &second, &third].map(|one| one.displaced.is_cancelled());
        assert_eq!(displaced, [false, true, false]);
        drop((second, third));
        // One that is too large by itself displaces all others, and stays.
        let large = enter(&all, 2 * MAX_UNREAD);
        assert!(first.displaced.is_cancelled() && !large.displaced.is_cancelled());
        first.progress(1);
        drop((first, large));
        let waiting = all.0.lock();
        assert!(waiting.responses.is_empty() && waiting.bytes == 0);
    }

    #[tokio::test]
    async fn large_bodies_come_in_small_pieces_and_whole() {
        let all: Arc<UnreadResponses> = Arc::default();
        let large = Bytes::from(vec![7; 3 * PIECE_BYTES + 1]);
        let pieces = [
            Ok(large.clone()),
            Ok(Bytes::new()),
            Ok(Bytes::from_static(b"x")),
        ];
        let stream = ResponseBody::Stream(Box::pin(stream::iter(pieces)));
        for (body, length) in [
            (ResponseBody::Whole(large.clone()), large.len()),
            (stream, large.len() + 1),
            (ResponseBody::Whole(Bytes::new()), 0),
        ] {
            let mut body = BodyInPieces::new(body, 0, enter(&all, 0));
            let (mut received, mut largest) = (0, 0);
            while let Some(frame) = body.frame().await {
                let piece = frame.unwrap().into_data().unwrap();
                received += piece.len();
                largest = largest.max(piece.len());
            }
            assert_eq!(received, length);
            assert!(largest <= PIECE_BYTES);
        }
    }
}
