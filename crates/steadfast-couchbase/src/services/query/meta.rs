//! Information of query and analytics about a statement that succeeded.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::server_text;
use crate::services::rows::{Members, Rows};

/// The rows of a statement.
pub type QueryRows = Rows<QueryMeta>;

/// The service's information about a statement that succeeded.
#[derive(Debug)]
#[non_exhaustive]
pub struct QueryMeta {
    /// The service's id of the request.
    pub request_id: Option<String>,
    /// The client's id of the request.
    pub client_context_id: Option<String>,
    /// The status that the service reports.
    pub status: Option<String>,
    /// The types of the rows.
    pub signature: Option<Box<RawValue>>,
    /// Warnings of the service.
    pub warnings: Vec<QueryWarning>,
    /// Times and counts. A query has them only if it asks for them.
    pub metrics: Option<QueryMetrics>,
    /// The profile, if a query asked for one with [`raw`](crate::Query::raw).
    pub profile: Option<Box<RawValue>>,
}

/// A warning of the service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct QueryWarning {
    /// The service's number of the warning.
    #[serde(default)]
    pub code: u64,
    /// The service's message, on one line and of a bounded length.
    #[serde(default, rename = "msg", deserialize_with = "server_text::deserialize")]
    pub message: String,
}

/// The amount of work that a statement did, and its duration. A count that the
/// service does not report is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueryMetrics {
    /// The time from the statement's arrival to its end.
    #[serde(deserialize_with = "go_duration")]
    pub elapsed_time: Duration,
    /// The time of the execution.
    #[serde(deserialize_with = "go_duration")]
    pub execution_time: Duration,
    /// The number of rows.
    pub result_count: u64,
    /// The size of the rows in bytes.
    pub result_size: u64,
    /// The number of changed documents.
    pub mutation_count: u64,
    /// The number of sorted rows.
    pub sort_count: u64,
    /// The number of objects that analytics read.
    pub processed_objects: u64,
    /// The number of errors.
    pub error_count: u64,
    /// The number of warnings.
    pub warning_count: u64,
}

impl QueryMeta {
    /// Reads the members. Ones of another shape are left out: the statement succeeded.
    pub(in crate::services) fn read(members: &Members) -> Self {
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

/// Reads a duration as the services write it: `1.5ms`, `1m30.25s`.
fn go_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_go_duration(&text).ok_or_else(|| D::Error::custom("not a duration"))
}

fn parse_go_duration(text: &str) -> Option<Duration> {
    match text {
        "" => Some(Duration::ZERO),
        text => steadfast::duration::parse(text).filter(|duration| *duration < Duration::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_the_services_write_them() {
        for (text, wanted) in [
            ("1.5ms", Some(Duration::from_micros(1500))),
            ("2m3.5s", Some(Duration::from_millis(123_500))),
            ("12µs", Some(Duration::from_micros(12))),
            ("0s", Some(Duration::ZERO)),
            ("", Some(Duration::ZERO)),
            ("1", None),
            ("ms", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("9999999999999999999999h", None),
            ("1 s", None),
        ] {
            assert_eq!(parse_go_duration(text), wanted, "{text}");
        }
    }
}
