//! Explains and plans decisions without making them.
//!
//! There is no second description of the rules here that could drift from the
//! first: an explanation runs the orchestrator itself, on a copy of the
//! strategy that shares nothing with the original, in virtual time.

mod plan;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub use plan::{Plan, PlanRow, plan};

use crate::call::Call;
use crate::error::Time;
use crate::failure::{Failure, Stage};
use crate::law::{Grounds, lawful};
use crate::reason::Reason;
use crate::strategy::{Cause, RetryStrategy};

/// Predicts the decision about a failure of a request, and explains it.
///
/// ```
/// use steadfast::{BestEffort, Call, Failure, explain, reason};
///
/// let cut = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
/// let explanation = explain(&BestEffort::default(), &Call::new("upsert"), &cut)?;
/// assert!(!explanation.would_retry());
/// assert_eq!(
///     explanation.to_string(),
///     "upsert ended with SOCKET_CLOSED_WHILE_IN_FLIGHT (bytes may have left, no response)\n\
///      \x20 decision  no retry, may have been applied\n\
///      \x20 because   a retry could apply it twice: the request is not idempotent\n\
///      \x20 strategy  best effort (backoff 1ms × 2ⁿ up to 500ms)"
/// );
/// # Ok::<(), steadfast::explain::Unexplainable>(())
/// ```
pub fn explain(
    strategy: &dyn RetryStrategy,
    call: &Call,
    failure: &Failure,
) -> Result<Explanation, Unexplainable> {
    let plan = plan(strategy, call, [failure.clone()])?;
    let row = plan.rows().first().cloned();
    let row = row.ok_or(Unexplainable {
        why: "no attempt would begin before the deadline",
    })?;
    Ok(Explanation {
        operation: call.operation,
        reason: failure.reason,
        stage: failure.stage,
        grounds: lawful(&call.request(), failure),
        ambiguous: plan.verdict().is_some_and(|verdict| verdict.is_ambiguous()),
        strategy: plan.strategy().to_owned(),
        decided: row.decided,
        would_wait: row.would_wait,
    })
}

/// The outcome of [`explain`], as data and, with `{}`, as text.
#[derive(Clone, Debug)]
pub struct Explanation {
    operation: &'static str,
    reason: &'static Reason,
    stage: Stage,
    grounds: Result<Grounds, Cause>,
    ambiguous: bool,
    strategy: String,
    decided: Planned,
    would_wait: Option<Duration>,
}

/// A predicted decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// A retry, after a jittered delay between these two.
    Retry {
        /// The shortest delay.
        shortest: Duration,
        /// The longest delay.
        longest: Duration,
        /// Whether the deadline would cut the longest delay short.
        capped: bool,
    },
    /// No retry.
    Refused(Cause),
    /// The strategy would have to ask another service first.
    Asks,
}

impl Explanation {
    /// Returns whether there would be a retry.
    pub fn would_retry(&self) -> bool {
        matches!(self.decided, Planned::Retry { .. })
    }

    /// Returns the predicted decision.
    pub const fn decided(&self) -> Planned {
        self.decided
    }

    /// Returns the grounds of a lawful retry, or the cause why it is unlawful.
    pub const fn grounds(&self) -> Result<Grounds, Cause> {
        self.grounds
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, reason, stage) = (self.operation, self.reason, self.stage);
        writeln!(f, "{operation} ended with {reason} ({stage})")?;
        write!(f, "  decision  {}", self.decided)?;
        if self.ambiguous {
            f.write_str(", may have been applied")?;
        }
        match (self.decided, self.grounds) {
            (Planned::Retry { .. } | Planned::Asks, Ok(grounds)) => {
                writeln!(f, "\n  because   {grounds}")?;
            }
            (Planned::Refused(cause), _) | (_, Err(cause)) => {
                let would_wait = plan::would_wait(cause, self.would_wait);
                writeln!(f, "\n  because   {cause}{would_wait}")?;
            }
        }
        write!(f, "  strategy  {}", self.strategy)
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Planned::Retry {
                shortest,
                longest,
                capped,
            } => {
                f.write_str("retry in ")?;
                if shortest != longest {
                    write!(f, "{} to ", Time(*shortest))?;
                }
                write!(f, "{}", Time(*longest))?;
                if *capped {
                    f.write_str(" (cut by the deadline)")
                } else {
                    Ok(())
                }
            }
            Planned::Refused(_) => f.write_str("no retry"),
            Planned::Asks => f.write_str("the strategy asks another service"),
        }
    }
}

/// A strategy that cannot be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexplainable {
    why: &'static str,
}

impl fmt::Display for Unexplainable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot be explained: {}", self.why)
    }
}

impl StdError for Unexplainable {}

#[cfg(test)]
mod tests;
