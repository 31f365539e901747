//! A real Couchbase-protocol cluster in one process, with faults on demand.
//!
//! How does an application behave when a node dies in the middle of a write, when a
//! rebalance moves its documents from under it, when the server says "not now"? One
//! finds out by breaking a cluster, and a cluster that breaks exactly as asked is hard
//! to come by. This one speaks the key-value protocol over real sockets, with TLS and
//! SASL, keeps real documents with CAS, locks, expiry and replicas, and breaks by rule:
//! see [`fault`]. Management, query, analytics, search and views speak HTTP beside it,
//! and say what a test wants them to say: see [`http::script`]. A [`journal`] of every mutation that was applied lets a test account
//! for each write.
//!
//! ```
//! use steadfast_cluster::fault::Fault;
//! use steadfast_cluster::{BucketSettings, TestCluster};
//! use steadfast_wire::{Opcode, Status};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = TestCluster::builder()
//!     .nodes(3)
//!     .bucket(BucketSettings::new("travel").replicas(1))
//!     .user("app", "secret")
//!     .start()
//!     .await?;
//! println!("connect to {}", cluster.connection_string());
//!
//! // The next three SETs of this key are refused.
//! let guard =
//!     cluster.fault(Fault::on(Opcode::Set).key("k").times(3).answer(Status::TemporaryFailure));
//! cluster.rebalance_in().await?;
//! assert_eq!(guard.fired(), 0);
//! assert_eq!(cluster.journal().applied(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! The parts, from the inside out: [`store`] and [`subdoc`] are documents without
//! sockets, [`topology`] says who has them, [`kv`] and [`http`] speak to clients, and
//! [`TestCluster`] holds it all together.
#![forbid(unsafe_code)]

pub mod bucket;
pub mod clock;
pub mod cluster;
pub mod error_map;
pub mod fault;
pub mod http;
pub mod journal;
pub mod kv;
pub mod manifest;
pub mod sasl;
pub mod service;
pub mod store;
pub mod subdoc;
pub mod tls;
pub mod topology;
pub mod users;

pub use bucket::BucketSettings;
pub use cluster::{ClusterError, TestCluster, TestClusterBuilder};
pub use service::Service;
pub use topology::NodeId;
