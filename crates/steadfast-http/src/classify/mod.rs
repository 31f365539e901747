//! Classifies statuses and transport errors as failures.
//!
//! All integrations share these rules, so that they cannot differ.

#[cfg(feature = "grpc")]
mod grpc;
pub(crate) mod transport;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use steadfast::failure::{FaultSide, Safety, Stage};
use steadfast::reason::{THROTTLED, TIMEOUT, VALUE_NOT_ACCEPTED};
use steadfast::{Failure, Reason};

use crate::hint::{self, Hint};
use crate::reason::{BAD_GATEWAY, REJECTED, SERVER_ERROR, TOO_EARLY, UNAVAILABLE};

/// The end of an attempt: a response or an error.
///
/// Unless [`without_redirects`](Self::without_redirects) says otherwise, the client
/// may have followed redirects. Then no outcome proves that the request was not
/// applied: the server that redirected it may have done so.
#[derive(Clone, Copy, Debug)]
pub struct HttpOutcome<'a> {
    end: End<'a>,
    now: SystemTime,
    redirects: Redirects,
}

#[derive(Clone, Copy, Debug)]
enum End<'a> {
    Response(StatusCode, &'a HeaderMap),
    Error(&'a (dyn StdError + 'static)),
}

impl<'a> HttpOutcome<'a> {
    /// A response. `now` is the wall-clock time, for hints that are dates.
    pub const fn response(status: StatusCode, headers: &'a HeaderMap, now: SystemTime) -> Self {
        Self::new(End::Response(status, headers), now)
    }

    /// An error instead of a response.
    pub const fn error(error: &'a (dyn StdError + 'static), now: SystemTime) -> Self {
        Self::new(End::Error(error), now)
    }

    const fn new(end: End<'a>, now: SystemTime) -> Self {
        let redirects = Redirects::Unknown;
        Self {
            end,
            now,
            redirects,
        }
    }

    /// States that the client followed no redirect in this attempt.
    #[must_use]
    pub const fn without_redirects(self) -> Self {
        self.with_redirects(Redirects::None)
    }

    pub(crate) const fn with_redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    /// Returns the status, if there is a response.
    pub const fn status(&self) -> Option<StatusCode> {
        match self.end {
            End::Response(status, _) => Some(status),
            End::Error(_) => None,
        }
    }

    /// Returns a header of the response, if it is present and is text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        match self.end {
            End::Response(_, headers) => headers.get(name)?.to_str().ok(),
            End::Error(_) => None,
        }
    }

    /// Returns the first error of this type in the chain of sources, if there is
    /// no response.
    pub fn caused_by<E: StdError + 'static>(&self) -> Option<&'a E> {
        match self.end {
            End::Response(..) => None,
            End::Error(error) => transport::causes(error).find_map(|cause| cause.downcast_ref()),
        }
    }
}

type Rule = dyn Fn(&HttpOutcome<'_>) -> Option<Result<(), Failure>> + Send + Sync;

/// Classifies outcomes by RFC 9110 and the Smithy guidance, and by rules of your
/// own.
///
/// | status | reason | retried if |
/// |---|---|---|
/// | 408, 504 | `TIMEOUT` | idempotent |
/// | 425 | `HTTP_TOO_EARLY` | always: it was not applied |
/// | 429 | `THROTTLED` | always: it was not applied |
/// | 502, 503 | `HTTP_BAD_GATEWAY`, `HTTP_UNAVAILABLE` | idempotent |
/// | other 4xx, 501, 505 | `HTTP_REJECTED` | never |
/// | 500 and others from 506 on | `HTTP_SERVER_ERROR` | idempotent |
///
/// A 5xx other than 501 and 505 does not prove whether the request was applied
/// (`Stage::Inconclusive`). A request that is not idempotent is then not sent
/// again, and its outcome is ambiguous.
///
/// ```
/// use http::StatusCode;
/// use steadfast::{Failure, reason};
/// use steadfast_http::HttpClassifier;
///
/// // This proxy sheds load with 503 before it forwards anything, and marks
/// // those responses.
/// let classifier = HttpClassifier::default().also(|outcome| {
///     let shed = outcome.status() == Some(StatusCode::SERVICE_UNAVAILABLE)
///         && outcome.header("x-shed") == Some("1");
///     shed.then(|| Err(Failure::responded(&reason::THROTTLED).throttling()))
/// });
/// # let _ = classifier;
/// ```
#[derive(Clone, Default)]
pub struct HttpClassifier {
    rules: Vec<Arc<Rule>>,
    #[cfg(feature = "grpc")]
    grpc: bool,
}

impl HttpClassifier {
    /// Classifies responses by their gRPC status, if their head has one.
    ///
    /// | status | retried if |
    /// |---|---|
    /// | `UNAVAILABLE`, `DEADLINE_EXCEEDED` | idempotent |
    /// | `RESOURCE_EXHAUSTED` with a delay | always: it was not applied |
    /// | others | never |
    ///
    /// A status in the trailers is not seen. gRPC calls are `POST`s: state which of
    /// them are idempotent with `HttpRetry::also_idempotent`.
    #[cfg(feature = "grpc")]
    pub fn grpc() -> Self {
        Self {
            grpc: true,
            ..Self::default()
        }
    }

    /// Adds a rule that is asked before the others. It returns none for outcomes
    /// that are not its concern. A delay in the headers is added to its failure.
    #[must_use]
    pub fn also<F>(mut self, rule: F) -> Self
    where
        F: Fn(&HttpOutcome<'_>) -> Option<Result<(), Failure>> + Send + Sync + 'static,
    {
        self.rules.push(Arc::new(rule));
        self
    }

    /// Retries responses for which `predicate` returns true, such as a 202 that means "not
    /// yet". The request was carried out, so it is sent again only if it is idempotent.
    /// If there is no better response in the end, the last one is the result.
    ///
    /// ```
    /// use steadfast_http::HttpClassifier;
    ///
    /// let classifier = HttpClassifier::default()
    ///     .retry_response(|response| response.header("x-state") == Some("pending"));
    /// # let _ = classifier;
    /// ```
    #[must_use]
    pub fn retry_response<F>(self, predicate: F) -> Self
    where
        F: Fn(&HttpOutcome<'_>) -> bool + Send + Sync + 'static,
    {
        self.also(move |outcome| {
            let status = outcome.status()?;
            let note = || format!("HTTP {}, not accepted", status.as_u16());
            let failure = || Failure::responded(&VALUE_NOT_ACCEPTED).with_note(note());
            predicate(outcome).then(|| Err(failure()))
        })
    }

    /// Returns whether a response is a success that needs no further look.
    #[cfg(any(feature = "tower", feature = "reqwest-any"))]
    pub(crate) fn accepts(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        #[cfg(feature = "grpc")]
        if self.grpc && grpc::has_status(headers) {
            return false;
        }
        #[cfg(not(feature = "grpc"))]
        let _ = headers;
        self.rules.is_empty() && status.as_u16() < 400
    }

    /// Classifies an outcome.
    ///
    /// # Errors
    /// If the attempt did not succeed.
    pub fn classify(&self, outcome: &HttpOutcome<'_>) -> Result<(), Failure> {
        let by_rule = self.rules.iter().rev().find_map(|rule| rule(outcome));
        let classified = match (by_rule, outcome.end) {
            (Some(Err(failure)), End::Response(_, headers)) => Err(with_hint(
                failure,
                "answered",
                hint::parse(headers, outcome.now),
            )),
            (Some(result), _) => result,
            (None, End::Response(status, headers)) => self.by_status(status, headers, outcome.now),
            (None, End::Error(error)) => Err(transport::classify(error, outcome.now)),
        };
        classified.map_err(|failure| outcome.redirects.weaken(failure))
    }

    /// Returns whether the client speaks a protocol without redirects.
    #[cfg(any(feature = "tower", feature = "reqwest-any"))]
    pub(crate) fn has_no_redirects(&self) -> bool {
        #[cfg(feature = "grpc")]
        return self.grpc;
        #[cfg(not(feature = "grpc"))]
        false
    }

    fn by_status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<(), Failure> {
        #[cfg(feature = "grpc")]
        if self.grpc
            && let Some(result) = grpc::classify(headers, now)
        {
            return result;
        }
        by_status(status, headers, now)
    }
}

impl fmt::Debug for HttpClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClassifier")
            .field("rules", &self.rules.len())
            .finish()
    }
}

/// Forbids further attempts, because the body cannot be sent again.
#[cfg(any(feature = "tower", feature = "reqwest-any", feature = "aws"))]
pub(crate) fn cannot_resend(mut failure: Failure, why: impl fmt::Display) -> Failure {
    // A doubt about what a response proves is kept: "no" below is about the retry.
    let doubted = failure.stage == Stage::Responded && failure.safety == Safety::Maybe;
    if doubted && failure.reason.allows_non_idempotent_retry() {
        failure.stage = Stage::Inconclusive;
    }
    let before = failure.note().unwrap_or("failed");
    let note = format!("{before}; {why}, so it cannot be sent again");
    failure.with_safety(Safety::No).with_note(note)
}

/// Classifies a status, with the delay that the headers ask for.
fn by_status(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Result<(), Failure> {
    let (failure, note) = match status.as_u16() {
        ..400 => return Ok(()),
        408 => (Failure::responded(&TIMEOUT).timed_out(), "HTTP 408"),
        425 => (Failure::responded(&TOO_EARLY), "HTTP 425"),
        429 => {
            let throttled = Failure::responded(&THROTTLED).throttling();
            (throttled.with_fault(FaultSide::Client), "HTTP 429")
        }
        500 => (server_error(&SERVER_ERROR), "HTTP 500"),
        502 => (server_error(&BAD_GATEWAY), "HTTP 502"),
        503 => (server_error(&UNAVAILABLE), "HTTP 503"),
        504 => (server_error(&TIMEOUT).timed_out(), "HTTP 504"),
        // The server does not know the method or the version.
        ..=499 | 501 | 505 => return Err(rejected(status)),
        // Without a meaning of its own (D49). A status above 599 is invalid and counts
        // as a 5xx too (RFC 9110, section 15).
        _ => {
            let note = format!("HTTP {}", status.as_u16());
            (server_error(&SERVER_ERROR).with_note(note), "")
        }
    };
    Err(with_hint(failure, note, hint::parse(headers, now)))
}

/// Adds a hint and a note to a failure, and keeps those that it has already. An
/// unreadable hint is noted.
fn with_hint(mut failure: Failure, note: &'static str, hint: Hint) -> Failure {
    let remark = match hint {
        Hint::None => None,
        Hint::Wait(delay) => {
            failure.hint.get_or_insert(delay);
            None
        }
        Hint::Never(header) => {
            failure.safety = Safety::No;
            Some(("the peer forbids a retry", header))
        }
        Hint::Unreadable(header) => Some(("no readable delay", header)),
    };
    match (remark, failure.note()) {
        (None, Some(_)) => failure,
        (None, None) => failure.with_note(note),
        (Some((remark, header)), own) => {
            let noted = format!("{}, {remark} in {header}", own.unwrap_or(note));
            failure.with_note(noted)
        }
    }
}

/// A response that does not prove whether the request was applied.
fn server_error(reason: &'static Reason) -> Failure {
    Failure::inconclusive(reason).with_fault(FaultSide::Server)
}

/// A permanent failure: by definition the request was not applied.
fn rejected(status: StatusCode) -> Failure {
    let fault = match status.as_u16() {
        ..=499 => FaultSide::Client,
        _ => FaultSide::Server,
    };
    Failure::responded(&REJECTED)
        .with_safety(Safety::No)
        .with_fault(fault)
        .with_note(format!("HTTP {}", status.as_u16()))
}

/// The knowledge about redirects that the client followed by itself, between a request and
/// its outcome.
///
/// A `POST` that got a 303 was applied. It must not be sent again, whatever happens to the
/// `GET` that follows. So after a redirect no failure proves that the request was not applied
/// (decision D48, docs/decisions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// There were none.
    None,
    /// The client may have followed some.
    Unknown,
    /// There was at least one.
    #[cfg(feature = "reqwest-any")]
    Followed,
}

impl Redirects {
    /// Removes the proof from a failure that may not be about the request itself, but
    /// about a later one.
    fn weaken(self, mut failure: Failure) -> Failure {
        let after = match self {
            Redirects::None => return failure,
            Redirects::Unknown if failure.stage.may_have_been_applied() => return failure,
            Redirects::Unknown => "perhaps after a redirect",
            #[cfg(feature = "reqwest-any")]
            Redirects::Followed => "after a redirect",
        };
        failure.stage = match failure.stage {
            Stage::NotSent | Stage::InFlight => Stage::InFlight,
            Stage::Responded | Stage::Inconclusive => Stage::Inconclusive,
        };
        let note = format!("{}, {after}", failure.note().unwrap_or("failed"));
        failure.with_note(note)
    }
}

#[cfg(test)]
mod tests;
