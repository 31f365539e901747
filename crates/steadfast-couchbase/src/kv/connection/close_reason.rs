//! Why a connection was closed. The table of causes is in [`super`].

/// Why a connection was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The client itself is closed.
    ByUser,
    /// The node left, or the connection is no longer used.
    NotNeeded,
    /// The peer, or the network, ended it.
    Lost(String),
    /// Nothing arrives any more.
    Silent,
    /// The peer broke the protocol.
    Invalid(String),
    /// It still works, but a new connection replaces it.
    Replaced(String),
}

impl CloseReason {
    /// Returns whether the client itself closed a connection that worked.
    pub(crate) fn is_wanted(&self) -> bool {
        match self {
            Self::ByUser | Self::NotNeeded => true,
            Self::Lost(_) | Self::Silent | Self::Invalid(_) | Self::Replaced(_) => false,
        }
    }
}
