//! A Couchbase client whose retry handling follows the documents to the letter:
//! SDK RFC 0049 revision 16, RFC 0005 and RFC 0013.
#![forbid(unsafe_code)]

mod breaker;
mod bucket;
mod client;
mod cluster;
pub mod collection;
mod collections;
mod config_error;
mod connection_string;
mod credentials;
pub mod diagnostics;
mod dns;
mod drive;
mod error;
pub mod explain;
mod fast_fail;
mod kv;
mod observe;
pub mod options;
pub mod reason;
mod sasl;
mod scope;
mod services;
mod strategy;
mod tls;
mod topology;
mod world;

pub use bucket::Bucket;
pub use cluster::Cluster;
pub use collection::Collection;
pub use config_error::ConfigError;
pub use connection_string::{ConnectionString, Host};
pub use credentials::Credentials;
pub use error::{Error, ErrorContext, ErrorKind, HttpContext, KvContext, Place, Result};
pub use fast_fail::{TERMINALS, fast_fail_on_terminal_errors, fast_fail_or};
pub use kv::operation::KvOperation;
pub use kv::request::DurabilityLevel;
pub use options::ClusterOptions;
pub use scope::Scope;
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
pub use strategy::{ErrorMapDirected, RetryDirective};
