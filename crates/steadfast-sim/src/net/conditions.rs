//! Conditions of a network: what one node and one direction suffer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A direction of travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From clients to the node.
    ToNode,
    /// From the node to clients.
    FromNode,
}

impl Direction {
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::ToNode => Self::FromNode,
            Self::FromNode => Self::ToNode,
        }
    }
}

/// Conditions of the travel in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    /// The shortest time of travel.
    pub(crate) latency: Duration,
    /// The most that is added to it, at random. Pieces of different connections overtake each
    /// other; those of one connection stay in order.
    pub(crate) jitter: Duration,
    /// The bytes per second that a connection carries; unlimited if none.
    pub(crate) bandwidth: Option<u32>,
    /// The bytes per second that the receiver reads; unlimited if none. The sender's buffer fills.
    pub(crate) read_rate: Option<u32>,
    /// Nothing arrives until this ends, and then everything does: TCP sends it again.
    pub(crate) held: bool,
}

/// Returns how long a number of bytes takes at a rate.
pub(super) fn time_at(rate: Option<u32>, bytes: usize) -> Duration {
    match rate {
        Some(rate) => Duration::from_secs_f64(bytes as f64 / f64::from(rate.max(1))),
        None => Duration::ZERO,
    }
}
