//! Errors as JSON, with the field names of the SDKs.

use serde_json::{Map, Value, json};

use super::Error;

pub(super) fn error_to_json(error: &Error) -> Value {
    let context = error.context();
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    put("error", json!(error.kind().name()));
    put("operation", json!(context.operation));
    put("message", json!(error.to_string()));
    put("ambiguous", json!(error.is_ambiguous()));
    put("note", json!(context.note));
    put("bucket", json!(context.target.bucket.as_deref()));
    put("scope", json!(context.target.scope.as_deref()));
    put("collection", json!(context.target.collection.as_deref()));
    put("documentId", json!(context.target.key));
    if let Some(kv) = context.kv() {
        put("status", json!(kv.status.map(|status| status.code())));
        put(
            "statusName",
            json!(kv.status.map(|status| status.to_string())),
        );
        put("opaque", json!(kv.opaque));
        put("errorMapName", json!(kv.error_map_name));
        put("errorMapDescription", json!(kv.error_map_description));
        let attributes = kv.error_map_attributes;
        let attributes = attributes.map(|them| them.json_names().collect::<Vec<_>>());
        put("errorMapAttributes", json!(attributes));
        put("xerrorRef", json!(kv.reference));
        put("xerrorContext", json!(kv.server_text));
        put("lastDispatchedTo", json!(kv.dispatched_to.as_deref()));
        put("index", json!(kv.path_index));
        put("lastDispatchedFrom", json!(kv.dispatched_from.as_deref()));
        let micros = kv.server_duration.map(|it| it.as_micros() as u64);
        put("lastServerDurationUs", json!(micros));
    }
    if let Some(http) = context.http() {
        put("httpStatus", json!(http.status));
        put("errorCode", json!(http.code));
        put("errorMessage", json!(http.message));
        put("statement", json!(http.statement));
        put("clientContextId", json!(http.client_context_id));
        put("httpRequest", json!(http.request));
        put("lastDispatchedTo", json!(http.dispatched_to.as_deref()));
    }
    if let Some(report) = context.report() {
        put("service", json!(report.request().service()));
        put("retryAttempts", json!(report.retries()));
        let reasons: Vec<_> = report
            .reasons()
            .iter()
            .map(|reason| reason.name())
            .collect();
        put("retryReasons", json!(reasons));
        put("request", report.to_json());
    }
    Value::Object(fields)
}
