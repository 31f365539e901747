//! Full-text searches: what is sent, and what the service's errors mean.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadfast_wire::config::Service;

use super::consistency::Newest;
use super::http::{HttpRequest, HttpSender, ServiceError, ServiceResponse, named_limit};
use super::path::segment;
use super::rows::{Members, RowKind, RowRequest, RowService, Rows};
use super::statement::JsonObject;
use crate::cluster::Handle;
use crate::collection::MutationToken;
use crate::error::{Error, ErrorKind, OperationTarget};
use crate::reason::SEARCH_TOO_MANY_REQUESTS;
use crate::server_text::one_line;

const OPERATION: &str = "search";

/// A search; await it to run it. Searches are idempotent.
pub type Search = RowRequest<SearchSettings>;

/// The part of a [`Search`] that other requests do not have.
pub struct SearchSettings {
    path: String,
    index: String,
    json: JsonObject,
    consistency: Option<Value>,
}

/// The hits of a search. Read them as [`SearchHit`], or as a type of your own.
pub type SearchRows = Rows<SearchMeta>;

/// A document that matches a search.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct SearchHit {
    /// The document's key.
    pub id: String,
    /// The partition of the index that has it.
    #[serde(default)]
    pub index: String,
    /// The score of the match.
    #[serde(default)]
    pub score: f64,
    /// The stored fields that the search asked for.
    #[serde(default)]
    pub fields: Option<Box<RawValue>>,
    /// The positions of the terms.
    #[serde(default)]
    pub locations: Option<Box<RawValue>>,
    /// The text around them.
    #[serde(default)]
    pub fragments: Option<Box<RawValue>>,
    /// The explanation of the score.
    #[serde(default)]
    pub explanation: Option<Box<RawValue>>,
}

/// The service's information about a search that succeeded at least in part.
#[derive(Debug)]
#[non_exhaustive]
pub struct SearchMeta {
    /// The number of matching documents, also beyond the limit.
    pub total_hits: u64,
    /// The best score.
    pub max_score: f64,
    /// The duration of the search.
    pub took: Duration,
    /// The number of partitions that answered.
    pub successful_partitions: u64,
    /// The number of partitions that did not answer.
    pub failed_partitions: u64,
    /// Their errors, by partition.
    pub errors: BTreeMap<String, String>,
    /// The facets, if the search asked for any.
    pub facets: Option<Box<RawValue>>,
}

/// Makes a search of an index of the cluster or, if they are given, of a bucket and a
/// scope. The query is the service's JSON.
pub(crate) fn search(
    client: Arc<Handle>,
    scope: Option<(&Arc<str>, &Arc<str>)>,
    index: &str,
    query: &(impl Serialize + ?Sized),
) -> Result<Search, Error> {
    let name = index;
    let index = segment(index);
    let (path, target) = match scope {
        None => (
            format!("/api/index/{index}/query"),
            OperationTarget::default(),
        ),
        Some((bucket, scope)) => (
            format!(
                "/api/bucket/{}/scope/{}/index/{index}/query",
                segment(bucket),
                segment(scope)
            ),
            OperationTarget::scope(bucket, scope),
        ),
    };
    let mut json = JsonObject::default();
    json.set_raw(OPERATION, "query", query)?;
    let mut sender = HttpSender::new(client, Service::Search, OPERATION);
    (sender.idempotent, sender.target) = (true, target);
    let settings = SearchSettings {
        path,
        index: name.to_owned(),
        json,
        consistency: None,
    };
    Ok(RowRequest::new(settings, sender))
}

impl Search {
    /// Limits the number of hits.
    pub fn limit(mut self, limit: u32) -> Self {
        self.service.json.set("size", limit);
        self
    }

    /// Leaves out the first hits.
    pub fn skip(mut self, skip: u32) -> Self {
        self.service.json.set("from", skip);
        self
    }

    /// Asks for stored fields of each hit.
    pub fn fields(mut self, fields: &[&str]) -> Self {
        self.service.json.set("fields", fields);
        self
    }

    /// Asks for an explanation of each hit's score.
    pub fn explain(mut self, explain: bool) -> Self {
        self.service.json.set("explain", explain);
        self
    }

    /// Finds at least what these writes have written. The service waits until the
    /// index has them.
    ///
    /// # Errors
    /// If there is no token, if a token is of another bucket than the index, or if
    /// [`raw`](Self::raw) has set `ctl`, which contains the consistency.
    pub fn consistent_with<'t>(
        mut self,
        tokens: impl IntoIterator<Item = &'t MutationToken>,
    ) -> Result<Self, Error> {
        let newest = Newest::collect(OPERATION, tokens)?;
        if let Some(bucket) = &self.sender.target.bucket
            && let Some(other) = newest.bucket_other_than(bucket)
        {
            let problem =
                format!("a mutation token is of the bucket {other}, the index of {bucket}");
            return Err(Error::new(ErrorKind::InvalidArgument, OPERATION).because(problem));
        }
        if self.service.json.has("ctl") {
            return Err(two_consistencies());
        }
        self.service.consistency = Some(newest.search_consistency(&self.service.index));
        Ok(self)
    }

    /// Sets a member of the request that has no method here, such as `sort`,
    /// `facets` or `highlight`.
    ///
    /// # Errors
    /// If the value cannot be written as JSON, or if it is `ctl` of a search that has
    /// tokens to be [consistent with](Self::consistent_with).
    pub fn raw(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        if name == "ctl" && self.service.consistency.is_some() {
            return Err(two_consistencies());
        }
        self.service.json.set_raw(OPERATION, name, value)?;
        Ok(self)
    }
}

#[cold]
fn two_consistencies() -> Error {
    let problem = "consistent_with cannot be combined with your own ctl";
    Error::new(ErrorKind::InvalidArgument, OPERATION).because(problem)
}

impl RowKind for SearchSettings {
    type Meta = SearchMeta;
}

impl RowService for SearchSettings {
    const ROWS: &'static str = "hits";

    fn prepare(&mut self, sender: &mut HttpSender) {
        sender.context.request = Some(format!("POST {}", self.path));
    }

    fn request(&mut self, remaining: Option<Duration>) -> HttpRequest {
        let mut json = self.json.clone();
        if !json.has("ctl") {
            let mut ctl = json!({});
            if let Some(remaining) = remaining {
                ctl["timeout"] = u64::try_from(remaining.as_millis())
                    .unwrap_or(u64::MAX)
                    .into();
            }
            if let Some(consistency) = &self.consistency {
                ctl["consistency"] = consistency.clone();
            }
            json.set("ctl", ctl);
        }
        HttpRequest::post_json(self.path.clone(), json.to_vec())
    }

    /// Returns the error that a response reports, with its kind (RFC 0058) and its retry
    /// reason (RFC 0049, "Response Code Retry List").
    fn service_error(response: &ServiceResponse<'_>) -> Option<ServiceError> {
        if response.is_success() {
            return all_partitions_failed(response);
        }
        let text = response.text();
        let mut error = response.by_status();
        error.message = match response.members.hint::<String>("error") {
            Some(text) => one_line(&text),
            None => error.message,
        };
        error.kind = match response.status {
            400 if text.contains("index not found") => ErrorKind::IndexNotFound,
            400 => named_limit(text).unwrap_or(ErrorKind::Couchbase),
            _ => error.kind,
        };
        // Also if the text names a limit; the error then names it too (decision D16,
        // docs/decisions.md).
        error.retry = (response.status == 429).then_some(&SEARCH_TOO_MANY_REQUESTS);
        Some(error)
    }

    fn meta(members: &Members) -> SearchMeta {
        SearchMeta::read(members)
    }
}

impl SearchMeta {
    /// Whether hits may be missing because a partition did not answer.
    pub fn is_partial(&self) -> bool {
        self.failed_partitions > 0 || !self.errors.is_empty()
    }

    fn read(members: &Members) -> Self {
        let partitions: Partitions = members.hint("status").unwrap_or_default();
        Self {
            total_hits: members.hint("total_hits").unwrap_or_default(),
            max_score: members.hint("max_score").unwrap_or_default(),
            took: Duration::from_nanos(members.hint("took").unwrap_or_default()),
            successful_partitions: partitions.successful,
            failed_partitions: partitions.failed,
            errors: partitions.errors(),
            facets: members.hint("facets"),
        }
    }
}

/// The state of an index's partitions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Partitions {
    successful: u64,
    failed: u64,
    /// The errors, in any shape: a failed partition must not be overlooked because
    /// its error cannot be read.
    errors: Value,
}

impl Partitions {
    /// Returns the errors by partition.
    fn errors(&self) -> BTreeMap<String, String> {
        let errors = self.errors.as_object().into_iter().flatten();
        let text = |error: &Value| match error {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        errors
            .map(|(partition, error)| (partition.clone(), text(error)))
            .collect()
    }
}

/// Returns an error if every partition failed. If only some failed, the hits are
/// partial, and the user decides whether they suffice.
fn all_partitions_failed(response: &ServiceResponse<'_>) -> Option<ServiceError> {
    let partitions: Partitions = response.members.hint("status")?;
    if partitions.failed == 0 || partitions.successful > 0 {
        return None;
    }
    let errors: Vec<String> = partitions
        .errors()
        .iter()
        .map(|(partition, error)| format!("{partition}: {error}"))
        .collect();
    let message = one_line(&errors.join("; "));
    Some(ServiceError::new(ErrorKind::Couchbase, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services;

    #[test]
    fn every_status_has_the_kind_of_rfc_0058_and_only_429_is_retried() {
        use ErrorKind::*;
        for (status, text, kind) in [
            (400, "rest_auth: index not found: i", IndexNotFound),
            (400, "num_fts_indexes >= limit", QuotaLimited),
            (400, "bad query", Couchbase),
            (401, "", AuthenticationFailure),
            (403, "", AuthenticationFailure),
            (404, "", Couchbase),
            (428, "", Couchbase),
            (429, "too many requests", TemporaryFailure),
            (429, "num_queries_per_min, value >= limit", RateLimited),
            (429, "num_fts_indexes >= limit", QuotaLimited),
            (430, "too many requests", Couchbase),
            (500, "", InternalServerFailure),
        ] {
            let answer = ServiceResponse {
                status,
                members: &Members::default(),
                text: Some(text),
                has_rows: false,
                idempotent: true,
                batch: false,
            };
            let error = SearchSettings::service_error(&answer).unwrap();
            let reason = error.retry.map(|reason| reason.name());
            let wanted = (status == 429).then_some("SEARCH_TOO_MANY_REQUESTS");
            assert_eq!((error.kind, reason), (kind, wanted), "{status} {text}");
        }
    }

    #[test]
    fn failed_partitions_are_seen_whatever_the_shape_of_their_errors() {
        for errors in [
            r#"{"p1": "it is gone"}"#,
            r#"{"p1": {"text": "it is gone"}}"#,
            r#"["it is gone"]"#,
            "null",
        ] {
            let failed = r#""total": 2, "failed": 2, "successful": 0"#;
            let body = format!(r#"{{"status": {{{failed}, "errors": {errors}}}, "hits": []}}"#);
            let error = services::service_error(Service::Search, 200, &body, true);
            assert!(error.is_some(), "{errors}");
        }
        let some = r#"{"status": {"failed": 1, "successful": 1, "errors": null}, "hits": []}"#;
        assert_eq!(
            services::service_error(Service::Search, 200, some, true),
            None
        );
    }
}
