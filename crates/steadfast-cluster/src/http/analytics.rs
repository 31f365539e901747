//! The analytics service.
//!
//! Literals and parameters are echoed as by the query service. There are no analytics
//! collections; scripts answer statements that read from one.

use std::time::Duration;

use serde_json::{Value, json};

use super::language::{EvalScope, LanguageError, Parameters, Select, Statement, parse};
use super::query::options::RequestOptions;
use super::query::response::ResponseMeta;
use super::query::signature;
use super::rows::respond;
use super::{HttpRequest, HttpResponse};

/// Answers a request to the analytics service.
pub(super) fn answer(request: &HttpRequest) -> HttpResponse {
    match request.segments().as_slice() {
        ["analytics" | "query", "service"] => {}
        ["analytics", "link", ..] => return HttpResponse::unsupported("analytics links"),
        _ => return HttpResponse::text(404, "404 page not found"),
    }
    let options = match RequestOptions::read(request) {
        Ok(options) => options,
        Err(sentence) => {
            return refuse(
                &ResponseMeta::analytics(None),
                &AnalyticsError::new(400, 21_024, sentence),
            );
        }
    };
    let mut header = ResponseMeta::analytics(options.text("client_context_id"));
    match execute(&options) {
        Ok((signature, rows)) => {
            header.signature = Some(signature);
            let rows = Box::new(rows.into_iter().map(Ok));
            respond(200, header.around_rows(), rows, Duration::ZERO)
        }
        Err(error) => refuse(&header, &error),
    }
}

/// The response to missing or wrong credentials.
pub(super) fn unauthenticated() -> HttpResponse {
    let error = AnalyticsError::new(401, 20_000, "Unauthorized user.".into());
    refuse(&ResponseMeta::analytics(None), &error)
}

struct AnalyticsError {
    status: u16,
    code: u32,
    message: String,
}

impl AnalyticsError {
    fn new(status: u16, code: u32, message: String) -> Self {
        Self {
            status,
            code,
            message,
        }
    }
}

impl From<LanguageError> for AnalyticsError {
    fn from(error: LanguageError) -> Self {
        // 24000 is a syntax error, which a statement that is too much for the cluster is not.
        let code = match &error {
            LanguageError::Unsupported(_) => 25_000,
            LanguageError::Syntax(_) | LanguageError::Evaluation(_) => 24_000,
        };
        Self::new(400, code, error.to_string())
    }
}

fn execute(options: &RequestOptions) -> Result<(Value, Vec<Value>), AnalyticsError> {
    let Some(statement) = options.text("statement") else {
        let message = "No statement provided".to_owned();
        return Err(AnalyticsError::new(400, 21_025, message));
    };
    let parameters = options
        .parameters()
        .map_err(|sentence| AnalyticsError::new(400, 21_024, sentence))?;
    match parse(statement)? {
        Statement::Select(select) => echo(&select, &parameters),
        Statement::Write(write) => Err(unknown_collection(&write.source.keyspace)),
        Statement::Index(index) => Err(unknown_collection(&index.keyspace)),
        Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Transaction(_) => {
            Err(AnalyticsError::new(
                400,
                24_000,
                "Syntax error: analytics has neither prepared statements nor transactions".into(),
            ))
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

fn unknown_collection(name: &impl std::fmt::Display) -> AnalyticsError {
    AnalyticsError::new(
        400,
        24_045,
        format!("Cannot find analytics collection {name}, nor an alias of this name"),
    )
}

fn refuse(header: &ResponseMeta, error: &AnalyticsError) -> HttpResponse {
    let shown = json!({"code": error.code, "msg": error.message});
    header.failed(error.status, shown)
}
