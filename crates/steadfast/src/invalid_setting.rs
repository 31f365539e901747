//! The error of a strategy or budget that cannot be built.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// An invalid setting: which field it is, and what its limit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    field: Cow<'static, str>,
    problem: Cow<'static, str>,
}

impl InvalidSetting {
    /// An error about a field, for custom strategies and backoffs.
    pub fn new(field: &'static str, problem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// The field.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Puts a part of the field's path before it.
    #[cfg(feature = "serde")]
    pub(crate) fn with_field_prefix(mut self, prefix: &str) -> Self {
        self.field = format!("{prefix}{}", self.field).into();
        self
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid retry setting: {} {}", self.field, self.problem)
    }
}

impl StdError for InvalidSetting {}
