//! Rows of a response, handed out as they arrive.
//!
//! Query, analytics, search and views answer alike: a JSON object with one long
//! array of rows, and information about the whole around it. The status line is
//! sent before a row can fail, so errors stand after the rows. Only the end of the
//! response proves success.
//!
//! [`Splitter`] cuts the response into rows and members, and never holds more than
//! one row. [`Rows`] hands the rows out.
//!
//! A retry is possible until the first row is handed out. So an attempt reads up to
//! the first row, or to the end if there is none, before the operation counts as
//! succeeded.

mod reader;
mod splitter;
mod value;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use reader::RowReader;
use serde::de::DeserializeOwned;
#[cfg(fuzzing)]
pub use splitter::fuzzing::rows as fuzz_rows;
pub(crate) use splitter::{Members, SizeLimits, Splitter};
use steadfast::report::Report;

use super::http::{
    self, HttpOperation, HttpRequest, HttpResponse, HttpSender, ReadError, ServiceError,
    ServiceResponse,
};
use crate::error::{Error, ErrorKind};

/// The most bytes that are read of a response with an error status.
const MAX_ERROR: usize = 1024 * 1024;

/// The rows of a response and, after the last one, the service's information about
/// them.
///
/// The response is read as rows are asked for, and never held as a whole. An error
/// that the service reports after the first row comes out of [`next`](Self::next),
/// and so does a response that breaks off: `None` means that all rows have come.
/// The operation's timeout includes reading the rows.
///
/// Dropping it before the end closes the connection that the rows come from.
pub struct Rows<M> {
    first: Option<Bytes>,
    reader: Option<Box<RowReader<M>>>,
    meta: Option<M>,
}

/// A kind of rows.
pub trait RowKind {
    /// The service's information about the rows.
    type Meta: Send;
}

/// The part of an operation with rows that differs between services.
pub(crate) trait RowService: RowKind + Send + Sync {
    /// The name of the member that has the rows.
    const ROWS: &'static str;

    /// Completes the request, and tells the sender what errors say of it.
    fn prepare(&mut self, sender: &mut HttpSender);

    /// Returns the request of the next attempt. `remaining` is the time that it has.
    fn request(&mut self, remaining: Option<Duration>) -> HttpRequest;

    /// Returns the error that a response reports, if it does.
    fn service_error(response: &ServiceResponse<'_>) -> Option<ServiceError>;

    /// Reads the information about the rows.
    fn meta(members: &Members) -> Self::Meta;

    /// Notes that an attempt got a response without an error.
    fn succeeded(&mut self, _: &Members) {}

    /// Notes that an attempt got a response with an error.
    fn rejected(&mut self, _: &ServiceError) {}
}

/// A request whose response has rows; await it to send it.
///
/// Cancel-safe: dropping the future abandons the attempt in progress.
#[must_use = "nothing is sent until it is awaited"]
pub struct RowRequest<S> {
    pub(super) service: S,
    pub(super) sender: HttpSender,
    limits: SizeLimits,
}

impl<S> RowRequest<S> {
    pub(super) fn new(service: S, sender: HttpSender) -> Self {
        let limits = SizeLimits::default();
        Self {
            service,
            sender,
            limits,
        }
    }

    crate::request_options::request_option_methods!(|it| it.sender.options);

    /// Limits the size of a row, which is 64 MiB otherwise. A longer row is an
    /// error.
    pub fn max_row_size(mut self, bytes: usize) -> Self {
        self.limits.row = bytes;
        self
    }
}

impl<S: RowService + 'static> IntoFuture for RowRequest<S> {
    type Output = Result<Rows<<S as RowKind>::Meta>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self {
            mut service,
            mut sender,
            limits,
        } = self;
        service.prepare(&mut sender);
        let operation = RowOperation { service, limits };
        Box::pin(async move { http::run(operation, &mut sender).await })
    }
}

struct RowOperation<S> {
    service: S,
    limits: SizeLimits,
}

impl<S: RowService> HttpOperation for RowOperation<S> {
    type Output = Rows<S::Meta>;

    fn request(&mut self, remaining: Option<Duration>) -> HttpRequest {
        self.service.request(remaining)
    }

    /// Cancel-safe: dropping the future closes the connection.
    async fn read(
        &mut self,
        response: HttpResponse,
        sender: &HttpSender,
    ) -> Result<Rows<S::Meta>, ReadError> {
        let read = if response.is_success() {
            self.read_first(response, sender).await
        } else {
            Err(self.read_error(response, sender).await)
        };
        if let Err(ReadError::Service(error)) = &read {
            self.service.rejected(error);
        }
        read
    }

    fn keep_report(rows: &mut Rows<S::Meta>, report: Report) {
        if let Some(reader) = &mut rows.reader {
            reader.report = Some(report);
        }
    }
}

impl<S: RowService> RowOperation<S> {
    /// Reads a successful response up to its first row.
    ///
    /// Cancel-safe: dropping the future closes the connection.
    async fn read_first(
        &mut self,
        response: HttpResponse,
        sender: &HttpSender,
    ) -> Result<Rows<S::Meta>, ReadError> {
        let mut reader = RowReader {
            body: response.body,
            splitter: Splitter::new(S::ROWS, self.limits),
            status: response.status,
            service_error: S::service_error,
            meta: S::meta,
            had_rows: false,
            sender: sender.clone(),
            report: None,
        };
        let first = poll_fn(|cx| reader.poll_next(cx)).await?;
        // Errors may also stand before the rows.
        if first.is_some() {
            reader.check()?;
        }
        let members = reader.splitter.members();
        self.service.succeeded(members);
        Ok(match first {
            None => Rows {
                first,
                meta: Some(S::meta(members)),
                reader: None,
            },
            Some(_) => Rows {
                first,
                meta: None,
                reader: Some(Box::new(reader)),
            },
        })
    }

    /// Reads a response with an error status as a whole.
    ///
    /// Cancel-safe: dropping the future closes the connection.
    async fn read_error(&mut self, mut response: HttpResponse, sender: &HttpSender) -> ReadError {
        let body = match response.body.whole(MAX_ERROR).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        let mut splitter = Splitter::new(S::ROWS, self.limits);
        splitter.push(body.clone());
        let has_rows = skip_rows(&mut splitter);
        let response = ServiceResponse {
            status: response.status,
            members: splitter.members(),
            text: Some(&String::from_utf8_lossy(&body)),
            has_rows,
            idempotent: sender.idempotent,
            batch: sender.batch,
        };
        ReadError::Service(S::service_error(&response).unwrap_or_else(|| response.by_status()))
    }
}

/// Reads past all rows that have come. Returns whether there were any, or a part of one.
pub(super) fn skip_rows(splitter: &mut Splitter) -> bool {
    let mut any = false;
    while let Ok(Some(_)) = splitter.next_row() {
        any = true;
    }
    any || splitter.is_in_row()
}

impl<M> Rows<M> {
    /// Returns the next row; `None` when all rows have come and the service
    /// reported success.
    ///
    /// Cancel-safe: dropping the future loses no row.
    ///
    /// # Errors
    /// If the row is no `T`; the next row can still be read then. If the service
    /// reports an error, the response breaks off or is invalid, or the deadline
    /// passes; nothing more comes then, and there is no [`meta`](Self::meta).
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let Some(row) = poll_fn(|cx| self.poll_bytes(cx)).await? else {
            return Ok(None);
        };
        let row = serde_json::from_slice(&row).map_err(|error| self.undecodable(&error))?;
        Ok(Some(row))
    }

    /// Returns all remaining rows.
    ///
    /// Not cancel-safe: dropping the future loses the rows read so far.
    ///
    /// # Errors
    /// As [`next`](Self::next); the rows read before the error are lost.
    pub async fn all<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Error> {
        let mut rows = Vec::new();
        while let Some(row) = self.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// Returns the service's information about the rows: `None` until
    /// [`next`](Self::next) has returned `None`, and after an error.
    pub fn meta(&self) -> Option<&M> {
        self.meta.as_ref()
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Ok(Some(first)));
        }
        let Some(reader) = &mut self.reader else {
            return Poll::Ready(Ok(None));
        };
        let end = match ready!(reader.poll_next(cx)) {
            Ok(Some(row)) => return Poll::Ready(Ok(Some(row))),
            Ok(None) => {
                self.meta = Some((reader.meta)(reader.splitter.members()));
                Ok(None)
            }
            Err(error) => Err(reader.failed(error)),
        };
        self.reader = None;
        Poll::Ready(end)
    }

    /// Returns the error for a row that cannot be decoded. The parser's own message
    /// may quote the row, and so is not repeated.
    fn undecodable(&mut self, error: &serde_json::Error) -> Error {
        let (line, column) = (error.line(), error.column());
        let problem = if error.is_data() {
            "a row is not of the type that was asked for"
        } else {
            "a row is no JSON"
        };
        let note = format!("{problem}, at line {line}, column {column} of the row");
        let described = match &self.reader {
            Some(reader) => {
                let error = reader.sender.error(ErrorKind::DecodingFailure);
                error.ambiguous(!reader.sender.idempotent)
            }
            None => Error::new(ErrorKind::DecodingFailure, "read row"),
        };
        if !error.is_data() {
            // The other rows of such a response cannot be trusted.
            self.reader = None;
        }
        described.because(note)
    }
}

impl<M> fmt::Debug for Rows<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("ended", &self.reader.is_none())
            .finish_non_exhaustive()
    }
}
