//! Violations of the accounting.

use std::fmt;

use serde::Serialize;

use super::write::WriteOutcome;
use crate::history::{Bar, Counterexample};

/// A kind of violation, and why it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "because")]
pub(crate) enum ViolationKind {
    /// The write was acknowledged and is missing.
    Lost(&'static str),
    /// The write is there more than once.
    AppliedTwice,
    /// No write or no fault explains it.
    Unexplained(&'static str),
    /// The cluster did not answer when it was to be read back.
    Unchecked(&'static str),
}

/// A violation, with all that is known about the write.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Violation {
    #[serde(flatten)]
    pub(crate) kind: ViolationKind,
    pub(crate) operation: &'static str,
    /// The id of the write, or the key of the document.
    pub(crate) subject: String,
    pub(crate) outcome: Option<WriteOutcome>,
    /// How often the journal has it.
    pub(crate) applied: u8,
    /// How often it was found when it was read back.
    pub(crate) found: Option<u8>,
    /// The smallest history that shows it, for operations without an order.
    pub(crate) operations: Vec<Bar>,
    /// The client's error, attempt by attempt.
    pub(crate) history: Option<String>,
}

impl Violation {
    /// Creates one that is not about a single write: a read, or an entry of the journal.
    pub(crate) fn new(
        kind: ViolationKind,
        operation: &'static str,
        subject: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            operation,
            subject: subject.into(),
            outcome: None,
            applied: 0,
            found: None,
            operations: Vec::new(),
            history: None,
        }
    }

    /// Creates one about a document whose operations have no order.
    pub(crate) fn without_order(example: Counterexample, key: String) -> Self {
        let kind = ViolationKind::Unexplained(example.why);
        Self {
            operations: example.operations,
            ..Self::new(kind, "history", key)
        }
    }

    #[must_use]
    pub(crate) fn with_history(mut self, history: impl Into<String>) -> Self {
        self.history = Some(history.into());
        self
    }
}

impl fmt::Display for ViolationKind {
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
        write!(f, "{} {}: {}", self.operation, self.subject, self.kind)?;
        if let Some(outcome) = self.outcome {
            f.write_str(match outcome {
                WriteOutcome::Acknowledged => "; the client reported success",
                WriteOutcome::Failed => "; the client reported a failure, not applied",
                WriteOutcome::Ambiguous => "; the client reported that it may have been applied",
            })?;
            write!(f, ", applied {} times", self.applied)?;
        }
        if let Some(found) = self.found {
            write!(f, ", found {found} times")?;
        }
        for bar in &self.operations {
            write!(f, "\n    {bar}")?;
        }
        for line in self.history.iter().flat_map(|history| history.lines()) {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}
