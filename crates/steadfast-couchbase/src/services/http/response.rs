//! Responses: reading the body, and what a status means by itself.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use steadfast::{Failure, Reason};
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::cluster::Handle;
use crate::error::ErrorKind;
use crate::reason::UNKNOWN;
use crate::server_text::{bounded, one_line};
use crate::services::proof;
use crate::services::rows::Members;

/// A response whose body is still to be read.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) body: ResponseBody,
}

/// The body of a response, until it ends, the deadline passes or the client is
/// closed. Dropping it before its end closes the connection.
pub(crate) struct ResponseBody {
    body: Incoming,
    limit: WaitLimit,
}

/// The reason why a response cannot be read any further.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The deadline passed.
    Deadline,
    /// The client was closed.
    ClientClosed,
    /// The connection ended first, or what came is not HTTP.
    ConnectionLost(String),
    /// The response is invalid, or too long.
    Malformed(String),
    /// The service reports an error.
    Service(ServiceError),
}

/// A response as the services judge it: all of it except the rows.
pub(crate) struct ServiceResponse<'a> {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The members of the JSON object around the rows. Empty if it is not an object.
    pub(crate) members: &'a Members,
    /// The whole body, if it was read as a whole because of an error status.
    pub(crate) text: Option<&'a str>,
    /// Whether rows came before the error, or a part of one.
    pub(crate) has_rows: bool,
    /// Whether the operation may be executed twice without harm.
    pub(crate) idempotent: bool,
    /// Whether the request may have several statements, executed one by one.
    pub(crate) batch: bool,
}

/// An error that a service reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceError {
    /// The service's own number of the error.
    pub(crate) code: Option<u64>,
    /// The service's own message.
    pub(crate) message: Option<String>,
    /// The kind of error that the user sees.
    pub(crate) kind: ErrorKind,
    /// The reason for a retry, if RFC 0049's "Response Code Retry List" has the
    /// error, or the service says that a retry helps. Other errors are not retried.
    pub(crate) retry: Option<&'static Reason>,
    /// Whether the response proves that the request was not applied
    /// ([`proof`](crate::services::proof)).
    pub(crate) not_applied: bool,
}

impl HttpResponse {
    pub(crate) fn is_success(&self) -> bool {
        is_success(self.status)
    }
}

impl ResponseBody {
    pub(super) fn new(body: Incoming, limit: WaitLimit) -> Self {
        Self { body, limit }
    }

    /// Polls for the next piece; `None` at the end.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        // First, because a peer that never stops sending would never be late.
        if let Poll::Ready(error) = self.limit.poll(cx) {
            return Poll::Ready(Err(error));
        }
        loop {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            return Poll::Ready(match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if !bytes.is_empty() => Ok(Some(bytes)),
                    // Trailers are of no interest.
                    Ok(_) | Err(_) => continue,
                },
                Some(Err(error)) => {
                    let note = format!("the response broke off: {}", chain(&error));
                    Err(ReadError::ConnectionLost(note))
                }
                None => Ok(None),
            });
        }
    }

    /// Reads the whole body, up to a limit in bytes.
    ///
    /// Not cancel-safe: dropping the future loses what was read.
    pub(crate) async fn whole(&mut self, most: usize) -> Result<Bytes, ReadError> {
        let mut read = BytesMut::new();
        while let Some(piece) = poll_fn(|cx| self.poll_piece(cx)).await? {
            if read.len() + piece.len() > most {
                let note = format!("the response has more than {most} bytes");
                return Err(ReadError::Malformed(note));
            }
            read.extend_from_slice(&piece);
        }
        Ok(read.freeze())
    }
}

/// Ends a wait at the deadline, or when the client is closed. Keeps the client
/// open during the wait.
pub(super) struct WaitLimit {
    deadline: Option<Pin<Box<Sleep>>>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    client: Arc<Handle>,
    /// The endpoint that is waited for.
    authority: Arc<str>,
}

impl WaitLimit {
    pub(super) fn new(
        client: &Arc<Handle>,
        deadline: Option<Instant>,
        authority: Arc<str>,
    ) -> Self {
        Self {
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into()))),
            closed: Box::pin(client.core.closed.clone().cancelled_owned()),
            client: client.clone(),
            authority,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ReadError> {
        if self.closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(ReadError::ClientClosed);
        }
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().poll(cx).map(|()| {
                self.client.core.services.endpoints.replace(&self.authority);
                ReadError::Deadline
            }),
            None => Poll::Pending,
        }
    }

    /// Awaits a future until the limit. An output that comes together with the
    /// limit counts.
    ///
    /// Cancel-safe if the future is.
    pub(super) async fn apply_to<F: Future + Unpin>(
        &mut self,
        mut future: F,
    ) -> Result<F::Output, ReadError> {
        poll_fn(|cx| match Pin::new(&mut future).poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll(cx).map(Err),
        })
        .await
    }
}

impl ServiceResponse<'_> {
    pub(crate) fn is_success(&self) -> bool {
        is_success(self.status)
    }

    /// Returns the body as text; empty if it was not read as a whole.
    pub(crate) fn text(&self) -> &str {
        self.text.unwrap_or_default()
    }

    /// Returns the error that the status alone means, with the body as message.
    pub(crate) fn by_status(&self) -> ServiceError {
        let kind = match self.status {
            401 | 403 => ErrorKind::AuthenticationFailure,
            429 => named_limit(self.text()).unwrap_or(ErrorKind::TemporaryFailure),
            500..=599 => ErrorKind::InternalServerFailure,
            _ => ErrorKind::Couchbase,
        };
        ServiceError {
            not_applied: proof::by_status(self),
            ..ServiceError::new(kind, one_line(self.text()))
        }
    }
}

impl ServiceError {
    /// Makes an error without a code that is not retried and proves nothing.
    pub(crate) fn new(kind: ErrorKind, message: Option<String>) -> Self {
        Self {
            code: None,
            message,
            kind,
            retry: None,
            not_applied: false,
        }
    }

    /// Returns the failure of an attempt that got this error with this HTTP status;
    /// `None` if the response is conclusive and final. If the request is not
    /// idempotent, a response without proof leaves its outcome unknown (D47).
    pub(crate) fn failure(&self, status: u16, idempotent: bool) -> Option<Failure> {
        let conclusive = idempotent || self.not_applied;
        let failure = match (self.retry, conclusive) {
            (None, true) => return None,
            (None, false) => Failure::inconclusive(&UNKNOWN),
            (Some(reason), true) => Failure::responded(reason),
            (Some(reason), false) => Failure::inconclusive(reason),
        };
        let note = match self.code {
            Some(code) => format!("answered {status}, code {code}"),
            None => format!("answered {status}"),
        };
        let failure = failure.with_note(note);
        Some(if status == 429 {
            failure.throttling()
        } else {
            failure
        })
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline => f.write_str("the deadline passed"),
            Self::ClientClosed => f.write_str("the client was closed"),
            Self::ConnectionLost(note) | Self::Malformed(note) => f.write_str(note),
            Self::Service(error) => f.write_str(error.message.as_deref().unwrap_or_default()),
        }
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// Returns the error for the limit that a text names (RFC 0058,
/// "RateLimitingFailure"). A limit on stored things is a quota; a limit on
/// requests or bytes over time is a rate.
pub(crate) fn named_limit(text: &str) -> Option<ErrorKind> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["num_fts_indexes", "Maximum number of collections"]) {
        return Some(ErrorKind::QuotaLimited);
    }
    let rates = [
        "num_concurrent_requests",
        "num_queries_per_min",
        "ingress",
        "egress",
    ];
    has(&rates).then_some(ErrorKind::RateLimited)
}

/// Returns an error with its causes, on one line.
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
    bounded(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_recognized_by_their_names() {
        let (rate, quota) = (Some(ErrorKind::RateLimited), Some(ErrorKind::QuotaLimited));
        for (text, kind) in [
            ("num_concurrent_requests, value >= limit", rate),
            ("num_queries_per_min, value >= limit", rate),
            ("ingress_mib_per_min >= limit", rate),
            ("Limit(s) exceeded [egress]", rate),
            ("num_fts_indexes (active + pending) >= limit", quota),
            (
                "Maximum number of collections has been reached for scope \"s\"",
                quota,
            ),
            ("too many requests", None),
        ] {
            assert_eq!(named_limit(text), kind, "{text}");
        }
    }
}
