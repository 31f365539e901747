//! Map-reduce views: what is sent, and what the service's errors mean.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use steadfast_wire::config::Service;

use super::http::{HttpRequest, HttpSender, ServiceError, ServiceResponse};
use super::path::{pairs, segment};
use super::rows::{Members, RowKind, RowRequest, RowService, Rows};
use super::statement::encode;
use crate::cluster::Handle;
use crate::error::{Error, ErrorKind, OperationTarget};
use crate::reason::{VIEWS_NO_ACTIVE_PARTITION, VIEWS_TEMPORARY_FAILURE};
use crate::server_text::one_line;

const OPERATION: &str = "view";

/// The rows of a view. Read them as [`ViewRow`], or as a type of your own.
pub type ViewRows = Rows<ViewMeta>;

/// A request for a view's rows; await it to send it. It is idempotent.
pub type View = RowRequest<ViewSettings>;

/// The part of a [`View`] that other requests do not have.
pub struct ViewSettings {
    path: String,
    parameters: Vec<(String, String)>,
    keys: Option<Box<RawValue>>,
}

/// How recent the data of a view must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewConsistency {
    /// Whatever the index has; the index is updated afterwards. The default.
    UpdateAfter,
    /// Whatever the index has.
    NotBounded,
    /// Everything that was written before the request.
    RequestPlus,
}

/// A row of a view.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct ViewRow<K, V> {
    /// The document's key; `None` if the view reduces.
    #[serde(default)]
    pub id: Option<String>,
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
}

/// The service's information about a view.
#[derive(Debug)]
#[non_exhaustive]
pub struct ViewMeta {
    /// The number of rows that the view has in all; `None` if it reduces.
    pub total_rows: Option<u64>,
    /// The answer to the parameter `debug`.
    pub debug: Option<Box<RawValue>>,
}

/// Makes a request for a view of a bucket.
pub(crate) fn view(client: Arc<Handle>, bucket: &Arc<str>, design: &str, view: &str) -> View {
    let mut sender = HttpSender::new(client, Service::Views, OPERATION);
    (sender.idempotent, sender.target) = (true, OperationTarget::bucket(bucket));
    let [bucket, design, view] = [bucket, design, view].map(segment);
    let settings = ViewSettings {
        path: format!("/{bucket}/_design/{design}/_view/{view}"),
        parameters: Vec::new(),
        keys: None,
    };
    RowRequest::new(settings, sender)
}

impl View {
    /// Limits the number of rows.
    pub fn limit(self, limit: u32) -> Self {
        self.parameter("limit", limit.to_string())
    }

    /// Leaves out the first rows.
    pub fn skip(self, skip: u32) -> Self {
        self.parameter("skip", skip.to_string())
    }

    /// Sets how recent the data must be.
    pub fn consistency(self, consistency: ViewConsistency) -> Self {
        let stale = match consistency {
            ViewConsistency::UpdateAfter => "update_after",
            ViewConsistency::NotBounded => "ok",
            ViewConsistency::RequestPlus => "false",
        };
        self.parameter("stale", stale)
    }

    /// Asks for the rows from the last to the first.
    pub fn descending(self, descending: bool) -> Self {
        self.parameter("descending", descending.to_string())
    }

    /// Switches the view's reduce function on or off.
    pub fn reduce(self, reduce: bool) -> Self {
        self.parameter("reduce", reduce.to_string())
    }

    /// Reduces for each key.
    pub fn group(self, group: bool) -> Self {
        self.parameter("group", group.to_string())
    }

    /// Asks for the rows with this key.
    ///
    /// # Errors
    /// If the key cannot be written as JSON.
    pub fn key(self, key: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.json("key", key)
    }

    /// Asks for the rows with these keys.
    ///
    /// # Errors
    /// If a key cannot be written as JSON.
    pub fn keys<K: Serialize>(mut self, keys: &[K]) -> Result<Self, Error> {
        self.service.keys = Some(encode(OPERATION, "keys", keys)?);
        Ok(self)
    }

    /// Asks for the rows from this key on.
    ///
    /// # Errors
    /// If the key cannot be written as JSON.
    pub fn start_key(self, key: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.json("startkey", key)
    }

    /// Asks for the rows up to this key.
    ///
    /// # Errors
    /// If the key cannot be written as JSON.
    pub fn end_key(self, key: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.json("endkey", key)
    }

    /// Sets a parameter of the service that has no method here.
    pub fn raw(self, name: &str, value: impl Into<String>) -> Self {
        self.parameter(name, value)
    }

    fn parameter(mut self, name: &str, value: impl Into<String>) -> Self {
        let parameters = &mut self.service.parameters;
        parameters.retain(|(each, _)| each != name);
        parameters.push((name.to_owned(), value.into()));
        self
    }

    fn json(self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let value = encode(OPERATION, name, value)?;
        Ok(self.parameter(name, value.get()))
    }
}

impl RowKind for ViewSettings {
    type Meta = ViewMeta;
}

impl RowService for ViewSettings {
    const ROWS: &'static str = "rows";

    fn prepare(&mut self, sender: &mut HttpSender) {
        let method = if self.keys.is_some() { "POST" } else { "GET" };
        // Without the parameters, which contain values of documents.
        sender.context.request = Some(format!("{method} {}", self.path));
    }

    fn request(&mut self, _: Option<Duration>) -> HttpRequest {
        let parameters = self.parameters.iter();
        let parameters = pairs(parameters.map(|(name, value)| (name.as_str(), value.as_str())));
        let path = match parameters.as_str() {
            "" => self.path.clone(),
            parameters => format!("{}?{parameters}", self.path),
        };
        match &self.keys {
            Some(keys) => HttpRequest::post_json(path, format!(r#"{{"keys":{keys}}}"#)),
            None => HttpRequest::new(Method::GET, path),
        }
    }

    fn service_error(response: &ServiceResponse<'_>) -> Option<ServiceError> {
        if response.is_success() {
            return error_after_rows(response);
        }
        let text = response.text();
        let mut error = response.by_status();
        error.kind = match response.status {
            404 => ErrorKind::ViewNotFound,
            _ if text.contains("not_found") => ErrorKind::ViewNotFound,
            401 | 403 => ErrorKind::AuthenticationFailure,
            _ => error.kind,
        };
        error.retry = match response.status {
            // In two lists; the one that is about it alone decides (decision D15,
            // docs/decisions.md).
            302 => Some(&VIEWS_NO_ACTIVE_PARTITION),
            300 | 301 | 303 | 307 | 401 | 408 | 409 | 412 | 416 | 417 | 501..=504 => {
                Some(&VIEWS_TEMPORARY_FAILURE)
            }
            404 if text.contains(r#""reason":"missing""#) => Some(&VIEWS_TEMPORARY_FAILURE),
            500 if !is_mistake(text) => Some(&VIEWS_TEMPORARY_FAILURE),
            _ => None,
        };
        Some(error)
    }

    fn meta(members: &Members) -> ViewMeta {
        ViewMeta {
            total_rows: members.hint("total_rows"),
            debug: members.hint("debug_info"),
        }
    }
}

/// An error after the rows: the node, and the cause.
#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeError {
    from: Option<String>,
    reason: Option<String>,
}

/// Whether an error 500 is the caller's mistake, so that a retry cannot help.
fn is_mistake(text: &str) -> bool {
    text.contains("error")
        && (text.contains("{not_found, missing_named_view}") || text.contains(r#""badarg""#))
}

/// Returns the first of the errors that nodes report after the rows of others.
fn error_after_rows(response: &ServiceResponse<'_>) -> Option<ServiceError> {
    let message = match response.members.get::<Vec<NodeError>>("errors") {
        Ok(None) => return None,
        Ok(Some(errors)) => {
            let first = errors.into_iter().next()?;
            let from = first.from.unwrap_or_default();
            let reason = first.reason.unwrap_or_default();
            one_line(&format!("{from} {reason}"))
        }
        Err(malformed) => Some(malformed),
    };
    Some(ServiceError::new(ErrorKind::Couchbase, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, text: &str) -> ServiceError {
        let response = ServiceResponse {
            status,
            members: &Members::default(),
            text: Some(text),
            has_rows: false,
            idempotent: true,
            batch: false,
        };
        ViewSettings::service_error(&response).unwrap()
    }

    #[test]
    fn kinds_are_those_of_rfc_0058() {
        use ErrorKind::*;
        for (status, text, kind) in [
            (401, "", AuthenticationFailure),
            (404, "", ViewNotFound),
            (500, r#"{"error":"{not_found, x}"}"#, ViewNotFound),
            (500, "", InternalServerFailure),
            (503, "", InternalServerFailure),
            (400, "", Couchbase),
        ] {
            assert_eq!(error(status, text).kind, kind, "{status} {text}");
        }
    }
}
