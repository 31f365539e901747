//! What the query service says about its rows.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::services::rows::{Members, Rows};
use crate::services::statement::go_duration;

/// The rows of a query.
pub type QueryRows = Rows<QueryMeta>;

/// What the service said about a query that succeeded.
#[derive(Debug)]
#[non_exhaustive]
pub struct QueryMeta {
    /// The service's id of the request.
    pub request_id: Option<String>,
    /// The client's id of the request.
    pub client_context_id: Option<String>,
    /// How it ended, in the service's words.
    pub status: Option<String>,
    /// The shape of the rows.
    pub signature: Option<Box<RawValue>>,
    /// What the service thinks one should know.
    pub warnings: Vec<QueryWarning>,
    /// Times and counts, if they were asked for.
    pub metrics: Option<QueryMetrics>,
    /// The profile, if one was asked for.
    pub profile: Option<Box<RawValue>>,
}

/// Something that the service thinks one should know.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct QueryWarning {
    /// Its number.
    #[serde(default)]
    pub code: u64,
    /// What it is about.
    #[serde(default, rename = "msg")]
    pub message: String,
}

/// How much a query did, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueryMetrics {
    /// From its arrival to its end.
    #[serde(deserialize_with = "go_duration")]
    pub elapsed_time: Duration,
    /// Of that, the execution.
    #[serde(deserialize_with = "go_duration")]
    pub execution_time: Duration,
    /// How many rows there were.
    pub result_count: u64,
    /// How many bytes they had.
    pub result_size: u64,
    /// How many documents were changed.
    pub mutation_count: u64,
    /// How many rows were sorted.
    pub sort_count: u64,
    /// How many errors there were.
    pub error_count: u64,
    /// How many warnings there were.
    pub warning_count: u64,
}

impl QueryMeta {
    /// None of this is worth failing a query for that succeeded.
    pub(super) fn read(members: &Members) -> Self {
        Self {
            request_id: members.hint("requestID"),
            client_context_id: members.hint("clientContextID"),
            status: members.hint("status"),
            signature: members.hint("signature"),
            warnings: members.hint("warnings").unwrap_or_default(),
            metrics: members.hint("metrics"),
            profile: members.hint("profile"),
        }
    }
}
