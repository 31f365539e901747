//! A policy that cannot work is refused when it is built, not when it is needed.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// Says which field of a policy is impossible, and what its limit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    field: &'static str,
    problem: Cow<'static, str>,
}

impl InvalidSetting {
    /// An error about a field, for strategies and backoffs of one's own.
    pub fn new(field: &'static str, problem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field,
            problem: problem.into(),
        }
    }

    /// The field.
    pub const fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "impossible retry policy: {} {}",
            self.field, self.problem
        )
    }
}

impl StdError for InvalidSetting {}
