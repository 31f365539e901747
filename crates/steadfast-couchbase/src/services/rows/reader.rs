//! Reads rows from the body of a response.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use steadfast::report::Report;

use super::super::http::{
    HttpSender, ReadError, ResponseBody, ServiceError, ServiceResponse, mask_credentials,
};
use super::{Members, Splitter};
use crate::error::{Error, ErrorKind};

/// Reads rows from the body of a response.
pub(super) struct RowReader<M> {
    pub(super) body: ResponseBody,
    pub(super) splitter: Splitter,
    pub(super) status: u16,
    pub(super) service_error: fn(&ServiceResponse<'_>) -> Option<ServiceError>,
    pub(super) meta: fn(&Members) -> M,
    pub(super) had_rows: bool,
    pub(super) sender: HttpSender,
    /// Present if the request was retried.
    pub(super) report: Option<Report>,
}

impl<M> RowReader<M> {
    /// Polls for the next row; `None` after the last one of a successful response.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        loop {
            if let Some(row) = self.splitter.next_row()? {
                self.had_rows = true;
                return Poll::Ready(Ok(Some(row)));
            }
            match ready!(self.body.poll_piece(cx))? {
                Some(piece) => self.splitter.push(piece),
                None => break,
            }
        }
        // A response with an error may have no rows.
        if self.splitter.is_whole() {
            self.check()?;
        }
        self.splitter.finish()?;
        Poll::Ready(Ok(None))
    }

    /// Fails if the members that have come report an error.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        let error = (self.service_error)(&ServiceResponse {
            status: self.status,
            members: self.splitter.members(),
            text: None,
            has_rows: self.had_rows,
            idempotent: self.sender.idempotent,
            batch: self.sender.batch,
        });
        error.map_or(Ok(()), |error| Err(ReadError::Service(error)))
    }

    /// Returns the error for a response that failed after its first row. The rows
    /// show that the statement was executed.
    pub(super) fn failed(&mut self, error: ReadError) -> Error {
        let error = self.end(error).ambiguous(!self.sender.idempotent);
        match self.report.take() {
            Some(report) => error.with_report(report),
            None => error,
        }
    }

    fn end(&mut self, error: ReadError) -> Error {
        let kind = match &error {
            ReadError::Service(error) => error.kind,
            ReadError::Malformed(_) => ErrorKind::DecodingFailure,
            ReadError::Deadline if self.sender.idempotent => ErrorKind::UnambiguousTimeout,
            ReadError::Deadline => ErrorKind::AmbiguousTimeout,
            ReadError::ClientClosed | ReadError::ConnectionLost(_) => ErrorKind::RequestCanceled,
        };
        let note = match error {
            ReadError::Service(error) => {
                self.sender.context.code = error.code;
                let masked = |text: String| mask_credentials(&text, &self.sender.client);
                self.sender.context.message = error.message.map(masked);
                return self.sender.error(kind);
            }
            ReadError::Malformed(note) => note,
            error => format!("{error}, after rows had come"),
        };
        self.sender.error(kind).because(note)
    }
}
