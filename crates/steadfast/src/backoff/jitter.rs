//! Jitter: spreads delays.

use std::fmt;

/// What chance does to a delay `d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Nothing: always `d`.
    #[default]
    None,
    /// Anything from nothing to `d`.
    Full,
    /// Anything from half of `d` to `d`.
    Equal,
    /// Anything from the first delay to three times the previous one, up to
    /// the cap.
    Decorrelated,
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Jitter::None => "",
            Jitter::Full => ", full jitter",
            Jitter::Equal => ", equal jitter",
            Jitter::Decorrelated => ", decorrelated jitter",
        })
    }
}
