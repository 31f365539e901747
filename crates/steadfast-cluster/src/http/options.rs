//! Options of a query or analytics request, from a JSON body or a form.

use serde_json::{Map, Value};

use super::HttpRequest;

/// Reads the options by name; the sentence says what is wrong with them.
pub(super) fn read(request: &HttpRequest) -> Result<Map<String, Value>, String> {
    let mut members = Map::new();
    for (name, value) in &request.parameters {
        // Forms carry JSON where a value is not plain text.
        let value = match name.as_str() {
            "statement" | "prepared" | "encoded_plan" | "client_context_id" | "query_context" => {
                Value::String(value.clone())
            }
            _ => serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone())),
        };
        members.insert(name.clone(), value);
    }
    let is_form = request
        .headers
        .get(hyper::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    if !is_form && !request.body.is_empty() {
        let body: Value = serde_json::from_slice(&request.body)
            .map_err(|error| format!("unable to parse JSON: {error}"))?;
        match body {
            Value::Object(body) => members.extend(body),
            _ => return Err("unable to parse JSON: the body is not an object".into()),
        }
    }
    Ok(members)
}

/// The id that the client gave to a request.
pub(super) fn context_id(members: &Map<String, Value>) -> Option<&str> {
    members.get("client_context_id")?.as_str()
}
