//! The rule for retries that would come after the deadline.

use std::fmt;

/// The treatment of a request whose next delay reaches its deadline, so that no attempt
/// can follow ([D40](crate::decisions#d40)). Nothing is paid for such a retry.
///
/// The strategies of RFC 0049 wait, those of the Smithy guidance fail at once. A call can
/// override its strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum WhenTooLate {
    /// The request waits until its deadline and times out. A driver can wake it before,
    /// for example when a node comes back.
    #[default]
    Wait,
    /// The request fails at once with [`Cause::Deadline`](super::Cause::Deadline). The
    /// refusal has the delay.
    FailFast,
}

impl WhenTooLate {
    /// Writes the rule of a strategy whose own default is another one.
    pub(super) fn describe_unless(self, default: Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            rule if rule == default => Ok(()),
            WhenTooLate::Wait => f.write_str(", waiting for the deadline if a retry would miss it"),
            WhenTooLate::FailFast => {
                f.write_str(", failing at once if a retry would miss the deadline")
            }
        }
    }
}
