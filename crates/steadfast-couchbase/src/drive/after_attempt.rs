//! Decides what follows an attempt: another one, or the end of the request.

use steadfast::report::Report;
use steadfast::strategy::Cause;
use steadfast::{Failure, Stage, Verdict};

use super::{AttemptError, ClientDriver, Driven};
use crate::error::{Error, ErrorKind};
use crate::fast_fail::Raised;
use crate::observe::Finished;
use crate::reason::APPLICATION_INDICATED;
use crate::world::now;

/// Handles an attempt that did not succeed. `kind` is the error that the request ends with
/// if no retry follows. Returns whether another attempt follows at once, or the final error.
#[cold]
pub(crate) fn handle_error<D: Driven>(
    attempt: AttemptError,
    kind: &mut ErrorKind,
    driver: &mut ClientDriver<'_>,
    driven: &mut D,
) -> Result<bool, Error> {
    match attempt {
        AttemptError::Final(finally) => match indicated(finally, driver, driven) {
            Some(failure) => {
                *kind = finally;
                Ok(driver.fail(failure))
            }
            None => {
                let stage = match driven.proves_not_applied(finally) {
                    true => Stage::Responded,
                    false => Stage::Inconclusive,
                };
                driver.end_with_response(stage);
                let error = error(finally, driver).with_report(driver.take_report());
                Err(driven.add_context(error))
            }
        },
        AttemptError::Unsendable(kind) => {
            driver.end_unsendable();
            let error = error(kind, driver).with_report(driver.take_report());
            Err(driven.add_context(error))
        }
        AttemptError::Failed(mut failure, failed) => {
            *kind = failed;
            // The stage stays: the law decides whether that is safe.
            if failure.stage == Stage::Inconclusive
                && failure.reason.never_retry()
                && asks_to_retry(failed, driver, driven)
            {
                failure.reason = &APPLICATION_INDICATED;
            }
            Ok(driver.fail(failure))
        }
        AttemptError::Closed(failure) => {
            *kind = ErrorKind::RequestCanceled;
            driver.cancel_attempt(failure);
            Ok(false)
        }
    }
}

/// Records the end of a request.
#[inline]
pub(crate) fn finish<D: Driven>(
    driver: &ClientDriver<'_>,
    driven: &mut D,
    outcome: &Result<D::Output, Error>,
) -> Finished {
    let ended = match outcome {
        Ok(output) => driven.succeeded_at(output),
        Err(_) => now(),
    };
    let retries = match outcome {
        Ok(_) => driver.request().retries(),
        Err(error) => error.context().report().map_or(0, Report::retries),
    };
    let finished = Finished {
        started: driver.request().started().unwrap_or(ended),
        ended,
        retries,
        error: outcome.as_ref().err().map(Error::kind),
    };
    driven.finished(&finished, outcome.as_ref().ok());
    finished
}

/// Makes the error of a request that is not retried any more.
#[cold]
pub(crate) fn give_up<D: Driven>(
    kind: ErrorKind,
    driver: &mut ClientDriver<'_>,
    driven: &mut D,
) -> Error {
    let report = driver.take_report();
    let verdict = report.verdict();
    let raised = report.refusal().and_then(Raised::kind_of);
    let kind = match (verdict, raised) {
        (Verdict::TimedOut(_), _) if verdict.is_ambiguous() => ErrorKind::AmbiguousTimeout,
        (Verdict::TimedOut(_), _) => ErrorKind::UnambiguousTimeout,
        (Verdict::Shed, _) => ErrorKind::TemporaryFailure,
        (Verdict::Failed(_) | Verdict::Succeeded, Some(raised)) => raised,
        (Verdict::Failed(_) | Verdict::Succeeded, None) => kind,
    };
    let mut error = driven.add_context(error(kind, driver));
    if let Some(note) = note(&report) {
        error = error.because(note);
    }
    error.with_report(report)
}

/// Returns the failure that a final response becomes if the application asks for a
/// retry. The law then decides by its stage, and the strategy is asked.
#[cold]
fn indicated<D: Driven>(
    kind: ErrorKind,
    driver: &ClientDriver<'_>,
    operation: &mut D,
) -> Option<Failure> {
    if !asks_to_retry(kind, driver, operation) {
        return None;
    }
    let failure = if operation.proves_not_applied(kind) {
        Failure::responded(&APPLICATION_INDICATED)
    } else {
        Failure::inconclusive(&APPLICATION_INDICATED)
    };
    Some(failure.with_note(kind.to_string()))
}

/// Asks the application whether a final response of this kind is to be retried.
fn asks_to_retry<D: Driven>(kind: ErrorKind, driver: &ClientDriver<'_>, operation: &mut D) -> bool {
    let Some(retry_if) = operation.retry_if().cloned() else {
        return false;
    };
    retry_if(&operation.add_context(error(kind, driver)))
}

/// Makes an error of the operation.
#[cold]
fn error(kind: ErrorKind, driver: &ClientDriver<'_>) -> Error {
    Error::new(kind, driver.request().operation())
}

/// Returns what the refusal says beyond its cause.
fn note(report: &Report) -> Option<String> {
    let refusal = report.refusal()?;
    match refusal.cause() {
        Cause::Cancelled => Some("the client was closed".to_owned()),
        _ => refusal.raised().map(ToString::to_string),
    }
}
