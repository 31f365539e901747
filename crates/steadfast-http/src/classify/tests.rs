use std::io;
use std::time::{Duration, UNIX_EPOCH};

use steadfast::failure::{FaultSide, Safety};
use steadfast::law::{Grounds, lawful};
use steadfast::reason::{
    NOT_AVAILABLE, OPERATION_FAILED, SOCKET_CLOSED_WHILE_IN_FLIGHT, THROTTLED, TIMEOUT,
};
use steadfast::strategy::Cause;
use steadfast::{Call, Stage};

use super::*;
use crate::reason::{BAD_GATEWAY, REJECTED, SERVER_ERROR, TOO_EARLY, UNAVAILABLE};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
    pairs.collect()
}

fn classify(status: u16, pairs: &[(&'static str, &str)]) -> Option<Failure> {
    let (status, headers) = (StatusCode::from_u16(status).unwrap(), headers(pairs));
    let outcome = HttpOutcome::response(status, &headers, UNIX_EPOCH).without_redirects();
    HttpClassifier::default().classify(&outcome).err()
}

fn error(error: &(dyn StdError + 'static)) -> Failure {
    let outcome = HttpOutcome::error(error, UNIX_EPOCH).without_redirects();
    HttpClassifier::default().classify(&outcome).unwrap_err()
}

fn asked(idempotent: bool, failure: &Failure) -> Result<Grounds, Cause> {
    lawful(&Call::new("op").idempotent(idempotent).request(), failure)
}

#[test]
fn three_4xx_and_every_5xx_but_501_and_505_are_retryable() {
    for status in 100..1000 {
        let failure = classify(status, &[]);
        let retried = failure.as_ref().map(|failure| asked(true, failure).is_ok());
        let expected = match status {
            ..400 => None,
            408 | 425 | 429 => Some(true),
            ..=499 | 501 | 505 => Some(false),
            _ => Some(true),
        };
        assert_eq!(retried, expected, "{status}");
    }
}

#[test]
fn a_request_that_is_not_idempotent_is_retried_only_if_the_status_proves_it_was_not_applied() {
    for status in [408, 500, 502, 503, 504] {
        assert_eq!(
            asked(false, &classify(status, &[]).unwrap()),
            Err(Cause::Unsafe),
            "{status}"
        );
    }
    for status in [425, 429] {
        let failure = classify(status, &[]).unwrap();
        assert_eq!(
            asked(false, &failure),
            Ok(Grounds::ReasonAllows),
            "{status}"
        );
    }
}

#[test]
fn a_5xx_does_not_prove_whether_the_request_was_applied() {
    for (status, stage) in [
        (400, Stage::Responded),
        (408, Stage::Responded),
        (425, Stage::Responded),
        (429, Stage::Responded),
        (500, Stage::Inconclusive),
        (501, Stage::Responded),
        (502, Stage::Inconclusive),
        (503, Stage::Inconclusive),
        (504, Stage::Inconclusive),
        (520, Stage::Inconclusive),
    ] {
        assert_eq!(classify(status, &[]).unwrap().stage, stage, "{status}");
    }
}

#[test]
fn reason_throttling_timeout_and_fault_follow_from_the_status() {
    for (status, reason, throttling, timeout, fault) in [
        (404, &REJECTED, false, false, FaultSide::Client),
        (408, &TIMEOUT, false, true, FaultSide::Other),
        (425, &TOO_EARLY, false, false, FaultSide::Other),
        (429, &THROTTLED, true, false, FaultSide::Client),
        (500, &SERVER_ERROR, false, false, FaultSide::Server),
        (502, &BAD_GATEWAY, false, false, FaultSide::Server),
        (503, &UNAVAILABLE, false, false, FaultSide::Server),
        (504, &TIMEOUT, false, true, FaultSide::Server),
        (505, &REJECTED, false, false, FaultSide::Server),
        (507, &SERVER_ERROR, false, false, FaultSide::Server),
        (599, &SERVER_ERROR, false, false, FaultSide::Server),
    ] {
        let failure = classify(status, &[]).unwrap();
        assert_eq!(failure.reason, reason, "{status}");
        assert_eq!(
            (failure.throttling, failure.timeout),
            (throttling, timeout),
            "{status}"
        );
        assert_eq!(failure.fault, fault, "{status}");
        assert_eq!(failure.note(), Some(&*format!("HTTP {status}")));
    }
}

#[test]
fn every_4xx_is_the_clients_fault_and_every_5xx_the_servers() {
    for status in 400..600 {
        let fault = match status {
            408 | 425 => FaultSide::Other,
            400..500 => FaultSide::Client,
            _ => FaultSide::Server,
        };
        assert_eq!(classify(status, &[]).unwrap().fault, fault, "{status}");
    }
}

#[test]
fn a_hint_is_kept_and_an_unreadable_one_is_noted_without_its_value() {
    let failure = classify(503, &[("retry-after", "7")]).unwrap();
    assert_eq!(failure.hint, Some(Duration::from_secs(7)));
    assert_eq!(failure.note(), Some("HTTP 503"));
    let failure = classify(520, &[("retry-after", "7")]).unwrap();
    assert_eq!(failure.hint, Some(Duration::from_secs(7)));
    assert_eq!(failure.note(), Some("HTTP 520"));
    let failure = classify(503, &[("retry-after", "-7 secret")]).unwrap();
    assert_eq!(failure.hint, None);
    assert_eq!(
        failure.note(),
        Some("HTTP 503, no readable delay in Retry-After")
    );
}

#[test]
fn a_pushback_that_forbids_retries_makes_the_failure_final() {
    let failure = classify(503, &[("grpc-retry-pushback-ms", "-1")]).unwrap();
    assert_eq!(failure.safety, Safety::No);
    let note = "HTTP 503, the peer forbids a retry in grpc-retry-pushback-ms";
    assert_eq!(failure.note(), Some(note));
}

/// An error of a library that wraps another.
#[derive(Debug)]
struct Wrapped(Option<Box<dyn StdError + Send + Sync>>);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("error sending request")
    }
}

impl StdError for Wrapped {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.as_deref().map(|error| error as _)
    }
}

#[test]
fn a_refused_connection_proves_that_nothing_was_sent_however_it_is_wrapped() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let failure = error(&Wrapped(Some(Box::new(io::Error::other(refused)))));
    assert_eq!(
        (failure.stage, failure.reason),
        (Stage::NotSent, &NOT_AVAILABLE)
    );
    assert_eq!(asked(false, &failure), Ok(Grounds::NothingSent));
}

#[test]
fn a_cut_connection_and_an_unknown_error_are_in_flight() {
    let cut = error(&Wrapped(Some(Box::new(io::Error::from(
        io::ErrorKind::ConnectionReset,
    )))));
    assert_eq!(
        (cut.stage, cut.reason),
        (Stage::InFlight, &SOCKET_CLOSED_WHILE_IN_FLIGHT)
    );
    let silent = error(&Wrapped(None));
    assert_eq!(
        (silent.stage, silent.reason),
        (Stage::InFlight, &OPERATION_FAILED)
    );
    for failure in [cut, silent] {
        assert_eq!(asked(false, &failure), Err(Cause::Unsafe));
        assert!(asked(true, &failure).is_ok());
    }
}

#[test]
fn an_endless_chain_of_errors_ends() {
    #[derive(Debug)]
    struct Ring;
    impl fmt::Display for Ring {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("ring")
        }
    }
    impl StdError for Ring {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(self)
        }
    }
    assert_eq!(error(&Ring).stage, Stage::InFlight);
}

#[test]
fn the_last_rule_is_asked_first_and_without_a_rule_the_status_decides() {
    let classifier = HttpClassifier::default()
        .also(|outcome| {
            (outcome.status()?.as_u16() == 404).then(|| Err(Failure::responded(&UNAVAILABLE)))
        })
        .also(|outcome| {
            let absent = outcome.status()?.as_u16() == 404 && outcome.header("x-absent").is_some();
            absent.then_some(Ok(()))
        });
    let classify = |status: u16, headers: &HeaderMap| {
        let status = StatusCode::from_u16(status).unwrap();
        let outcome = HttpOutcome::response(status, headers, UNIX_EPOCH);
        let failure = classifier.classify(&outcome).err();
        failure.map(|failure| (failure.reason, failure.hint))
    };
    let hinted = headers(&[("retry-after", "3")]);
    assert_eq!(
        classify(404, &hinted),
        Some((&UNAVAILABLE, Some(Duration::from_secs(3))))
    );
    assert_eq!(classify(404, &headers(&[("x-absent", "1")])), None);
    assert_eq!(classify(410, &HeaderMap::new()), Some((&REJECTED, None)));
}

#[test]
fn a_rule_can_look_for_an_error_in_the_chain_of_sources() {
    let wrapped = Wrapped(Some(Box::new(io::Error::from(io::ErrorKind::BrokenPipe))));
    let outcome = HttpOutcome::error(&wrapped, UNIX_EPOCH);
    assert!(outcome.caused_by::<io::Error>().is_some());
    assert!(outcome.caused_by::<fmt::Error>().is_none());
}

#[test]
fn a_response_that_the_predicate_picks_is_a_failure_and_others_are_not() {
    let classifier =
        HttpClassifier::default().retry_response(|response| response.header("x-state").is_some());
    let classify = |headers: &HeaderMap| {
        let outcome = HttpOutcome::response(StatusCode::ACCEPTED, headers, UNIX_EPOCH);
        classifier.classify(&outcome.without_redirects()).err()
    };
    let failure = classify(&headers(&[("x-state", "pending")])).unwrap();
    assert_eq!(failure.reason, &VALUE_NOT_ACCEPTED);
    assert_eq!(failure.note(), Some("HTTP 202, not accepted"));
    assert!(classify(&headers(&[])).is_none());
    let error = io::Error::from(io::ErrorKind::ConnectionReset);
    let outcome = HttpOutcome::error(&error, UNIX_EPOCH).without_redirects();
    let failure = classifier.classify(&outcome).unwrap_err();
    assert_ne!(failure.reason, &VALUE_NOT_ACCEPTED);
}

#[cfg(any(feature = "tower", feature = "reqwest-any"))]
#[test]
fn only_a_success_without_a_rule_needs_no_further_look() {
    let accepts = |classifier: HttpClassifier, status: u16| {
        classifier.accepts(StatusCode::from_u16(status).unwrap(), &headers(&[]))
    };
    assert!(accepts(HttpClassifier::default(), 200));
    assert!(accepts(HttpClassifier::default(), 399));
    assert!(!accepts(HttpClassifier::default(), 400));
    assert!(!accepts(HttpClassifier::default().also(|_| None), 200));
    assert!(!HttpClassifier::default().has_no_redirects());
}

#[cfg(all(feature = "grpc", any(feature = "tower", feature = "reqwest-any")))]
#[test]
fn a_classifier_of_grpc_reads_the_grpc_status_and_knows_that_there_are_no_redirects() {
    let classifier = HttpClassifier::grpc();
    assert!(classifier.has_no_redirects());
    assert!(classifier.accepts(StatusCode::OK, &headers(&[])));
    assert!(!classifier.accepts(StatusCode::BAD_GATEWAY, &headers(&[])));
    let headers = headers(&[("grpc-status", "14")]);
    assert!(!classifier.accepts(StatusCode::OK, &headers));
    let outcome = HttpOutcome::response(StatusCode::OK, &headers, UNIX_EPOCH);
    let failure = classifier.classify(&outcome.without_redirects());
    assert_eq!(failure.unwrap_err().reason, &UNAVAILABLE);
}
