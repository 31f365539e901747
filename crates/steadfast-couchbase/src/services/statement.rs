//! Statements: the request that query and analytics have in common.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use steadfast::Reason;
use steadfast_wire::config::Service;

use super::http::{HttpSender, ServiceError, ServiceResponse};
use super::query::ScanConsistency;
use super::rows::RowRequest;
use crate::cluster::Handle;
use crate::error::{Error, ErrorKind, HttpContext, OperationTarget};
use crate::reason::SERVICE_RESPONSE_CODE_INDICATED;
use crate::server_text::one_line;

/// A statement for the query or the analytics service.
///
/// It counts as idempotent, and is sent again after a connection that closed before
/// the response, only if it is [`readonly`](RowRequest::readonly).
pub struct Statement<S> {
    pub(super) text: String,
    pub(super) json: JsonObject,
    /// What only this service has.
    pub(super) settings: S,
    /// The scope in which names are looked up.
    pub(super) query_context: Option<String>,
    positional: Vec<Box<RawValue>>,
    context_id: Option<String>,
}

impl<S> RowRequest<Statement<S>> {
    pub(super) fn statement(
        client: Arc<Handle>,
        service: Service,
        text: String,
        settings: S,
    ) -> Self {
        let mut sender = HttpSender::new(client, service, super::name(service));
        sender.batch = service == Service::Analytics && has_several(&text);
        let statement = Statement {
            text,
            json: JsonObject::default(),
            settings,
            query_context: None,
            positional: Vec::new(),
            context_id: None,
        };
        Self::new(statement, sender)
    }

    /// Looks up names within a scope, so that collections need no longer names.
    pub(crate) fn in_scope(mut self, bucket: &Arc<str>, scope: &Arc<str>) -> Self {
        let context = format!("default:{}.{}", quoted(bucket), quoted(scope));
        self.service.json.set("query_context", &context);
        self.service.query_context = Some(context);
        self.sender.target = OperationTarget::scope(bucket, scope);
        self
    }

    /// States that the statement changes nothing. It can then be retried whatever
    /// happened to an attempt; the service rejects a statement that does change
    /// something.
    pub fn readonly(mut self, readonly: bool) -> Self {
        self.sender.idempotent = readonly;
        self
    }

    /// Gives the parameter `$name` its value.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn named(self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.raw(
            &format!("${}", name.strip_prefix('$').unwrap_or(name)),
            value,
        )
    }

    /// Gives the next of the parameters `$1`, `$2`, … its value.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn positional(mut self, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let positional = &mut self.service.positional;
        let name = format!("${}", positional.len() + 1);
        positional.push(encode(self.sender.name, &name, value)?);
        Ok(self)
    }

    /// Sets how recent the data must be that the statement reads.
    pub fn consistency(mut self, consistency: ScanConsistency) -> Self {
        let json = &mut self.service.json;
        json.set("scan_consistency", consistency.name());
        json.0.remove("scan_vectors");
        self
    }

    /// Sets the id under which the service knows the request, in place of a random
    /// one.
    pub fn client_context_id(mut self, id: impl Into<String>) -> Self {
        self.service.context_id = Some(id.into());
        self
    }

    /// Sets an option of the service that has no method here.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn raw(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let operation = self.sender.name;
        self.service.json.set_raw(operation, name, value)?;
        Ok(self)
    }
}

impl<S> Statement<S> {
    pub(super) fn complete(&mut self, sender: &mut HttpSender) {
        let context_id = self.context_id.take().unwrap_or_else(new_context_id);
        self.json.set("client_context_id", &context_id);
        if sender.idempotent {
            self.json.set("readonly", true);
        }
        if !self.positional.is_empty() {
            self.json.set("args", &self.positional);
        }
        // Parameters may be secrets, and so are not shown.
        sender.context = HttpContext {
            statement: Some(self.text.clone()),
            client_context_id: Some(context_id),
            ..HttpContext::default()
        };
    }
}

/// The body of a request: a JSON object whose values are encoded already.
#[derive(Clone, Default)]
pub(super) struct JsonObject(BTreeMap<String, Box<RawValue>>);

impl JsonObject {
    /// Sets a member to a value of the client, which can always be encoded.
    pub(super) fn set(&mut self, name: &str, value: impl Serialize) {
        let value = to_raw_value(&value).expect("texts, numbers and flags can be encoded");
        self.0.insert(name.to_owned(), value);
    }

    /// Sets a member to a value of the user.
    pub(super) fn set_raw(
        &mut self,
        operation: &'static str,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        let value = encode(operation, name, value)?;
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    /// Sets the time that the service has.
    pub(super) fn set_timeout(&mut self, remaining: Option<Duration>) {
        if let Some(remaining) = remaining {
            self.set("timeout", format!("{}ms", remaining.as_millis()));
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).expect("encoded values can be encoded")
    }
}

/// Encodes a value of the user. An error names the parameter; the encoder's own
/// message may quote the value, and so is not repeated.
pub(super) fn encode(
    operation: &'static str,
    name: &str,
    value: &(impl Serialize + ?Sized),
) -> Result<Box<RawValue>, Error> {
    to_raw_value(value).map_err(|_| {
        Error::new(ErrorKind::EncodingFailure, operation)
            .because(format!("the value for {name:?} cannot be written as JSON"))
    })
}

/// Makes an id under which a service knows a request.
fn new_context_id() -> String {
    let id = format!("{:032x}", fastrand::u128(..));
    let [a, b, c, d] = [&id[..8], &id[8..12], &id[12..16], &id[16..20]];
    format!("{a}-{b}-{c}-{d}-{}", &id[20..])
}

/// Whether a text may have several statements. A semicolon within a string counts
/// too, which only makes an error less certain.
fn has_several(text: &str) -> bool {
    text.trim_end().trim_end_matches(';').contains(';')
}

/// Quotes a name as query and analytics do.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// An error as query and analytics write it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportedError {
    pub(super) code: u64,
    #[serde(alias = "message")]
    pub(super) msg: String,
    /// Whether a retry helps, as the query service says it.
    retry: Value,
    /// Whether a retry helps, as analytics says it.
    retriable: Value,
    /// The cause, as older services call it.
    pub(super) reason: Value,
    /// The cause, as newer services call it.
    pub(super) cause: Value,
}

impl ReportedError {
    #[cfg(test)]
    pub(super) fn new(code: u64, msg: &str) -> Self {
        Self {
            code,
            msg: msg.to_owned(),
            ..Self::default()
        }
    }

    /// Whether the service says that a retry helps.
    fn says_retry(&self) -> bool {
        self.retry == true || self.retriable == true
    }
}

/// Returns the kind of an error, and the reason for which RFC 0049 lists it. The flag
/// says whether the operation is idempotent.
type ErrorTable = fn(&ReportedError, bool) -> (ErrorKind, Option<&'static Reason>);

/// Whether errors prove that the statement was not applied. The flag says whether RFC
/// 0049 lists the first one.
type Proof = fn(&ServiceResponse<'_>, &[ReportedError], bool) -> bool;

/// Returns the error that a response of query or analytics reports. Of several
/// errors the first decides about the kind: the others follow from it.
pub(super) fn reported_error(
    response: &ServiceResponse<'_>,
    meaning: ErrorTable,
    proof: Proof,
) -> Option<ServiceError> {
    let errors = match response.members.get::<Vec<ReportedError>>("errors") {
        Ok(errors) => errors.unwrap_or_default(),
        // Errors of another shape are errors all the same.
        Err(malformed) => return Some(ServiceError::new(ErrorKind::Couchbase, Some(malformed))),
    };
    match errors.first() {
        Some(error) => {
            let (kind, listed) = meaning(error, response.idempotent);
            // The service's timeout is the operation's, so there is no time left.
            let indicated = !kind.is_timeout() && errors.iter().all(ReportedError::says_retry);
            let indicated = indicated.then_some(&SERVICE_RESPONSE_CODE_INDICATED);
            Some(ServiceError {
                code: Some(error.code),
                message: one_line(&error.msg),
                kind,
                retry: listed.or(indicated),
                not_applied: proof(response, &errors, listed.is_some()),
            })
        }
        None if !response.is_success() => Some(response.by_status()),
        None => failed_status(response),
    }
}

/// Returns an error for a response without errors whose own status is not success.
fn failed_status(response: &ServiceResponse<'_>) -> Option<ServiceError> {
    let status = match response.members.get::<String>("status") {
        Ok(status) => status?,
        Err(malformed) => return Some(ServiceError::new(ErrorKind::Couchbase, Some(malformed))),
    };
    let kind = match status.as_str() {
        "success" | "completed" | "running" => return None,
        "timeout" => timeout(response.idempotent),
        _ => ErrorKind::Couchbase,
    };
    let message = one_line(&format!("the answer's status is {status:?}"));
    Some(ServiceError::new(kind, message))
}

/// Returns the kind of a timeout that the service reports.
pub(super) fn timeout(idempotent: bool) -> ErrorKind {
    if idempotent {
        ErrorKind::UnambiguousTimeout
    } else {
        ErrorKind::AmbiguousTimeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_cannot_end_early() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
