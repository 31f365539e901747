//! What must not be.

use std::fmt;

use serde::Serialize;

use super::record::Outcome;

/// What is wrong with a write, or with what was found in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "wrong", content = "because")]
pub enum Wrong {
    /// It was acknowledged and is not there.
    Lost(&'static str),
    /// It is there more often than once.
    AppliedTwice,
    /// Nothing explains it.
    Unexplained(&'static str),
    /// The cluster did not answer when it was to be looked for.
    Unchecked(&'static str),
}

/// Something that must not be, with all that is known of it.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// What is wrong.
    #[serde(flatten)]
    pub wrong: Wrong,
    /// Which operation it was.
    pub operation: &'static str,
    /// Which write it was, or which document.
    pub what: String,
    /// What the client was told, of a write.
    pub outcome: Option<Outcome>,
    /// How often it was applied, of a write.
    pub applied: u8,
    /// How often it was found, if somebody looked.
    pub found: Option<u8>,
    /// What the error said, attempt by attempt.
    pub history: Option<String>,
}

impl Violation {
    /// Of something that is no write of its own: a read, an entry of the journal.
    pub fn of(wrong: Wrong, operation: &'static str, what: impl Into<String>) -> Self {
        Self {
            wrong,
            operation,
            what: what.into(),
            outcome: None,
            applied: 0,
            found: None,
            history: None,
        }
    }

    /// With what the error said.
    #[must_use]
    pub fn with_history(mut self, history: impl Into<String>) -> Self {
        self.history = Some(history.into());
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::AppliedTwice => f.write_str("applied twice"),
            Self::Unexplained(why) => write!(f, "unexplained: {why}"),
            Self::Unchecked(why) => write!(f, "unchecked: {why}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.what, self.wrong)?;
        match self.outcome {
            Some(Outcome::Acknowledged) => f.write_str("; acknowledged")?,
            Some(Outcome::Failed) => f.write_str("; failed, not applied as the client was told")?,
            Some(Outcome::Ambiguous) => {
                f.write_str("; may have been applied as the client was told")?;
            }
            None => {}
        }
        if self.outcome.is_some() {
            write!(f, ", applied {} times", self.applied)?;
        }
        if let Some(found) = self.found {
            write!(f, ", found {found} times")?;
        }
        for line in self.history.iter().flat_map(|history| history.lines()) {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}
