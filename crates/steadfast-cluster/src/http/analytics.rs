//! The analytics service.
//!
//! Literals and parameters are echoed as the query service does; there are no analytics
//! collections, so whatever reads from one is for scripts.

use std::time::Duration;

use serde_json::{Value, json};

use super::language::{LanguageError, Parameters, Scope, Select, Statement, parse};
use super::query::answer::Header;
use super::query::options::Options;
use super::query::signature;
use super::rows::respond;
use super::{Request, Response};

/// Answers a request to the analytics service.
pub(super) fn answer(request: &Request) -> Response {
    if request.path != "/analytics/service" && request.path != "/query/service" {
        return Response::text(404, "404 page not found");
    }
    let options = match Options::read(request) {
        Ok(options) => options,
        Err(sentence) => {
            return refuse(
                &Header::analytics(None),
                &Failure::new(400, 21_024, sentence),
            );
        }
    };
    let mut header = Header::analytics(options.text("client_context_id"));
    match execute(&options) {
        Ok((signature, rows)) => {
            header.signature = Some(signature);
            let rows = Box::new(rows.into_iter().map(Ok));
            respond(200, header.around_rows(), rows, Duration::ZERO)
        }
        Err(failure) => refuse(&header, &failure),
    }
}

/// The answer to who is not who they say.
pub(super) fn unauthenticated() -> Response {
    let failure = Failure::new(401, 20_000, "Unauthorized user.".into());
    refuse(&Header::analytics(None), &failure)
}

struct Failure {
    status: u16,
    code: u32,
    message: String,
}

impl Failure {
    fn new(status: u16, code: u32, message: String) -> Self {
        Self {
            status,
            code,
            message,
        }
    }
}

impl From<LanguageError> for Failure {
    fn from(error: LanguageError) -> Self {
        Self::new(400, 24_000, error.to_string())
    }
}

fn execute(options: &Options) -> Result<(Value, Vec<Value>), Failure> {
    let Some(statement) = options.text("statement") else {
        let message = "No statement provided".to_owned();
        return Err(Failure::new(400, 21_025, message));
    };
    let parameters = options
        .parameters()
        .map_err(|sentence| Failure::new(400, 21_024, sentence))?;
    match parse(statement)? {
        Statement::Select(select) => echo(&select, &parameters),
        Statement::Write(write) => Err(unknown_collection(&write.source.keyspace)),
        Statement::Prepare { .. } | Statement::Execute { .. } => Err(Failure::new(
            400,
            24_000,
            "Syntax error: analytics has no prepared statements".into(),
        )),
    }
}

fn echo(select: &Select, parameters: &Parameters) -> Result<(Value, Vec<Value>), Failure> {
    if let Some(source) = &select.source {
        return Err(unknown_collection(&source.keyspace));
    }
    let scope = Scope {
        parameters,
        row: None,
        count: None,
    };
    let rows = if scope.holds(select.filter.as_ref())? {
        vec![scope.project(&select.projection)?]
    } else {
        Vec::new()
    };
    Ok((signature(&select.projection), rows))
}

fn unknown_collection(name: &impl std::fmt::Display) -> Failure {
    Failure::new(
        400,
        24_045,
        format!("Cannot find analytics collection {name}, nor an alias of this name"),
    )
}

fn refuse(header: &Header, failure: &Failure) -> Response {
    let error = json!({"code": failure.code, "msg": failure.message});
    header.failed(failure.status, error)
}
