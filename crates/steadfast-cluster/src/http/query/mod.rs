//! The query service.
//!
//! The service executes the statements of `steadfast-sqlpp`; scripts answer everything else. A
//! request contains a statement or the name of a prepared plan. `PlanLoss` makes plans
//! disappear, as they do when a node restarts.

#[cfg(feature = "sqlpp")]
mod documents;
#[cfg(feature = "sqlpp")]
mod session;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::options;
use super::statement_response::ResponseMeta;
use super::{HttpRequest, HttpResponse, HttpSession};
use crate::users::User;

/// Answers a request to the query service.
pub(super) fn answer(
    request: &HttpRequest,
    session: &HttpSession,
    user: &Arc<User>,
) -> HttpResponse {
    match request.segments().as_slice() {
        ["query"] | ["query", "service"] => {}
        ["admin" | "query" | "evaluator", ..] => return HttpResponse::unsupported(&request.path),
        _ => return HttpResponse::text(404, "404 page not found"),
    }
    let members = match options::read(request) {
        Ok(members) => members,
        Err(sentence) => return refuse(400, 1070, &sentence),
    };
    let header = ResponseMeta::new(options::context_id(&members));
    if !matches!(request.method.as_str(), "GET" | "POST") {
        let message = format!("Unsupported http method: {}", request.method);
        return header.failed(405, error(1010, &message));
    }
    execute(members, header, session, user)
}

#[cfg(feature = "sqlpp")]
fn execute(
    members: Map<String, Value>,
    mut header: ResponseMeta,
    session: &HttpSession,
    user: &Arc<User>,
) -> HttpResponse {
    use steadfast_sqlpp::{Executed, QueryError, RequestOptions, ResultRows};

    use std::time::Duration;

    use super::rows::{Break, respond};

    /// While nothing has been written, an error can still have its own status.
    fn first_is_good(mut rows: ResultRows) -> Result<ResultRows, QueryError> {
        match rows.next() {
            None => Ok(rows),
            Some(Err(error)) if !error.comes_with_rows() => Err(error),
            Some(Err(error)) => Ok(Box::new(std::iter::once(Err(error)))),
            Some(first) => Ok(Box::new(std::iter::once(first).chain(rows))),
        }
    }

    let options = RequestOptions::from(members);
    header.metrics = !options.is_off("metrics");
    let signature = !options.is_off("signature");
    let timeout = options.timeout();
    let started = header.started;
    let late = move || {
        let limit = timeout.filter(|limit| started.elapsed() >= *limit);
        limit.map(QueryError::timeout)
    };
    header.profile = matches!(options.text("profile"), Some("phases" | "timings"));
    let session = session::QuerySession::shared(session, user);
    let executed = match late() {
        Some(error) => Err(error),
        None => steadfast_sqlpp::execute(&options, &session),
    };
    let executed = executed.or_else(|error| {
        if !error.comes_with_rows() {
            return Err(error);
        }
        Ok(Executed::failing(error))
    });
    let mut held = 0;
    let executed = executed.and_then(|executed| {
        held = executed.held;
        header.prepared.clone_from(&executed.prepared);
        header.mutations = executed.mutations;
        header.signature = signature.then_some(executed.signature);
        first_is_good(executed.rows)
    });
    match executed {
        Ok(rows) => {
            let rows = rows.map(move |row| late().map_or(row, Err));
            let rows = rows.map(|row| row.map_err(|error| Break::Error(error.to_json())));
            let envelope = header.around_rows();
            respond(200, envelope, Box::new(rows), Duration::ZERO).holding(held)
        }
        Err(error) => header.failed(error.http_status(), error.to_json()),
    }
}

#[cfg(not(feature = "sqlpp"))]
fn execute(
    _: Map<String, Value>,
    header: ResponseMeta,
    _: &HttpSession,
    _: &Arc<User>,
) -> HttpResponse {
    let message = "This cluster was built without its feature `sqlpp`: script the answer with \
                   `POST /scripts` of the control endpoint, or with `TestCluster::script`";
    header.failed(400, error(1020, message))
}

/// The response to missing or wrong credentials.
pub(super) fn unauthenticated() -> HttpResponse {
    refuse(401, 10_000, "Failure to authenticate user")
}

/// The statement of a request, also behind a plan; for scripts to look at.
pub(super) fn statement_of(request: &HttpRequest, session: &HttpSession) -> Option<String> {
    let members = options::read(request).ok()?;
    if let Some(statement) = members.get("statement").and_then(Value::as_str) {
        return Some(statement.to_owned());
    }
    statement_of_plan(session, members.get("prepared")?.as_str()?)
}

#[cfg(feature = "sqlpp")]
fn statement_of_plan(session: &HttpSession, name: &str) -> Option<String> {
    session.shared.plans.peek(name)
}

#[cfg(not(feature = "sqlpp"))]
fn statement_of_plan(_: &HttpSession, _: &str) -> Option<String> {
    None
}

fn refuse(status: u16, code: u32, message: &str) -> HttpResponse {
    ResponseMeta::new(None).failed(status, error(code, message))
}

fn error(code: u32, message: &str) -> Value {
    json!({"code": code, "msg": message})
}
