//! The query service.
//!
//! The service executes statements of the small language in the `language` folder;
//! scripts answer everything else. A request contains a statement or the name of a
//! prepared plan. [`PlanLoss`] makes plans disappear, as they do when a node restarts.

pub(super) mod error;
mod execute;
mod indexes;
mod keyspace;
pub(super) mod options;
mod plans;
pub(super) mod response;
mod select;
mod transaction;
mod write;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub(super) use execute::signature;
pub use plans::PlanLoss;
pub(crate) use plans::PreparedPlans;
pub(crate) use transaction::Transactions;

use super::consistency::{Unmet, check_scan_vectors};
use super::rows::{Break, Rows, respond};
use super::{HttpRequest, HttpResponse, HttpSession};
use crate::users::User;
use error::QueryError;
use execute::{Executed, Execution};
use options::RequestOptions;
use response::ResponseMeta;

/// Answers a request to the query service.
pub(super) fn answer(request: &HttpRequest, session: &HttpSession, user: &User) -> HttpResponse {
    if request.path != "/query/service" && request.path != "/query" {
        return HttpResponse::text(404, "404 page not found");
    }
    let options = match RequestOptions::read(request) {
        Ok(options) => options,
        Err(sentence) => return refuse(None, QueryError::new(1070, sentence)),
    };
    let context_id = options.text("client_context_id");
    if !matches!(request.method.as_str(), "GET" | "POST") {
        let message = format!("Unsupported http method: {}", request.method);
        return refuse(context_id, QueryError::new(1010, message));
    }
    let mut header = ResponseMeta::new(context_id);
    header.profile = matches!(options.text("profile"), Some("phases" | "timings"));
    let executed = execute(&options, session, user).or_else(|error| {
        if !QueryError::comes_with_rows(error.code) {
            return Err(error);
        }
        Ok(Executed {
            rows: Box::new(std::iter::once(Err(error.into()))),
            ..Executed::with_rows(Value::Null, Vec::new())
        })
    });
    let mut held = 0;
    let executed = executed.and_then(|executed| {
        held = executed.held;
        header.prepared.clone_from(&executed.prepared);
        header.mutations = executed.mutations;
        header.signature = Some(executed.signature);
        first_is_good(executed.rows)
    });
    match executed {
        Ok(rows) => respond(200, header.around_rows(), rows, Duration::ZERO).holding(held),
        Err(error) => header.failed(error.http_status(), error.to_json()),
    }
}

/// The response to missing or wrong credentials.
pub(super) fn unauthenticated() -> HttpResponse {
    refuse(None, QueryError::unauthenticated())
}

/// The statement of a request, also behind a plan; for scripts to look at.
pub(super) fn statement_of(request: &HttpRequest, session: &HttpSession) -> Option<String> {
    let options = RequestOptions::read(request).ok()?;
    match (options.text("statement"), options.text("prepared")) {
        (Some(statement), _) => Some(statement.to_owned()),
        (None, Some(name)) => session.shared.plans.peek(name),
        (None, None) => None,
    }
}

fn execute(
    options: &RequestOptions,
    session: &HttpSession,
    user: &User,
) -> Result<Executed, QueryError> {
    let parameters = options
        .parameters()
        .map_err(|sentence| QueryError::new(1070, sentence))?;
    if options.text("scan_consistency") == Some("at_plus") {
        check_scan_vectors(options.value("scan_vectors"), session).map_err(
            |unmet| match unmet {
                Unmet::Malformed(sentence) => QueryError::new(1070, sentence),
                Unmet::NotReached(vector) => {
                    QueryError::new(12_015, format!("Index scan timed out - {vector}"))
                }
            },
        )?;
    }
    let mut execution = Execution {
        session,
        user,
        options,
        parameters,
        transaction: None,
    };
    if options.flag("tximplicit") {
        return execution.in_a_transaction();
    }
    // In use until the statement is executed.
    let joined = options
        .text("txid")
        .map(|id| session.shared.transactions.join(id, session, user))
        .transpose()?;
    execution.transaction = joined.as_ref().map(|joined| Arc::clone(&joined.0));
    run(&mut execution)
}

/// Executes the statement of a request, or its plan.
fn run(execution: &mut Execution<'_>) -> Result<Executed, QueryError> {
    let options = execution.options;
    match (options.text("prepared"), options.text("statement")) {
        (Some(name), None) => execution.run_prepared(name),
        (None, Some(statement)) => execution.run(statement),
        (Some(_), Some(_)) => Err(QueryError::new(
            1060,
            "Multiple values for statement or prepared.",
        )),
        (None, None) => Err(QueryError::new(1050, "No statement or prepared value")),
    }
}

/// Rows whose first is not an error: while nothing has been written, an error can still have its
/// own status.
fn first_is_good(mut rows: Rows) -> Result<Rows, QueryError> {
    match rows.next() {
        None => Ok(rows),
        Some(Err(Break::Error(error))) => {
            let error = to_error(&error);
            match QueryError::comes_with_rows(error.code) {
                true => Ok(Box::new(std::iter::once(Err(error.into())))),
                false => Err(error),
            }
        }
        Some(first) => Ok(Box::new(std::iter::once(first).chain(rows))),
    }
}

fn to_error(shown: &Value) -> QueryError {
    let code = shown["code"].as_u64();
    QueryError {
        code: code.and_then(|code| code.try_into().ok()).unwrap_or(5000),
        message: shown["msg"].as_str().unwrap_or_default().to_owned(),
        retry: shown["retry"].as_bool(),
        reason: shown.get("reason").cloned(),
        cause: shown.get("cause").cloned().map(Box::new),
    }
}

fn refuse(context_id: Option<&str>, error: QueryError) -> HttpResponse {
    ResponseMeta::new(context_id).failed(error.http_status(), error.to_json())
}
