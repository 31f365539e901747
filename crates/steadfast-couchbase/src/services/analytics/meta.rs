//! What the analytics service says about its rows.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::services::query::QueryWarning;
use crate::services::rows::{Members, Rows};
use crate::services::statement::go_duration;

/// The rows of an analytics query.
pub type AnalyticsRows = Rows<AnalyticsMeta>;

/// What the service said about a query that succeeded.
#[derive(Debug)]
#[non_exhaustive]
pub struct AnalyticsMeta {
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
    /// Times and counts.
    pub metrics: Option<AnalyticsMetrics>,
}

/// How much a query did, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AnalyticsMetrics {
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
    /// How many objects were looked at.
    pub processed_objects: u64,
    /// How many errors there were.
    pub error_count: u64,
    /// How many warnings there were.
    pub warning_count: u64,
}

impl AnalyticsMeta {
    /// None of this is worth failing a query for that succeeded.
    pub(super) fn read(members: &Members) -> Self {
        Self {
            request_id: members.hint("requestID"),
            client_context_id: members.hint("clientContextID"),
            status: members.hint("status"),
            signature: members.hint("signature"),
            warnings: members.hint("warnings").unwrap_or_default(),
            metrics: members.hint("metrics"),
        }
    }
}
