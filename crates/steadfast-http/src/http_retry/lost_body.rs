//! Bodies that cannot be sent again.

use std::fmt;

use steadfast::Failure;
#[cfg(feature = "tower")]
use steadfast::Stage;

use crate::classify::cannot_resend;

/// The reason that a body cannot be sent from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostBody {
    /// It is a stream, and the client keeps nothing of it.
    #[cfg(feature = "reqwest-any")]
    Stream,
    #[cfg(feature = "tower")]
    TooLarge { limit: usize },
    #[cfg(feature = "tower")]
    Failed,
}

impl LostBody {
    /// Forbids further attempts after a failure. If the body failed, it counts as in flight:
    /// the error may be that of the body's source, for example of a request that got no
    /// connection.
    pub(super) fn forbid_retries(
        self,
        #[cfg_attr(not(feature = "tower"), expect(unused_mut, reason = "no body fails"))]
        mut failure: Failure,
    ) -> Failure {
        #[cfg(feature = "tower")]
        if self == Self::Failed && failure.stage == Stage::NotSent {
            failure.stage = Stage::InFlight;
        }
        cannot_resend(failure, self)
    }
}

impl fmt::Display for LostBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "reqwest-any")]
            Self::Stream => f.write_str("the body is a stream"),
            #[cfg(feature = "tower")]
            Self::TooLarge { limit } => {
                write!(f, "more than {limit} bytes of the body were sent")
            }
            #[cfg(feature = "tower")]
            Self::Failed => f.write_str("the body failed"),
        }
    }
}
