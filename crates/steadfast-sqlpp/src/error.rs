//! Errors of the query service.

use std::time::Duration;

use serde_json::{Value, json};

use crate::index_definitions::IndexError;
use crate::language::LanguageError;

/// An error of the query service.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryError {
    /// The code.
    pub code: u32,
    /// The message.
    pub message: String,
    /// Whether the service calls it retryable, if it says so.
    pub retry: Option<bool>,
    /// What the service adds about the cause.
    pub reason: Option<Value>,
    /// What the service says about the rest of the transaction.
    pub cause: Option<Box<Value>>,
}

impl QueryError {
    /// An error that says no more than this.
    pub fn new(code: u32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry: None,
            reason: None,
            cause: None,
        }
    }

    /// The error with what an SDK is to do about its transaction.
    pub(crate) fn with_cause(self, raise: &str, retry: bool, rollback: bool) -> Self {
        let cause = json!({"raise": raise, "retry": retry, "rollback": rollback});
        Self {
            cause: Some(Box::new(cause)),
            ..self
        }
    }

    /// The error with the request to roll the transaction back and to try it again.
    pub(crate) fn asking_for_a_retry(self) -> Self {
        self.with_cause("failed", true, true)
    }

    pub(crate) fn no_transaction(id: &str) -> Self {
        let message = format!("Transaction context error: transaction {id:?} is not open here");
        Self::new(17_004, message)
    }

    pub(crate) fn not_in_a_transaction(what: &str) -> Self {
        let message = format!("{what} is not supported within the transaction");
        Self::new(17_002, message)
    }

    pub(crate) fn duplicate_key(key: &str) -> Self {
        Self::new(17_012, format!("Duplicate Key: {key}"))
    }

    pub(crate) fn key_not_found(key: &str) -> Self {
        Self::new(17_014, format!("Key not found {key}"))
    }

    /// Returns whether the response is otherwise complete: the error is one of a document or of a
    /// transaction.
    pub const fn comes_with_rows(&self) -> bool {
        matches!(self.code, 12_009 | 17_000..=17_999)
    }

    pub(crate) fn read_only() -> Self {
        let message = "The server or request is read-only and cannot accept this write statement.";
        Self::new(1000, message)
    }

    /// The credentials are missing or wrong.
    pub fn unauthenticated() -> Self {
        Self::new(10_000, "Failure to authenticate user")
    }

    pub(crate) fn unauthorized(what: &str) -> Self {
        Self::new(
            13_014,
            format!("User does not have credentials to run {what}."),
        )
    }

    pub(crate) fn unknown_keyspace(name: &str) -> Self {
        Self::new(
            12_003,
            format!("Keyspace not found in CB datastore: {name}"),
        )
    }

    pub(crate) fn unknown_scope(bucket: &str, scope: &str) -> Self {
        let message = format!("Scope not found in CB datastore default:{bucket}.{scope}");
        Self::new(12_021, message)
    }

    pub(crate) fn no_such_plan(name: &str) -> Self {
        Self::new(4040, format!("No such prepared statement: {name}"))
    }

    pub(crate) fn unrecognizable_plan(name: &str) -> Self {
        Self::new(4050, format!("Unrecognizable prepared statement: {name}"))
    }

    pub(crate) fn undecodable_plan(name: &str) -> Self {
        Self::new(4070, format!("Unable to decode prepared statement: {name}"))
    }

    /// The request took longer than its timeout.
    pub fn timeout(limit: Duration) -> Self {
        Self::new(1080, format!("Timeout {limit:?} exceeded"))
    }

    /// The HTTP status of an answer that is this error and nothing else.
    pub const fn http_status(&self) -> u16 {
        match self.code {
            1000 => 403,
            1010 => 405,
            1080 => 200,
            1020..=1070 | 3000..=3999 => 400,
            4000 | 4040 => 404,
            10_000..=10_999 | 13_014 => 401,
            _ => 500,
        }
    }

    /// The error in a response.
    pub fn to_json(&self) -> Value {
        let mut shown = json!({"code": self.code, "msg": self.message});
        if let Some(retry) = self.retry {
            shown["retry"] = retry.into();
        }
        if let Some(reason) = &self.reason {
            shown["reason"] = reason.clone();
        }
        if let Some(cause) = &self.cause {
            shown["cause"] = (**cause).clone();
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
