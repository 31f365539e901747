//! The error of a strategy or budget that cannot be built.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// An invalid setting: which field it is, and what its limit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    field: &'static str,
    problem: Cow<'static, str>,
}

impl InvalidSetting {
    /// An error about a field, for custom strategies and backoffs.
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
        write!(f, "invalid retry setting: {} {}", self.field, self.problem)
    }
}

impl StdError for InvalidSetting {}
