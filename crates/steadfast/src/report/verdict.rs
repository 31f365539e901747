//! The verdict on a finished request.

use std::fmt;

/// The verdict on a finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// An attempt succeeded.
    Succeeded,
    /// The last attempt failed and was not retried.
    Failed(Certainty),
    /// The deadline ended it.
    TimedOut(Certainty),
    /// The client shed it: no attempt was made ([D41](crate::decisions#d41)).
    Shed,
}

/// The knowledge of whether the operation took effect ([D14](crate::decisions#d14)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// It is not idempotent, and an attempt's bytes may have left without a
    /// conclusive response: it may or may not have been applied.
    Ambiguous,
    /// Nothing was sent, a conclusive response arrived, or the request is idempotent.
    Unambiguous,
}

impl Verdict {
    /// Returns whether it is unknown if the operation took effect.
    pub const fn is_ambiguous(self) -> bool {
        matches!(
            self,
            Verdict::Failed(Certainty::Ambiguous) | Verdict::TimedOut(Certainty::Ambiguous)
        )
    }

    /// Returns whether the deadline ended it.
    pub const fn is_timeout(self) -> bool {
        matches!(self, Verdict::TimedOut(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Succeeded => "succeeded",
            Verdict::Failed(_) => "failed",
            Verdict::TimedOut(_) => "timed out",
            Verdict::Shed => "was shed",
        })
    }
}
