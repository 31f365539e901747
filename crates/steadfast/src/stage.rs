//! How far an attempt got before it ended.
//!
//! RFC 0049 ("Different Stage Retry Semantics") ties the safety of a retry to
//! this more than to the error itself: before the network nothing can have
//! happened, on the network nobody knows, and after an answer the answer says.

use std::fmt;

/// Where an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// No byte left this process. Safe for everybody to retry.
    NotSent,
    /// Bytes may have left, and no answer came. Safe for idempotent requests only.
    InFlight,
    /// The peer answered. Safe if the reason says so.
    Responded,
}

impl Stage {
    /// A short name for logs and machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::NotSent => "not_sent",
            Stage::InFlight => "in_flight",
            Stage::Responded => "responded",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::NotSent => "nothing was sent",
            Stage::InFlight => "bytes may have left, no answer",
            Stage::Responded => "answered",
        })
    }
}
