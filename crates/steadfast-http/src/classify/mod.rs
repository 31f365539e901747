//! What became of an attempt, in the engine's words.
//!
//! HTTP tells success from failure by a number, and a library by an error type
//! of its own. Both are read here, once, for all integrations: a rule that the
//! tower layer knew and the reqwest middleware did not would be a bug.

#[cfg(feature = "grpc")]
mod grpc;
mod status;
pub(crate) mod transport;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use steadfast::Failure;

/// How an attempt ended: with an answer, or without one.
#[derive(Clone, Copy, Debug)]
pub struct HttpOutcome<'a> {
    end: End<'a>,
    now: SystemTime,
}

#[derive(Clone, Copy, Debug)]
enum End<'a> {
    Answer(StatusCode, &'a HeaderMap),
    Error(&'a (dyn StdError + 'static)),
}

impl<'a> HttpOutcome<'a> {
    /// An answer came. `now` is the wall-clock time, for hints that are dates.
    pub const fn answer(status: StatusCode, headers: &'a HeaderMap, now: SystemTime) -> Self {
        let end = End::Answer(status, headers);
        Self { end, now }
    }

    /// No answer came.
    pub const fn error(error: &'a (dyn StdError + 'static), now: SystemTime) -> Self {
        let end = End::Error(error);
        Self { end, now }
    }

    /// The answer's status, if there was one.
    pub const fn status(&self) -> Option<StatusCode> {
        match self.end {
            End::Answer(status, _) => Some(status),
            End::Error(_) => None,
        }
    }

    /// A header of the answer, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        match self.end {
            End::Answer(_, headers) => headers.get(name)?.to_str().ok(),
            End::Error(_) => None,
        }
    }

    /// An error of this type, if there was no answer: the error itself, or one
    /// that stands behind it.
    pub fn caused_by<E: StdError + 'static>(&self) -> Option<&'a E> {
        match self.end {
            End::Answer(..) => None,
            End::Error(error) => transport::causes(error).find_map(|cause| cause.downcast_ref()),
        }
    }
}

/// What is made of an outcome.
#[derive(Clone, Debug)]
pub enum Reading {
    /// The attempt did what it was to do.
    Succeeded,
    /// It did not.
    Failed(Failure),
}

impl From<Failure> for Reading {
    fn from(failure: Failure) -> Self {
        Reading::Failed(failure)
    }
}

type Special = dyn Fn(&HttpOutcome<'_>) -> Option<Reading> + Send + Sync;

/// Reads outcomes as RFC 9110 and the Smithy guidance have them, and as it is
/// told besides.
///
/// | status | reason | sent again if |
/// |---|---|---|
/// | 408, 504 | `TIMEOUT` | idempotent |
/// | 425 | `HTTP_TOO_EARLY` | always: nothing was done |
/// | 429 | `THROTTLED` | always: nothing was done |
/// | 500, 502, 503 | `HTTP_SERVER_ERROR`, `HTTP_BAD_GATEWAY`, `HTTP_UNAVAILABLE` | idempotent |
/// | others from 400 on | `HTTP_REJECTED` | never |
///
/// A 500, 502, 503 or 504 leaves open whether the request took effect. Such an
/// attempt counts as in flight: a request that is not idempotent is not sent
/// again, and its end is ambiguous.
///
/// ```
/// use http::StatusCode;
/// use steadfast::{Failure, reason};
/// use steadfast_http::HttpClassifier;
///
/// // As usual, and also: this proxy sheds load with 503 before it forwards
/// // anything, and marks those answers.
/// let classifier = HttpClassifier::default().also(|outcome| {
///     let shed = outcome.status() == Some(StatusCode::SERVICE_UNAVAILABLE)
///         && outcome.header("x-shed") == Some("1");
///     shed.then(|| Failure::responded(&reason::THROTTLED).throttling().into())
/// });
/// # let _ = classifier;
/// ```
#[derive(Clone, Default)]
pub struct HttpClassifier {
    specials: Vec<Arc<Special>>,
    #[cfg(feature = "grpc")]
    grpc: bool,
}

impl HttpClassifier {
    /// Reads gRPC's status where the head of an answer has one, and everything
    /// else as usual.
    ///
    /// | status | sent again if |
    /// |---|---|
    /// | `UNAVAILABLE`, `DEADLINE_EXCEEDED` | idempotent |
    /// | `RESOURCE_EXHAUSTED`, where the server says when | always: nothing was done |
    /// | others | never |
    ///
    /// A status that comes after the head, in the trailers, is not seen: a server
    /// that has begun to answer is not asked again. gRPC's calls are `POST`s, so
    /// say of which it is true that they are idempotent with
    /// `HttpRetry::also_idempotent`.
    #[cfg(feature = "grpc")]
    pub fn grpc() -> Self {
        Self {
            grpc: true,
            ..Self::default()
        }
    }

    /// Asks `special` first, and this one where `special` has nothing to say.
    /// The delay that the peer asks for is added to a failure that has none.
    #[must_use]
    pub fn also<F>(mut self, special: F) -> Self
    where
        F: Fn(&HttpOutcome<'_>) -> Option<Reading> + Send + Sync + 'static,
    {
        self.specials.push(Arc::new(special));
        self
    }

    /// Whether it was told nothing besides.
    #[cfg(any(feature = "tower", feature = "reqwest"))]
    pub(crate) fn is_usual(&self) -> bool {
        #[cfg(feature = "grpc")]
        if self.grpc {
            return false;
        }
        self.specials.is_empty()
    }

    /// What became of the attempt.
    pub fn read(&self, outcome: &HttpOutcome<'_>) -> Reading {
        // The newest first: what was said last narrows what was said before.
        let special = self.specials.iter().rev().find_map(|read| read(outcome));
        match (special, outcome.end) {
            (Some(Reading::Failed(failure)), End::Answer(_, headers)) => {
                status::with_hints(failure, "answered", headers, outcome.now).into()
            }
            (Some(reading), _) => reading,
            (None, End::Answer(status, headers)) => self.usual(status, headers, outcome.now),
            (None, End::Error(error)) => transport::read(error, outcome.now).into(),
        }
    }

    fn usual(&self, status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Reading {
        #[cfg(feature = "grpc")]
        if self.grpc
            && let Some(reading) = grpc::read(headers, now)
        {
            return reading;
        }
        status::read(status, headers, now)
    }
}

impl fmt::Debug for HttpClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClassifier")
            .field("specials", &self.specials.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
