//! A Couchbase client whose retry handling follows Couchbase's SDK RFCs 0049
//! (revision 16), 0005 and 0013 to the letter.
//!
//! ```
//! use std::time::Duration;
//! use steadfast_couchbase::{Cluster, Credentials, DurabilityLevel};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = steadfast_cluster::TestCluster::builder()
//! #     .nodes(2)
//! #     .bucket(steadfast_cluster::BucketSettings::new("travel").replicas(1))
//! #     .user("app", "secret")
//! #     .start()
//! #     .await?;
//! # server.create_scope("travel", "inventory")?;
//! # server.create_collection("travel", "inventory", "users", 0)?;
//! # let address = server.connection_string();
//! let cluster = Cluster::connect(&address, Credentials::password("app", "secret")).await?;
//! let users = cluster.bucket("travel").collection("inventory", "users");
//!
//! users
//!     .upsert("u:42", &"Ada")
//!     .durability(DurabilityLevel::Majority)
//!     .timeout(Duration::from_secs(5))
//!     .await?;
//! let name: String = users.get("u:42").await?.content()?;
//! # assert_eq!(name, "Ada");
//! # Ok(())
//! # }
//! ```
//!
//! # Failures
//!
//! - **A write is not sent twice by accident.** The client knows to the byte what
//!   was sent. A request that was not sent is always safe to retry. A write whose
//!   response was lost is not retried, and the error says that it may have been
//!   applied.
//! - **Permanent failures are reported at once**: wrong credentials, certificates,
//!   buckets, scopes and collections ([`fast_fail_on_terminal_errors`], the default).
//!   To wait until they are fixed, use [`BestEffort`](steadfast::BestEffort), for the
//!   client or for one operation.
//! - **Rebalances and failovers are hidden.** An operation follows its document
//!   to the new node. If it cannot finish in time, the timeout names the reason.
//! - **Every error lists its attempts** with their reasons, delays and nodes: on one
//!   line, in full with `{:#}`, or as JSON.
//!
//! # Not included
//!
//! Transactions, eventing, columnar, a builder for search queries, and the management of
//! users and indexes are out of scope for now.
//!
//! # Order
//!
//! Concurrent operations have no order: a retried operation may take effect after one
//! that was started later. Where the order matters, await one before the next.
//!
//! # Next
//!
//! - [`Collection`]: operations on documents.
//! - [`Cluster`]: query, search, analytics, views and management.
//! - [`ClusterOptions`]: timeouts, strategies, TLS and the rest.
//! - [`reason`]: the 25 retry reasons of RFC 0049.
//! - `steadfast-cluster`: a test server.
#![forbid(unsafe_code)]

mod bucket;
mod client;
mod cluster;
pub mod collection;
mod config_error;
mod connection_string;
mod credentials;
pub mod diagnostics;
mod dns;
mod drive;
mod error;
pub mod explain;
mod fast_fail;
mod hedge;
mod kv;
#[cfg(feature = "metrics")]
pub mod metrics;
mod observe;
pub mod options;
pub mod reason;
mod request_options;
mod sasl;
mod scope;
mod server_text;
mod services;
mod strategy;
mod tls;
mod topology;
mod world;

/// Private code that reads what a server sent, for the targets in `fuzz/`. It exists only
/// in builds of cargo-fuzz, which sets this cfg.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::sasl::fuzz_scram as scram;
    pub use crate::services::fuzz_rows as rows;
}

pub use bucket::Bucket;
pub use cluster::Cluster;
pub use collection::Collection;
pub use config_error::ConfigError;
pub use connection_string::{ConnectionString, Host};
pub use credentials::Credentials;
pub use error::{Error, ErrorContext, ErrorKind, HttpContext, KvContext, OperationTarget, Result};
pub use fast_fail::{TERMINALS, fast_fail_on_terminal_errors, fast_fail_or};
pub use kv::operation::KvOperation;
pub use kv::request::DurabilityLevel;
pub use options::ClusterOptions;
pub use rustls;
pub use scope::Scope;
pub use services::analytics::{Analytics, AnalyticsSettings};
pub use services::management::{
    BucketKind, CollectionInfo, Management, ManagementRequest, ManagementResponse, NewBucket,
    ScopeInfo,
};
pub use services::query::{
    Query, QueryMeta, QueryMetrics, QueryRows, QuerySettings, QueryWarning, ScanConsistency,
};
pub use services::search::{Search, SearchHit, SearchMeta, SearchRows, SearchSettings};
pub use services::statement::Statement;
pub use services::views::{View, ViewConsistency, ViewMeta, ViewRow, ViewRows, ViewSettings};
pub use services::{RowRequest, Rows};
pub use strategy::{ErrorMapDirected, RetryDirective};

/// The examples of the guides are run like all others.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../README.md")]
    struct CrateReadme;
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/choosing-a-strategy.md")]
    struct ChoosingAStrategy;
    #[doc = include_str!("../../../docs/idempotency-and-stages.md")]
    struct IdempotencyAndStages;
    #[doc = include_str!("../../../docs/couchbase.md")]
    struct Couchbase;
    #[doc = include_str!("../../../docs/couchbase-reasons.md")]
    struct CouchbaseReasons;
    #[doc = include_str!("../../../docs/couchbase-connections.md")]
    struct CouchbaseConnections;
    #[doc = include_str!("../../../docs/testing-with-the-cluster.md")]
    struct TestingWithTheCluster;
    #[doc = include_str!("../../../docs/for-sdk-authors.md")]
    struct ForSdkAuthors;
}
