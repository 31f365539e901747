//! Jitter: spreads delays.

use std::fmt;

/// The random change of a delay `d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Jitter {
    /// None: always `d`.
    #[default]
    None,
    /// Between zero and `d`.
    Full,
    /// Between half of `d` and `d`.
    Equal,
    /// Full as long as `d` grows, and equal once it is the cap. The first retries spread
    /// a herd of clients. Later ones keep it spread, without those that come back too soon.
    FullThenEqual,
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Jitter::None => "",
            Jitter::Full => ", full jitter",
            Jitter::Equal => ", equal jitter",
            Jitter::FullThenEqual => ", full jitter, equal at the cap",
        })
    }
}
