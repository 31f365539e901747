//! Jitter: spreads delays.

use std::fmt;

/// The random change of a delay `d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Jitter {
    /// None: always `d`.
    #[default]
    None,
    /// Between zero and `d`.
    Full,
    /// Between half of `d` and `d`.
    Equal,
    /// Drawn between the first delay and three times the previous one, and then capped.
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
