//! Classifies a failed attempt of the SDK.

use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::retries::classifiers::{
    ClassifyRetry as _, RetryAction, RetryReason,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::retry::ErrorKind;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use steadfast::failure::{FaultSide, Safety};
use steadfast::reason::{OPERATION_FAILED, THROTTLED, TIMEOUT};
use steadfast::{Failure, Reason, Stage};

use crate::classify::{HttpClassifier, HttpOutcome};
use crate::clock;
use crate::reason::{REJECTED, SERVER_ERROR};

/// The service rejected the signature because the clocks differ. The SDK has measured
/// the difference and signs the next attempt with the service's time.
static CLOCK_SKEW: Reason = Reason::new("AWS_CLOCK_SKEW").allowing_non_idempotent_retry();

/// Returns whether the service rejected a signature because the clocks differ.
pub(super) fn is_clock_skew(components: &RuntimeComponents, context: &InterceptorContext) -> bool {
    let mut classifiers = components.retry_classifiers();
    let classifier = classifiers.find(|each| each.name() == "ServiceClockSkew");
    classifier.is_some_and(|each| each.classify_retry(context).should_retry())
}

/// Classifies a failed attempt. The SDK's classifiers say whether the error may
/// pass; the outcome says whether a retry is safe. Before `sending`, nothing was
/// sent: for example, there were no credentials.
pub(super) fn classify(
    action: &RetryAction,
    context: &InterceptorContext,
    sending: bool,
    skewed: bool,
) -> Failure {
    let mut outcome = outcome(context);
    if !sending {
        outcome.stage = Stage::NotSent;
    }
    let (kind, hint) = match action {
        RetryAction::RetryIndicated(RetryReason::RetryableError { kind, retry_after }) => {
            (kind, *retry_after)
        }
        _ => return outcome.with_safety(Safety::No),
    };
    let mut failure = match (kind, outcome.stage) {
        (_, Stage::NotSent) => outcome,
        // Without a response, no classifier can know that nothing was applied.
        (ErrorKind::ThrottlingError, Stage::InFlight) => outcome.throttling(),
        (_, Stage::InFlight) => outcome,
        (_, _) if skewed => {
            with_details(Failure::responded(&CLOCK_SKEW), &outcome).with_fault(FaultSide::Client)
        }
        (ErrorKind::ThrottlingError, _) => with_details(Failure::responded(&THROTTLED), &outcome)
            .throttling()
            .with_fault(FaultSide::Client),
        // The status alone is final, but the service's model or a classifier says
        // that the error may pass.
        (ErrorKind::ServerError | ErrorKind::TransientError, _) if outcome.reason == &REJECTED => {
            with_details(Failure::inconclusive(&SERVER_ERROR), &outcome)
                .with_fault(FaultSide::Server)
        }
        (_, _) if outcome.reason == &REJECTED => {
            with_details(Failure::inconclusive(&OPERATION_FAILED), &outcome)
        }
        (_, _) => outcome,
    };
    failure.hint = failure.hint.or(hint);
    failure
}

/// Copies hint and note.
fn with_details(mut failure: Failure, outcome: &Failure) -> Failure {
    failure.hint = outcome.hint;
    match outcome.note() {
        Some(note) => failure.with_note(note.to_owned()),
        None => failure,
    }
}

/// Classifies the response or the error, without the SDK's classifiers.
fn outcome(context: &InterceptorContext) -> Failure {
    let error = match context.output_or_error() {
        Some(Err(error)) => error,
        Some(Ok(_)) | None => return Failure::in_flight(&OPERATION_FAILED),
    };
    if error.is_timeout_error() {
        return Failure::in_flight(&TIMEOUT).timed_out();
    }
    if let Some(error) = error.as_connector_error() {
        let mut failure = classify_http(&HttpOutcome::error(error, clock::now()));
        failure.timeout |= error.is_timeout();
        return failure;
    }
    match context.response() {
        Some(response) => classify_response(response),
        None => Failure::in_flight(&OPERATION_FAILED),
    }
}

fn classify_response(response: &HttpResponse) -> Failure {
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
    classify_http(&HttpOutcome::response(status, &headers, clock::now()))
}

/// The SDK follows no redirects.
fn classify_http(outcome: &HttpOutcome<'_>) -> Failure {
    let classified = HttpClassifier::default().classify(&outcome.without_redirects());
    // A response of a good status that could not be parsed.
    let unparsed = || Failure::inconclusive(&OPERATION_FAILED);
    classified.err().unwrap_or_else(unparsed)
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::client::interceptors::context::Input;
    use aws_smithy_runtime_api::client::orchestrator::OrchestratorError;

    use super::*;

    /// A classifier of the user's may read anything into an error.
    #[test]
    fn no_classifier_makes_an_attempt_without_a_response_safe() {
        let kinds = [
            ErrorKind::ThrottlingError,
            ErrorKind::TransientError,
            ErrorKind::ServerError,
            ErrorKind::ClientError,
        ];
        for (kind, skewed) in kinds
            .into_iter()
            .flat_map(|kind| [(kind, false), (kind, true)])
        {
            let mut context = InterceptorContext::new(Input::erase(()));
            context.set_output_or_error(Err(OrchestratorError::timeout("no response".into())));
            let failure = classify(&RetryAction::retryable_error(kind), &context, true, skewed);
            assert_eq!(failure.stage, Stage::InFlight, "{kind:?}, skewed: {skewed}");
            assert_eq!(failure.throttling, kind == ErrorKind::ThrottlingError);
        }
    }
}
