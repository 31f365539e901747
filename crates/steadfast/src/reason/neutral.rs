//! Reasons that any protocol can have.
//!
//! They carry the names of RFC 0049 where the RFC has one for the same thing,
//! so that a reader of logs learns one word only.

use super::Reason;

/// Nothing is known that would make a retry safe. Never retried ([D5](crate::decisions#d5)).
pub static UNKNOWN: Reason = Reason::new("UNKNOWN").never_retried();

/// The call failed, and its error says no more than that. Retried when the
/// request is idempotent.
pub static OPERATION_FAILED: Reason = Reason::new("OPERATION_FAILED");

/// The peer applied nothing and allows a retry.
pub static RETRY_SAFE: Reason = Reason::new("RETRY_SAFE").allowing_non_idempotent_retry();

/// No peer was available for the attempt.
pub static NOT_AVAILABLE: Reason = Reason::new("NOT_AVAILABLE").allowing_non_idempotent_retry();

/// The connection closed after bytes may have left and before a response came.
pub static SOCKET_CLOSED_WHILE_IN_FLIGHT: Reason = Reason::new("SOCKET_CLOSED_WHILE_IN_FLIGHT");

/// A circuit breaker blocked the attempt.
pub static CIRCUIT_BREAKER_OPEN: Reason =
    Reason::new("CIRCUIT_BREAKER_OPEN").allowing_non_idempotent_retry();

/// The peer refused the credentials; nothing of the request was sent ([D2](crate::decisions#d2)).
pub static AUTHENTICATION_ERROR: Reason =
    Reason::new("AUTHENTICATION_ERROR").allowing_non_idempotent_retry();

/// No secure channel could be set up; nothing of the request was sent ([D2](crate::decisions#d2)).
pub static TLS_ERROR: Reason = Reason::new("TLS_ERROR").allowing_non_idempotent_retry();

/// The peer throttled the request.
pub static THROTTLED: Reason = Reason::new("THROTTLED").allowing_non_idempotent_retry();

/// No response came before the timeout of the attempt.
pub static TIMEOUT: Reason = Reason::new("TIMEOUT");

/// The client shed the request, so that the peer can recover; nothing was sent
/// ([D41](crate::decisions#d41)).
pub static LOAD_SHED: Reason = Reason::new("LOAD_SHED").allowing_non_idempotent_retry();

/// The attempt returned a value that the caller does not accept. Retried if the request is
/// idempotent.
pub static VALUE_NOT_ACCEPTED: Reason = Reason::new("VALUE_NOT_ACCEPTED");
