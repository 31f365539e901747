//! The reasons that only HTTP has.
//!
//! What any protocol can have is in [`steadfast::reason`]: 429 is its
//! `THROTTLED`, 408 and 504 are its `TIMEOUT`, a refused connection is its
//! `NOT_AVAILABLE`, a cut one its `SOCKET_CLOSED_WHILE_IN_FLIGHT`.

use steadfast::Reason;

/// 425: the server will not act on early data, and did not (RFC 8470, section
/// 5.2).
pub static TOO_EARLY: Reason = Reason::new("HTTP_TOO_EARLY").allowing_non_idempotent_retry();

/// 500: the server failed, and does not say how far it got.
pub static SERVER_ERROR: Reason = Reason::new("HTTP_SERVER_ERROR");

/// 502: whoever answered got no answer that it could use.
pub static BAD_GATEWAY: Reason = Reason::new("HTTP_BAD_GATEWAY");

/// 503: not now. It does not follow that nothing was done: proxies say this
/// too when the connection behind them breaks.
pub static UNAVAILABLE: Reason = Reason::new("HTTP_UNAVAILABLE");

/// Any other status from 400 on: the answer would be the same again.
pub static REJECTED: Reason = Reason::new("HTTP_REJECTED").never_retried();
