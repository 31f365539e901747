//! The stage that an attempt reached before it ended.
//!
//! RFC 0049 ("Different Stage Retry Semantics") ties the safety of a retry to
//! this more than to the error itself. Before anything is sent, nothing can have
//! happened. Without a response, the outcome is unknown. With a response, it is
//! known if the response proves it.

use std::fmt;

/// The stage at which an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Nothing was sent. Safe for all requests to retry.
    NotSent,
    /// Bytes may have left, and no response came. Safe for idempotent requests only.
    InFlight,
    /// A response arrived that does not prove whether the request was applied, such
    /// as HTTP 500. Safe for idempotent requests only.
    Inconclusive,
    /// A conclusive response arrived. Safe if the reason says so.
    Responded,
}

impl Stage {
    /// Returns whether an attempt that ended at this stage may have been applied.
    pub const fn may_have_been_applied(self) -> bool {
        match self {
            Stage::InFlight | Stage::Inconclusive => true,
            Stage::NotSent | Stage::Responded => false,
        }
    }

    /// Returns a short name for logs and machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::NotSent => "not_sent",
            Stage::InFlight => "in_flight",
            Stage::Inconclusive => "inconclusive",
            Stage::Responded => "responded",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::NotSent => "nothing was sent",
            Stage::InFlight => "bytes may have left, no response",
            Stage::Inconclusive => "the response does not prove whether it was applied",
            Stage::Responded => "answered",
        })
    }
}
