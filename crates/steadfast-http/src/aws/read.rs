//! What the SDK knows of a failed attempt, as a failure.

use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::retries::classifiers::{RetryAction, RetryReason};
use aws_smithy_types::retry::ErrorKind;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use steadfast::failure::{FaultSide, Safety};
use steadfast::reason::{OPERATION_FAILED, THROTTLED, TIMEOUT};
use steadfast::{Failure, Stage};

use crate::classify::{HttpClassifier, HttpOutcome, Reading};
use crate::clock;
use crate::reason::{REJECTED, SERVER_ERROR};

/// Safety and stage from what happened; worth from what the classifiers say.
/// Before `sending`, whatever happened, nothing was sent: there were no
/// credentials, or no endpoint, or it took too long to get them.
pub(super) fn failure(
    action: &RetryAction,
    context: &InterceptorContext,
    sending: bool,
) -> Failure {
    let mut happened = happened(context);
    if !sending {
        happened.stage = Stage::NotSent;
    }
    let (kind, hint) = match action {
        RetryAction::RetryIndicated(RetryReason::RetryableError { kind, retry_after }) => {
            (kind, *retry_after)
        }
        _ => return happened.with_safety(Safety::No),
    };
    let mut failure = match (kind, happened.stage) {
        (_, Stage::NotSent) => happened,
        (ErrorKind::ThrottlingError, _) => renamed(Failure::responded(&THROTTLED), &happened)
            .throttling()
            .with_fault(FaultSide::Client),
        // The status alone would be final, but the service's model, or a
        // classifier, says that the error passes.
        (ErrorKind::ServerError | ErrorKind::TransientError, _) if happened.reason == &REJECTED => {
            renamed(Failure::inconclusive(&SERVER_ERROR), &happened).with_fault(FaultSide::Server)
        }
        (_, _) if happened.reason == &REJECTED => {
            renamed(Failure::inconclusive(&OPERATION_FAILED), &happened)
        }
        (_, _) => happened,
    };
    failure.hint = failure.hint.or(hint);
    failure
}

fn renamed(mut failure: Failure, happened: &Failure) -> Failure {
    failure.hint = happened.hint;
    match happened.note() {
        Some(note) => failure.with_note(note.to_owned()),
        None => failure,
    }
}

fn happened(context: &InterceptorContext) -> Failure {
    let error = match context.output_or_error() {
        Some(Err(error)) => error,
        Some(Ok(_)) | None => return Failure::in_flight(&OPERATION_FAILED),
    };
    if error.is_timeout_error() {
        return Failure::in_flight(&TIMEOUT).timed_out();
    }
    if let Some(error) = error.as_connector_error() {
        let mut failure = read(&HttpOutcome::error(error, clock::now()));
        failure.timeout |= error.is_timeout();
        return failure;
    }
    match context.response() {
        Some(response) => answered(response),
        None => Failure::in_flight(&OPERATION_FAILED),
    }
}

fn answered(response: &HttpResponse) -> Failure {
    let status = StatusCode::from_u16(response.status().as_u16());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers: HeaderMap = response
        .headers()
        .iter()
        .filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        })
        .collect();
    read(&HttpOutcome::answer(status, &headers, clock::now()))
}

fn read(outcome: &HttpOutcome<'_>) -> Failure {
    match HttpClassifier::default().read(outcome) {
        Reading::Failed(failure) => failure,
        // An answer that looks right, but could not be made sense of.
        Reading::Succeeded => Failure::inconclusive(&OPERATION_FAILED),
    }
}
