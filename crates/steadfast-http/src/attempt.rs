//! What the integrations share: an attempt's end, and what is made of a
//! request's.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, Method, StatusCode};
use steadfast::report::Report;
use steadfast::{Attempt, Error, Failure};

use crate::classify::{HttpClassifier, HttpOutcome, Reading};
use crate::clock;

/// Marks a request as an attempt of a request that is being retried, in its
/// extensions.
///
/// A retrying layer that finds it makes one attempt and no more: the layer
/// around it is in charge, and two that both try three times would try nine
/// times. Anything else can read from it how much time is left:
///
/// ```
/// use steadfast_http::AttemptMark;
///
/// fn budget_header(request: &mut http::Request<()>) {
///     let left = request.extensions().get::<AttemptMark>().and_then(AttemptMark::remaining);
///     if let Some(left) = left {
///         let millis = http::HeaderValue::from(left.as_millis() as u64);
///         request.headers_mut().insert("x-time-left-ms", millis);
///     }
/// }
/// # let mut request = http::Request::new(());
/// # budget_header(&mut request);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttemptMark {
    attempt: Attempt,
}

impl AttemptMark {
    /// Which attempt it is, the first being 1.
    pub const fn number(&self) -> u32 {
        self.attempt.number()
    }

    /// The time it had when it began, if there is a limit.
    pub const fn remaining(&self) -> Option<Duration> {
        self.attempt.remaining()
    }
}

/// To mark the requests that an attempt of one's own makes:
///
/// ```
/// # use steadfast::{BestEffort, StrategyExt, retry};
/// # use steadfast_http::AttemptMark;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let strategy = BestEffort::default().max_attempts(2)?;
/// # let send = async |_: http::Request<()>| Ok::<_, std::io::Error>(());
/// retry(&strategy)
///     .run(|attempt| {
///         let mut request = http::Request::new(());
///         request.extensions_mut().insert(AttemptMark::from(attempt));
///         send(request)
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
impl From<Attempt> for AttemptMark {
    fn from(attempt: Attempt) -> Self {
        Self { attempt }
    }
}

/// How many attempts an answer took, in its extensions if it was more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptCount(pub u32);

/// The whole story of a request that ended with an answer which is a failure,
/// in the answer's extensions.
#[derive(Clone)]
pub struct ResponseReport(Arc<Report>);

impl Deref for ResponseReport {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.0
    }
}

impl fmt::Debug for ResponseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An answer of some library.
pub(crate) trait Answer {
    fn status(&self) -> StatusCode;
    fn headers(&self) -> &HeaderMap;
    fn extensions_mut(&mut self) -> &mut Extensions;
}

/// An attempt that did not succeed: with an answer, with an error, or with
/// neither because it could not even be made.
pub(crate) struct Unsuccessful<A, E> {
    pub(crate) end: Option<Result<A, E>>,
    /// None if the classifier panicked.
    pub(crate) failure: Option<Failure>,
}

impl<A: Answer, E: StdError + 'static> Unsuccessful<A, E> {
    /// Reads how an attempt ended.
    pub(crate) fn read(classifier: &HttpClassifier, end: Result<A, E>) -> Result<A, Self> {
        // The user's part of the classifier may panic. The engine knows what to
        // do then (D13), so the panic is kept for it, see `failure`.
        let reading = catch_unwind(AssertUnwindSafe(|| match &end {
            // Without a special case a status below 400 is the end of it, and
            // the clock need not be read.
            Ok(answer) if answer.status().as_u16() < 400 && classifier.is_usual() => {
                Reading::Succeeded
            }
            Ok(answer) => {
                let (status, headers) = (answer.status(), answer.headers());
                classifier.read(&HttpOutcome::answer(status, headers, clock::now()))
            }
            Err(error) => classifier.read(&HttpOutcome::error(error, clock::now())),
        }));
        let failure = match (reading, end) {
            (Ok(Reading::Succeeded), Ok(answer)) => return Ok(answer),
            (Ok(Reading::Succeeded), Err(error)) => {
                // There is no answer to succeed with.
                let note = "the classifier calls an error a success";
                let failure = Failure::in_flight(&steadfast::reason::UNKNOWN).with_note(note);
                return Err(Self::new(Err(error), Some(failure)));
            }
            (Ok(Reading::Failed(failure)), end) => return Err(Self::new(end, Some(failure))),
            (Err(_panic), end) => Self::new(end, None),
        };
        Err(failure)
    }

    fn new(end: Result<A, E>, failure: Option<Failure>) -> Self {
        let end = Some(end);
        Self { end, failure }
    }

    /// Adds to what is known of the failure.
    pub(crate) fn map_failure(self, change: impl FnOnce(Failure) -> Failure) -> Self {
        let failure = self.failure.map(change);
        Self { failure, ..self }
    }
}

/// For the engine, which survives the panic.
pub(crate) fn failure<A, E>(attempt: &Unsuccessful<A, E>) -> Failure {
    match &attempt.failure {
        Some(failure) => failure.clone(),
        None => resume_unwind(Box::new("the classifier panicked")),
    }
}

/// What the caller gets: the last answer, also one that is a failure, with the
/// story beside it; or the error that kept an answer from coming.
pub(crate) fn settle<A: Answer, E>(
    result: Result<(A, u32), Error<Unsuccessful<A, E>>>,
) -> Result<A, Error<E>> {
    let error = match result {
        Ok((answer, 1)) => return Ok(answer),
        Ok((mut answer, attempts)) => {
            answer.extensions_mut().insert(AttemptCount(attempts));
            return Ok(answer);
        }
        Err(error) => error,
    };
    let (report, last) = error.into_parts();
    match last.and_then(|last| last.end) {
        Some(Ok(mut answer)) => {
            let extensions = answer.extensions_mut();
            if report.attempts() > 1 {
                extensions.insert(AttemptCount(report.attempts()));
            }
            extensions.insert(ResponseReport(Arc::new(report)));
            Ok(answer)
        }
        Some(Err(error)) => Err(Error::from_parts(report, Some(error))),
        None => Err(Error::from_parts(report, None)),
    }
}

/// The name of an operation, for errors and events.
pub(crate) fn operation(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::CONNECT => "CONNECT",
        _ => "an extension method",
    }
}

/// Host and port, for errors and for budgets: without what else an authority
/// may hold, such as a password.
pub(crate) fn address(host: Option<&str>, port: Option<u16>, scheme: Option<&str>) -> String {
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let port = port.or(match scheme {
        Some("http") => Some(80),
        Some("https") => Some(443),
        Some(_) | None => None,
    });
    match port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}
