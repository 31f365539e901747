//! Errors in a configuration, reported before anything is dialled.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::server_text::escaped;

/// Names the invalid part of a configuration, and says why.
///
/// Connection strings, options and credentials all report it, and one line says
/// what to change:
///
/// ```
/// use steadfast_couchbase::ConnectionString;
///
/// let error = ConnectionString::parse("couchbase://db?kv_timout=2s").unwrap_err();
/// assert_eq!(error.part(), "option kv_timout");
/// assert_eq!(
///     error.to_string(),
///     "cannot use this configuration: option kv_timout is not known; did you mean kv_timeout?"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    part: Cow<'static, str>,
    problem: Cow<'static, str>,
}

impl ConfigError {
    /// An error about a part. The problem reads on from the part's name. Control characters
    /// are escaped, so that both are on one line.
    pub fn new(part: impl Into<Cow<'static, str>>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            part: escaped(part.into()),
            problem: escaped(problem.into()),
        }
    }

    /// The part, by the name that it has where it was set.
    pub fn part(&self) -> &str {
        &self.part
    }

    /// The reason why it is invalid.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, problem } = self;
        write!(f, "cannot use this configuration: {part} {problem}")
    }
}

impl StdError for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_with_a_line_break_is_shown_on_one_line() {
        let error = ConfigError::new("option kv_\na\u{202e}", "is\r\nnot known");
        assert_eq!(error.part(), "option kv_\\u{a}a\\u{202e}");
        assert_eq!(
            error.to_string(),
            "cannot use this configuration: option kv_\\u{a}a\\u{202e} is\\u{d}\\u{a}not known"
        );
    }
}
