//! Errors of the query service.

use serde_json::{Value, json};

use super::super::language::LanguageError;
use super::super::rows::Break;
use crate::indexes::IndexError;

/// An error of the query service.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct QueryError {
    pub code: u32,
    pub message: String,
    /// Whether the service calls it retryable, if it says so.
    pub retry: Option<bool>,
    /// What the service adds about the cause.
    pub reason: Option<Value>,
}

impl QueryError {
    pub(in crate::http) fn new(code: u32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry: None,
            reason: None,
        }
    }

    pub(super) fn read_only() -> Self {
        let message = "The server or request is read-only and cannot accept this write statement.";
        Self::new(1000, message)
    }

    pub(super) fn unauthenticated() -> Self {
        Self::new(10_000, "Failure to authenticate user")
    }

    pub(super) fn unauthorized(what: &str) -> Self {
        Self::new(
            13_014,
            format!("User does not have credentials to run {what}."),
        )
    }

    pub(super) fn unknown_keyspace(name: &str) -> Self {
        Self::new(
            12_003,
            format!("Keyspace not found in CB datastore: {name}"),
        )
    }

    pub(super) fn no_such_plan(name: &str) -> Self {
        Self::new(4040, format!("No such prepared statement: {name}"))
    }

    pub(super) fn unrecognizable_plan(name: &str) -> Self {
        Self::new(4050, format!("Unrecognizable prepared statement: {name}"))
    }

    pub(super) fn undecodable_plan(name: &str) -> Self {
        Self::new(4070, format!("Unable to decode prepared statement: {name}"))
    }

    /// The HTTP status of an answer that is this error and nothing else.
    pub(super) const fn http_status(&self) -> u16 {
        match self.code {
            1000 => 403,
            1010 => 405,
            1020..=1070 | 3000..=3999 => 400,
            4000 | 4040 => 404,
            10_000..=10_999 | 13_014 => 401,
            _ => 500,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut shown = json!({"code": self.code, "msg": self.message});
        if let Some(retry) = self.retry {
            shown["retry"] = retry.into();
        }
        if let Some(reason) = &self.reason {
            shown["reason"] = reason.clone();
        }
        shown
    }
}

impl From<LanguageError> for QueryError {
    fn from(error: LanguageError) -> Self {
        let code = match &error {
            LanguageError::Syntax(_) => 3000,
            LanguageError::Evaluation(_) => 5010,
            // "Not implemented" in a real service.
            LanguageError::Unsupported(_) => 1020,
        };
        Self::new(code, error.to_string())
    }
}

impl From<IndexError> for QueryError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Exists(name) => {
                Self::new(4300, format!("The index {name} already exists."))
            }
            IndexError::NotFound(name) => Self::new(12_016, format!("GSI index {name} not found.")),
            IndexError::NoPrimary => Self::new(12_004, "GSI index #primary not found."),
            IndexError::TooMany => Self::new(5000, "Too many indexes."),
        }
    }
}

impl From<QueryError> for Break {
    fn from(error: QueryError) -> Self {
        Self::Error(error.to_json())
    }
}
