//! Retry reasons that only HTTP has.
//!
//! Reasons of any protocol are in [`steadfast::reason`]: 429 is `THROTTLED`, 408
//! and 504 are `TIMEOUT`, a refused connection is `NOT_AVAILABLE`, a cut one
//! `SOCKET_CLOSED_WHILE_IN_FLIGHT`.

use steadfast::Reason;

/// 425: the server did not act on early data (RFC 8470, section 5.2).
pub static TOO_EARLY: Reason = Reason::new("HTTP_TOO_EARLY").allowing_non_idempotent_retry();

/// 500, or a 5xx without a meaning of its own: the server failed, at an unknown point.
pub static SERVER_ERROR: Reason = Reason::new("HTTP_SERVER_ERROR");

/// 502: a gateway got no valid response.
pub static BAD_GATEWAY: Reason = Reason::new("HTTP_BAD_GATEWAY");

/// 503: temporarily unavailable. The request may have been applied: proxies send
/// this too when the connection behind them breaks.
pub static UNAVAILABLE: Reason = Reason::new("HTTP_UNAVAILABLE");

/// Any other 4xx, 501 or 505: a permanent failure.
pub static REJECTED: Reason = Reason::new("HTTP_REJECTED").never_retried();
