//! The cluster's topology: configs, nodes, and the connections to them.
//!
//! ```text
//!   seeds ──bootstrap──▶ first config ──▶ Routes ──▶ Node ──▶ Connection
//!                                           ▲
//!      pushed, polled, or in a response ────┘   newer (epoch, rev) only
//! ```
//!
//! A bucket has one [`Routes`] at a time, which is replaced as a whole. A [`Node`]
//! keeps its connections up. A request without a connection waits in the
//! [`WaitQueue`], and changes here wake it.

mod address;
mod bucket;
mod config;
mod dial;
#[cfg(test)]
mod herd;
mod missing_bucket;
mod node;
mod redial;
mod redial_strategy;
mod routes;
mod seed_dials;
mod staggered;
mod terminal;
mod track;
mod track_cluster;
mod tracking;
mod wait_queue;

pub(crate) use address::{Address, host_part, write_host};
pub(crate) use bucket::BucketCore;
pub(crate) use config::parse_config;
pub(crate) use dial::{Opened, dial};
pub(crate) use missing_bucket::{NEVER_OPEN, WAS_OPEN};
pub(crate) use node::Node;
pub(crate) use routes::{Routes, VbucketRoute};
pub(crate) use terminal::{ConnectionKey, TerminalStates, is_terminal};
pub(crate) use track_cluster::track_cluster;
pub(crate) use wait_queue::{NodeId, WaitCondition, WaitQueue, Waiting};
