//! The scenarios: how the attempts of a call end.

use std::fmt;

/// How a call's attempts end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The first attempt succeeds. This is what nearly all calls are like.
    FirstTry,
    /// The first attempt fails, and the second succeeds.
    OneFailure,
}

impl Scenario {
    pub(crate) const ALL: [Scenario; 2] = [Scenario::FirstTry, Scenario::OneFailure];

    /// How many attempts of a call fail.
    pub(crate) fn failures(self) -> u32 {
        match self {
            Scenario::FirstTry => 0,
            Scenario::OneFailure => 1,
        }
    }

    /// The scenario with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|scenario| scenario.to_string() == name)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scenario::FirstTry => "first-try success",
            Scenario::OneFailure => "one failure, then success",
        })
    }
}
