//! A Couchbase client whose retry handling follows the documents to the letter:
//! SDK RFC 0049 revision 16, RFC 0005 and RFC 0013.
#![forbid(unsafe_code)]

mod drive;
mod error;
mod fast_fail;
pub mod reason;
#[allow(
    dead_code,
    reason = "the cluster that the services belong to is not there yet"
)]
mod services;
mod world;

pub use error::{Error, ErrorContext, ErrorKind, HttpContext, KvContext, Place, Result};
pub use fast_fail::{TERMINALS, fast_fail_on_terminal_errors, fast_fail_or};
pub use services::analytics::{Analytics, AnalyticsMeta, AnalyticsMetrics, AnalyticsRows};
pub use services::management::{
    BucketKind, CollectionInfo, Management, ManagementRequest, ManagementResponse, NewBucket,
    ScopeInfo,
};
pub use services::query::{
    Query, QueryMeta, QueryMetrics, QueryProfile, QueryRows, QueryWarning, ScanConsistency,
};
pub use services::search::{Search, SearchHit, SearchMeta, SearchRows};
pub use services::views::{View, ViewConsistency, ViewMeta, ViewRow, ViewRows};
pub use services::{Rows, TypedRows};
