//! A test cluster that speaks Couchbase's protocols, in one process, with faults on demand.
//!
//! Tests use it to see how a client behaves when a node crashes in the middle of a write, when a
//! rebalance moves documents, or when a server asks it to wait. It speaks the key-value
//! protocol over real sockets, with TLS and SASL, and keeps documents with CAS, locks, expiry and
//! replicas. Management, query, analytics, search and views are served over HTTP.
//!
//! ```
//! use steadfast_cluster::TestCluster;
//! use steadfast_cluster::fault::Fault;
//! use steadfast_wire::{Opcode, Status};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = TestCluster::builder().nodes(3).bucket("travel").user("app", "secret").start().await?;
//! println!("connect to {}", cluster.connection_string());
//!
//! // The server rejects the next three SETs of this key.
//! let guard =
//!     cluster.fault(Fault::on(Opcode::Set).key("k").times(3).answer(Status::TemporaryFailure));
//! cluster.rebalance_in().await?;
//! assert_eq!(guard.fired(), 0);
//! assert_eq!(cluster.journal().applied(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! If a test needs no particular cluster, [`TestCluster::start`] is enough. Further topics:
//!
//! - [`fault`]: rules that delay, reject, cut or damage requests;
//! - [`topology`]: nodes that join, crash and leave, and replicas that lag;
//! - [`journal`]: every applied mutation, so that a test can account for each write;
//! - [`script`]: canned responses of the HTTP services;
//! - [`users`]: users, their rights and tokens.
//!
//! The `steadfast cluster` command runs the same cluster as a separate process, with a control
//! endpoint for tests in any language.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "sqlpp"),
    allow(dead_code, reason = "only statements use some parts")
)]

mod bucket;
mod clock;
mod cluster;
mod error_map;
pub mod fault;
mod http;
pub mod journal;
mod kv;
mod manifest;
mod rules;
mod sasl;
mod store;
mod subdoc;
pub mod suggest;
mod tls;
pub mod topology;
pub mod users;
mod version;

/// Private code that reads what a client sent, for the targets in `fuzz/`. It exists only
/// in builds of cargo-fuzz, which sets this cfg.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::sasl::fuzz_login as login;
    pub use crate::subdoc::fuzzing::paths;
}

pub use bucket::BucketSettings;
pub use cluster::{ClusterError, MAX_CONCURRENT_COMMANDS, TestCluster, TestClusterBuilder};
pub use error_map::ServedErrorMap;
pub use http::script;
pub use manifest::ManifestError;
pub use steadfast_wire::config::Service;
pub use store::document::StoredDocument;
pub use tls::TlsError;
pub use topology::NodeId;
pub use version::ServerVersion;

/// The example of the README is run like all others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
