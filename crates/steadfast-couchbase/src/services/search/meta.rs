//! What the search service says about its hits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::codes::Partitions;
use crate::services::rows::{Members, Rows};

/// The hits of a search. Read them as [`SearchHit`], or as a type of your own.
pub type SearchRows = Rows<SearchMeta>;

/// A document that was found.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct SearchHit {
    /// The document's key.
    pub id: String,
    /// The partition of the index that has it.
    #[serde(default)]
    pub index: String,
    /// How well it fits.
    #[serde(default)]
    pub score: f64,
    /// The stored fields that were asked for.
    #[serde(default)]
    pub fields: Option<Box<RawValue>>,
    /// Where the terms were found.
    #[serde(default)]
    pub locations: Option<Box<RawValue>>,
    /// The text around them.
    #[serde(default)]
    pub fragments: Option<Box<RawValue>>,
    /// Why it has this score.
    #[serde(default)]
    pub explanation: Option<Box<RawValue>>,
}

/// What the service said about a search that succeeded, at least in part.
#[derive(Debug)]
#[non_exhaustive]
pub struct SearchMeta {
    /// How many documents fit, also beyond the limit.
    pub total_hits: u64,
    /// The best score.
    pub max_score: f64,
    /// How long it took.
    pub took: Duration,
    /// How many partitions answered.
    pub successful_partitions: u64,
    /// How many did not.
    pub failed_partitions: u64,
    /// Why not, by partition.
    pub errors: BTreeMap<String, String>,
    /// The facets, if any were asked for.
    pub facets: Option<Box<RawValue>>,
}

impl SearchMeta {
    /// Whether there may be more hits, in partitions that did not answer.
    pub fn is_partial(&self) -> bool {
        self.failed_partitions > 0 || !self.errors.is_empty()
    }

    pub(super) fn read(members: &Members) -> Self {
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
