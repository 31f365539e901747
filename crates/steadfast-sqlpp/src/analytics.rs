//! Statements of the analytics service.
//!
//! Literals and parameters are echoed as by the query service. There are no analytics
//! collections.

use serde_json::{Value, json};

use crate::execute::signature;
use crate::language::{
    EvalScope, KeyspacePath, LanguageError, Parameters, Random, Select, Statement, parse,
};
use crate::options::RequestOptions;

/// An error of the analytics service. Its HTTP status is 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalyticsError {
    /// The code.
    pub code: u32,
    /// The message.
    pub message: String,
}

impl AnalyticsError {
    fn new(code: u32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    /// The error in a response.
    pub fn to_json(&self) -> Value {
        json!({"code": self.code, "msg": self.message})
    }
}

impl From<LanguageError> for AnalyticsError {
    fn from(error: LanguageError) -> Self {
        // 24000 is a syntax error, which a statement that is too much for the cluster is not.
        let code = match &error {
            LanguageError::Unsupported(_) => 25_000,
            LanguageError::Syntax(_) | LanguageError::Evaluation(_) => 24_000,
        };
        Self::new(code, error.to_string())
    }
}

/// Executes the statement of a request, and returns its signature and its rows.
///
/// # Errors
/// If there is no statement, or it is invalid, or needs an analytics collection or scope.
pub fn execute(
    options: &RequestOptions,
    random: Random,
) -> Result<(Value, Vec<Value>), AnalyticsError> {
    let Some(statement) = options.text("statement") else {
        return Err(AnalyticsError::new(21_025, "No statement provided"));
    };
    let parameters = options
        .parameters(random)
        .map_err(|sentence| AnalyticsError::new(21_024, sentence))?;
    let statement = parse(statement)?;
    check_scope(options)?;
    match statement {
        Statement::Select(select) => echo(&select, &parameters),
        Statement::Write(write) => Err(unknown_collection(&write.source.keyspace)),
        Statement::Index(index) => Err(unknown_collection(&index.keyspace)),
        Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Transaction(_) => {
            Err(AnalyticsError::new(
                24_000,
                "Syntax error: analytics has neither prepared statements nor transactions",
            ))
        }
    }
}

/// Rejects a scope other than the default one: there are no analytics scopes.
fn check_scope(options: &RequestOptions) -> Result<(), AnalyticsError> {
    let Some(context) = options.text("query_context") else {
        return Ok(());
    };
    match KeyspacePath::quoted(context).parts.as_slice() {
        [name] if name.is_empty() || name == "Default" => Ok(()),
        parts => {
            let message = format!("Cannot find analytics scope {}", parts.join("."));
            Err(AnalyticsError::new(24_034, message))
        }
    }
}

fn echo(select: &Select, parameters: &Parameters) -> Result<(Value, Vec<Value>), AnalyticsError> {
    if let Some(source) = &select.source {
        return Err(unknown_collection(&source.keyspace));
    }
    let scope = EvalScope {
        parameters,
        row: None,
        group: None,
        alias: "",
    };
    let rows = if scope.passes(select.filter.as_ref())? {
        vec![scope.project(&select.projection)?]
    } else {
        Vec::new()
    };
    Ok((signature(&select.projection), rows))
}

fn unknown_collection(name: &KeyspacePath) -> AnalyticsError {
    if name.parts.first().is_some_and(|first| first == "Metadata") {
        return LanguageError::Unsupported(name.parts.join(".")).into();
    }
    AnalyticsError::new(
        24_045,
        format!("Cannot find analytics collection {name}, nor an alias of this name"),
    )
}
