//! What an error can say of itself (Smithy guidance, "Retryable errors").
//!
//! Implement these for errors that you own, and the engine needs no further
//! help. For errors that you do not own, see [`classify`](crate::classify).

use std::io;
use std::time::Duration;

use crate::failure::{Failure, Fault, Safety};
use crate::reason::{
    NOT_AVAILABLE, OPERATION_FAILED, RETRY_SAFE, Reason, SOCKET_CLOSED_WHILE_IN_FLIGHT, THROTTLED,
    TIMEOUT,
};
use crate::stage::Stage;

/// Retry-specific information about an error.
///
/// Only the first method must be written. The last three go beyond the
/// guidance: they let an error say how far its attempt got, and default to what
/// is safe to assume when it does not.
///
/// ```
/// use std::time::Duration;
/// use steadfast::{RetryInfo, Safety};
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
    note = "implement `steadfast::RetryInfo` for it if it is yours",
    note = "otherwise pass a classifier: `.classify(|error: &{Self}| …)`, or `.classify(steadfast::classify::any_error)` to retry any error of an idempotent call"
)]
pub trait RetryInfo {
    /// Whether a retry is allowed to occur.
    fn is_retry_safe(&self) -> Safety;

    /// Whether the peer refused because too much was asked of it.
    fn is_throttle(&self) -> bool {
        false
    }

    /// Whether no answer came in time.
    fn is_timeout(&self) -> bool {
        false
    }

    /// The least time to wait before a retry, if the peer gave one.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// How far the attempt got. A throttling answer is an answer. A timeout is
    /// none, and neither, to be on the safe side, is an error of which nothing
    /// is known; anything definite is taken for an answer.
    fn stage(&self) -> Stage {
        if self.is_throttle() {
            return Stage::Responded;
        }
        match self.is_retry_safe() {
            Safety::Yes | Safety::No if !self.is_timeout() => Stage::Responded,
            Safety::Yes | Safety::No | Safety::Maybe => Stage::InFlight,
        }
    }

    /// The reason, from the rest of what is said.
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

    /// The error's more general information, if it has any.
    fn error_info(&self) -> Option<&dyn ErrorInfo> {
        None
    }

    /// All of it, as the engine takes it.
    fn to_failure(&self) -> Failure {
        let (reason, safety) = (self.reason(), self.is_retry_safe());
        let mut failure = match self.stage() {
            Stage::NotSent => Failure::not_sent(reason),
            Stage::InFlight => Failure::in_flight(reason),
            Stage::Responded => Failure::responded(reason),
        }
        .with_safety(safety);
        failure.throttling = self.is_throttle();
        failure.timeout = self.is_timeout();
        failure.hint = self.retry_after();
        failure.fault = self.error_info().map_or(Fault::Other, ErrorInfo::fault);
        failure
    }
}

/// Information about an error that is of use beyond retries.
pub trait ErrorInfo {
    /// Whose fault it is.
    fn fault(&self) -> Fault {
        Fault::Other
    }
}

impl RetryInfo for io::Error {
    fn is_retry_safe(&self) -> Safety {
        use io::ErrorKind as Kind;
        match self.kind() {
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
