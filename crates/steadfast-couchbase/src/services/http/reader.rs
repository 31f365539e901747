//! The body of an answer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};

use super::watch::{Interrupted, Watch};

/// The body of an answer, until it ends, the time is up or the client is closed.
/// Dropping it before its end closes the connection.
pub(crate) struct Reader {
    body: Incoming,
    watch: Watch,
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The wait was ended from this side.
    Interrupted(Interrupted),
    /// The connection ended before the body, or what came is no HTTP.
    Cut(hyper::Error),
}

/// A body has more bytes than it may have.
#[derive(Debug)]
pub(crate) struct TooLong;

impl Reader {
    pub(super) fn new(body: Incoming, watch: Watch) -> Self {
        Self { body, watch }
    }

    /// The next piece; `None` at the end.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Unread>> {
        // First, because a peer that never stops talking would never be late.
        if let Poll::Ready(interrupted) = self.watch.poll(cx) {
            return Poll::Ready(Err(Unread::Interrupted(interrupted)));
        }
        loop {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            return Poll::Ready(match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if !bytes.is_empty() => Ok(Some(bytes)),
                    // Trailers say nothing that is of interest.
                    Ok(_) | Err(_) => continue,
                },
                Some(Err(error)) => Err(Unread::Cut(error)),
                None => Ok(None),
            });
        }
    }

    /// The same, to be awaited. Dropping the future loses nothing.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, Unread> {
        std::future::poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// The whole body, if it has no more than so many bytes. Dropping the future
    /// loses what was read.
    pub(crate) async fn whole(&mut self, most: usize) -> Result<Result<Bytes, TooLong>, Unread> {
        let mut read = BytesMut::new();
        while let Some(piece) = self.piece().await? {
            if read.len() + piece.len() > most {
                return Ok(Err(TooLong));
            }
            read.extend_from_slice(&piece);
        }
        Ok(Ok(read.freeze()))
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(Interrupted::Deadline) => f.write_str("the time was up"),
            Self::Interrupted(Interrupted::Closed) => f.write_str("the client was closed"),
            Self::Cut(error) => write!(f, "the answer broke off: {}", chain(error)),
        }
    }
}

/// An error with its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
