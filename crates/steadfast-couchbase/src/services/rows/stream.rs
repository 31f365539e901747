//! Rows, for the user.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use serde::de::DeserializeOwned;

use super::{Malformed, Members, Splitter};
use crate::error::{Error, ErrorKind, HttpContext, Place};
use crate::services::answer::{Judged, Refused};
use crate::services::http::{Interrupted, Reader, Unread};

/// The rows of an answer, and at their end what the service said about them.
///
/// The answer is read as rows are asked for, and never held as a whole. An error
/// that the service reports behind the first row comes out of [`next`](Self::next)
/// as an error, and so does an answer that breaks off: who has seen `None` has
/// seen all rows. The operation's timeout holds for the rows, too.
///
/// Dropping it before its end closes the connection that the rows come from.
pub struct Rows<M> {
    first: Option<Bytes>,
    source: Option<Box<Source<M>>>,
    meta: Option<M>,
}

/// [`Rows`] of one type, as a [`Stream`].
pub struct TypedRows<T, M> {
    rows: Rows<M>,
    row: PhantomData<fn() -> T>,
}

/// Where rows come from.
pub(crate) struct Source<M> {
    pub(crate) body: Reader,
    pub(crate) splitter: Splitter,
    pub(crate) status: u16,
    pub(crate) judge: fn(&Judged<'_>) -> Option<Refused>,
    pub(crate) meta: fn(&Members) -> M,
    pub(crate) operation: &'static str,
    pub(crate) idempotent: bool,
    pub(crate) place: Place,
    pub(crate) context: HttpContext,
}

/// What comes next.
pub(crate) enum Next<M> {
    Row(Bytes),
    End(M),
}

/// Why nothing more comes.
pub(crate) enum Trouble {
    Unread(Unread),
    Malformed(Malformed),
    Refused(Refused),
}

impl<M> Rows<M> {
    /// Rows of which the first has come already.
    pub(crate) fn begun(first: Bytes, source: Source<M>) -> Self {
        Self {
            first: Some(first),
            source: Some(Box::new(source)),
            meta: None,
        }
    }

    /// No rows.
    pub(crate) fn none(meta: M) -> Self {
        Self {
            first: None,
            source: None,
            meta: Some(meta),
        }
    }

    /// The next row; `None` when all rows have come and the service said that all
    /// went well. Dropping the future loses nothing.
    ///
    /// # Errors
    /// If the row is no `T`, in which case the next one can still be asked for. If
    /// the service reports an error, the answer breaks off or makes no sense, or
    /// the time is up; then nothing more comes, and there is no [`meta`](Self::meta).
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// All rows that are left.
    ///
    /// # Errors
    /// As [`next`](Self::next); what was read before the error is lost.
    pub async fn all<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Error> {
        let mut rows = Vec::new();
        while let Some(row) = self.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// What the service said about the rows. `None` until
    /// [`next`](Self::next) has said `None`, and after an error.
    pub fn meta(&self) -> Option<&M> {
        self.meta.as_ref()
    }

    /// The rows as a [`Stream`] of one type.
    pub fn typed<T: DeserializeOwned>(self) -> TypedRows<T, M> {
        TypedRows {
            rows: self,
            row: PhantomData,
        }
    }

    fn poll_next<T: DeserializeOwned>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<T>, Error>> {
        let Some(row) = ready!(self.poll_bytes(cx))? else {
            return Poll::Ready(Ok(None));
        };
        Poll::Ready(match serde_json::from_slice(&row) {
            Ok(row) => Ok(Some(row)),
            Err(error) => Err(self.misread(&error)),
        })
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Ok(Some(first)));
        }
        let Some(source) = &mut self.source else {
            return Poll::Ready(Ok(None));
        };
        Poll::Ready(match ready!(source.poll_next(cx)) {
            Ok(Next::Row(row)) => return Poll::Ready(Ok(Some(row))),
            Ok(Next::End(meta)) => {
                self.meta = Some(meta);
                self.source = None;
                Ok(None)
            }
            Err(trouble) => {
                let error = source.error(trouble);
                self.source = None;
                Err(error)
            }
        })
    }

    /// A row could not be read. The parser's own words may quote the row, and so
    /// are not repeated.
    fn misread(&mut self, error: &serde_json::Error) -> Error {
        let (line, column) = (error.line(), error.column());
        let what = if error.is_data() {
            "a row is not of the type that was asked for"
        } else {
            "a row is no JSON"
        };
        let note = format!("{what}, at line {line}, column {column} of the row");
        let described = match &self.source {
            Some(source) => source.describe(ErrorKind::DecodingFailure),
            None => Error::new(ErrorKind::DecodingFailure, "read row"),
        };
        if !error.is_data() {
            // Who writes such a row is not to be trusted with the others.
            self.source = None;
        }
        described.because(note)
    }
}

impl<T, M> TypedRows<T, M> {
    /// What the service said about the rows, once they have ended well.
    pub fn meta(&self) -> Option<&M> {
        self.rows.meta()
    }
}

impl<M> Source<M> {
    pub(crate) async fn next(&mut self) -> Result<Next<M>, Trouble> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// What the service has said so far, seen as the end.
    pub(crate) fn judged(&self) -> Option<Refused> {
        (self.judge)(&Judged {
            status: self.status,
            members: self.splitter.members(),
            text: None,
            idempotent: self.idempotent,
        })
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Next<M>, Trouble>> {
        loop {
            match self.splitter.next_row() {
                Ok(Some(row)) => return Poll::Ready(Ok(Next::Row(row))),
                Ok(None) => {}
                Err(malformed) => return Poll::Ready(Err(Trouble::Malformed(malformed))),
            }
            match ready!(self.body.poll_piece(cx)) {
                Ok(Some(piece)) => self.splitter.push(piece),
                Ok(None) => return Poll::Ready(self.end()),
                Err(unread) => return Poll::Ready(Err(Trouble::Unread(unread))),
            }
        }
    }

    fn end(&mut self) -> Result<Next<M>, Trouble> {
        // An error is told also by an answer without rows.
        if self.splitter.is_whole()
            && let Some(refused) = self.judged()
        {
            return Err(Trouble::Refused(refused));
        }
        match self.splitter.finish() {
            Ok(()) => Ok(Next::End((self.meta)(self.splitter.members()))),
            Err(malformed) => Err(Trouble::Malformed(malformed)),
        }
    }

    /// The error for what ended the rows after they had begun.
    fn error(&mut self, trouble: Trouble) -> Error {
        let timeout = match self.idempotent {
            true => ErrorKind::UnambiguousTimeout,
            false => ErrorKind::AmbiguousTimeout,
        };
        let (kind, note, conclusive) = match trouble {
            Trouble::Refused(refused) => {
                refused.tell(&mut self.context);
                (refused.kind, None, true)
            }
            Trouble::Malformed(malformed) => {
                let note = Some(malformed.to_string());
                (ErrorKind::DecodingFailure, note, false)
            }
            Trouble::Unread(unread) => {
                let kind = match &unread {
                    Unread::Interrupted(Interrupted::Deadline) => timeout,
                    Unread::Interrupted(Interrupted::Closed) | Unread::Cut(_) => {
                        ErrorKind::RequestCanceled
                    }
                };
                (kind, Some(format!("{unread}, after rows had come")), false)
            }
        };
        let error = self.describe(kind);
        let error = error.ambiguous(!conclusive && !self.idempotent);
        match note {
            Some(note) => error.because(note),
            None => error,
        }
    }

    fn describe(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.operation)
            .with_place(self.place.clone())
            .with_http(self.context.clone())
    }
}

impl<T: DeserializeOwned, M> Stream for TypedRows<T, M>
where
    M: Unpin,
{
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rows.poll_next(cx).map(Result::transpose)
    }
}

impl<M> fmt::Debug for Rows<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("ended", &self.source.is_none())
            .finish_non_exhaustive()
    }
}

impl<T, M> fmt::Debug for TypedRows<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}
