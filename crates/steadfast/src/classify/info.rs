//! Traits by which an error describes itself (Smithy guidance, "Retryable errors").
//!
//! Implement these for errors that you own, and the engine needs no further
//! help. For errors that you do not own, see [`classify`](crate::classify).

use std::io;
use std::time::Duration;

use super::already_retried;
use crate::failure::{Failure, FaultSide, Safety, Stage};
use crate::reason::{
    NOT_AVAILABLE, OPERATION_FAILED, RETRY_SAFE, Reason, SOCKET_CLOSED_WHILE_IN_FLIGHT, THROTTLED,
    TIMEOUT,
};

/// Retry-specific information about an error.
///
/// Only the first method is required. The last three go beyond the guidance: they state
/// how far the attempt got, and default to safe assumptions.
///
/// ```
/// use std::time::Duration;
/// use steadfast::classify::RetryInfo;
/// use steadfast::failure::Safety;
///
/// enum LedgerError { Busy { for_seconds: u64 }, NoSuchAccount }
///
/// impl RetryInfo for LedgerError {
///     fn is_retry_safe(&self) -> Safety {
///         match self {
///             LedgerError::Busy { .. } => Safety::Yes,
///             LedgerError::NoSuchAccount => Safety::No,
///         }
///     }
///     fn is_throttle(&self) -> bool {
///         matches!(self, LedgerError::Busy { .. })
///     }
///     fn retry_after(&self) -> Option<Duration> {
///         match self {
///             LedgerError::Busy { for_seconds } => Some(Duration::from_secs(*for_seconds)),
///             LedgerError::NoSuchAccount => None,
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it is safe to retry",
    label = "this error has no `RetryInfo`",
    note = "implement `steadfast::classify::RetryInfo` for it if it is yours",
    note = "otherwise pass a classifier: `.classify(|error: &{Self}| …)`, or `.classify(steadfast::classify::any_error)` to retry any error of an idempotent call"
)]
pub trait RetryInfo {
    /// Returns whether a retry is allowed.
    fn is_retry_safe(&self) -> Safety;

    /// Returns whether the peer throttled the request.
    fn is_throttle(&self) -> bool {
        false
    }

    /// Returns whether no response came in time.
    fn is_timeout(&self) -> bool {
        false
    }

    /// Returns the shortest delay before a retry, if the peer asked for one.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// Returns how far the attempt got. By default, a timeout or an error of
    /// unknown safety is in flight. A throttling error and any other error is a response.
    fn stage(&self) -> Stage {
        if self.is_throttle() {
            return Stage::Responded;
        }
        match self.is_retry_safe() {
            Safety::Yes | Safety::No if !self.is_timeout() => Stage::Responded,
            Safety::Yes | Safety::No | Safety::Maybe => Stage::InFlight,
        }
    }

    /// Returns the reason, by default derived from the other methods.
    fn reason(&self) -> &'static Reason {
        if self.is_throttle() {
            &THROTTLED
        } else if self.is_timeout() {
            &TIMEOUT
        } else {
            match self.is_retry_safe() {
                Safety::Yes => &RETRY_SAFE,
                Safety::No | Safety::Maybe => &OPERATION_FAILED,
            }
        }
    }

    /// Returns general information about the error, if there is any.
    fn error_info(&self) -> Option<&dyn ErrorInfo> {
        None
    }

    /// Returns all of it as a failure.
    fn to_failure(&self) -> Failure {
        let (reason, safety) = (self.reason(), self.is_retry_safe());
        let mut failure = match self.stage() {
            Stage::NotSent => Failure::not_sent(reason),
            Stage::InFlight => Failure::in_flight(reason),
            Stage::Inconclusive => Failure::inconclusive(reason),
            Stage::Responded => Failure::responded(reason),
        }
        .with_safety(safety);
        failure.throttling = self.is_throttle();
        failure.timeout = self.is_timeout();
        failure.hint = self.retry_after();
        failure.fault = self.error_info().map_or(FaultSide::Other, ErrorInfo::fault);
        failure
    }
}

/// Information about an error that is of use beyond retries.
pub trait ErrorInfo {
    /// Returns the side at fault.
    fn fault(&self) -> FaultSide {
        FaultSide::Other
    }
}

impl RetryInfo for io::Error {
    fn is_retry_safe(&self) -> Safety {
        use io::ErrorKind as Kind;
        match self.kind() {
            // An error of any kind can contain that of a call.
            _ if already_retried(self).is_some() => Safety::No,
            Kind::ConnectionRefused => Safety::Yes,
            Kind::NotFound
            | Kind::PermissionDenied
            | Kind::AlreadyExists
            | Kind::InvalidInput
            | Kind::InvalidData
            | Kind::Unsupported
            | Kind::OutOfMemory => Safety::No,
            _ => Safety::Maybe,
        }
    }

    fn is_timeout(&self) -> bool {
        self.kind() == io::ErrorKind::TimedOut
    }

    /// A refused connection is the one error of a socket that proves that
    /// nothing was sent; a host that cannot be reached may have been reachable
    /// a moment ago.
    fn stage(&self) -> Stage {
        match self.kind() {
            io::ErrorKind::ConnectionRefused => Stage::NotSent,
            _ => Stage::InFlight,
        }
    }

    fn reason(&self) -> &'static Reason {
        use io::ErrorKind as Kind;
        match self.kind() {
            Kind::ConnectionRefused => &NOT_AVAILABLE,
            Kind::TimedOut => &TIMEOUT,
            Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::BrokenPipe
            | Kind::UnexpectedEof => &SOCKET_CLOSED_WHILE_IN_FLIGHT,
            _ => &OPERATION_FAILED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Classifier, by_fault};

    /// An error that says just what it is told to.
    struct Says {
        safety: Safety,
        throttle: bool,
        timeout: bool,
    }

    impl RetryInfo for Says {
        fn is_retry_safe(&self) -> Safety {
            self.safety
        }
        fn is_throttle(&self) -> bool {
            self.throttle
        }
        fn is_timeout(&self) -> bool {
            self.timeout
        }
    }

    fn read(safety: Safety, throttle: bool, timeout: bool) -> (Stage, &'static Reason) {
        let failure = Says {
            safety,
            throttle,
            timeout,
        }
        .to_failure();
        assert_eq!(
            (failure.safety, failure.throttling, failure.timeout),
            (safety, throttle, timeout)
        );
        (failure.stage, failure.reason)
    }

    #[test]
    fn an_error_that_says_little_is_taken_for_in_flight_and_one_that_is_sure_for_an_answer() {
        assert_eq!(
            read(Safety::Yes, false, false),
            (Stage::Responded, &RETRY_SAFE)
        );
        assert_eq!(
            read(Safety::No, false, false),
            (Stage::Responded, &OPERATION_FAILED)
        );
        assert_eq!(
            read(Safety::Maybe, false, false),
            (Stage::InFlight, &OPERATION_FAILED)
        );
    }

    #[test]
    fn a_throttling_answer_is_an_answer_and_a_timeout_is_none_however_sure_it_is() {
        assert_eq!(
            read(Safety::Maybe, true, false),
            (Stage::Responded, &THROTTLED)
        );
        assert_eq!(read(Safety::Yes, false, true), (Stage::InFlight, &TIMEOUT));
    }

    #[test]
    fn what_an_error_need_not_say_is_no_throttle_no_timeout_no_hint_and_nobodys_fault() {
        struct Little;
        impl RetryInfo for Little {
            fn is_retry_safe(&self) -> Safety {
                Safety::Maybe
            }
        }
        impl ErrorInfo for Little {}
        let failure = Little.to_failure();
        assert!(!failure.throttling && !failure.timeout && failure.hint.is_none());
        assert_eq!(failure.fault, FaultSide::Other);
        assert_eq!(Little.fault(), FaultSide::Other);
    }

    #[test]
    fn an_error_that_says_only_whose_fault_it_is_is_not_retried_if_it_is_the_clients() {
        struct Faulty(FaultSide);
        impl ErrorInfo for Faulty {
            fn fault(&self) -> FaultSide {
                self.0
            }
        }
        assert_eq!(by_fault(&Faulty(FaultSide::Client)).safety, Safety::No);
        assert_eq!(by_fault(&Faulty(FaultSide::Server)).safety, Safety::Maybe);
        assert_eq!(by_fault(&Faulty(FaultSide::Other)).safety, Safety::Maybe);
    }

    #[test]
    fn only_a_refused_connection_proves_that_nothing_was_sent() {
        for (kind, stage, safety) in [
            (
                io::ErrorKind::ConnectionRefused,
                Stage::NotSent,
                Safety::Yes,
            ),
            (
                io::ErrorKind::ConnectionReset,
                Stage::InFlight,
                Safety::Maybe,
            ),
            (io::ErrorKind::BrokenPipe, Stage::InFlight, Safety::Maybe),
            (
                io::ErrorKind::HostUnreachable,
                Stage::InFlight,
                Safety::Maybe,
            ),
            (io::ErrorKind::TimedOut, Stage::InFlight, Safety::Maybe),
            (io::ErrorKind::PermissionDenied, Stage::InFlight, Safety::No),
        ] {
            let failure = io::Error::from(kind).to_failure();
            assert_eq!((failure.stage, failure.safety), (stage, safety), "{kind}");
        }
    }

    #[test]
    fn an_error_of_a_socket_has_the_reason_of_its_kind() {
        use io::ErrorKind as Kind;
        for (kind, reason) in [
            (Kind::ConnectionRefused, &NOT_AVAILABLE),
            (Kind::TimedOut, &TIMEOUT),
            (Kind::ConnectionReset, &SOCKET_CLOSED_WHILE_IN_FLIGHT),
            (Kind::ConnectionAborted, &SOCKET_CLOSED_WHILE_IN_FLIGHT),
            (Kind::BrokenPipe, &SOCKET_CLOSED_WHILE_IN_FLIGHT),
            (Kind::UnexpectedEof, &SOCKET_CLOSED_WHILE_IN_FLIGHT),
            (Kind::PermissionDenied, &OPERATION_FAILED),
        ] {
            let failure = io::Error::from(kind).to_failure();
            assert_eq!(failure.reason, reason, "{kind}");
            assert_eq!(failure.timeout, kind == Kind::TimedOut, "{kind}");
        }
    }

    #[test]
    fn classifiers_compose_the_special_case_first() {
        let usual = |_: &u16| Failure::in_flight(&OPERATION_FAILED);
        let classifier = usual.also(|status: &u16| {
            (*status == 429).then(|| Failure::responded(&THROTTLED).throttling())
        });
        assert_eq!(classifier.classify(&429).reason, &THROTTLED);
        assert_eq!(classifier.classify(&500).reason, &OPERATION_FAILED);
        assert_eq!(classifier.classify(&500).stage, Stage::InFlight);
    }
}
