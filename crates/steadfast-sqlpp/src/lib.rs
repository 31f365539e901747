//! The small part of SQL++ that a test server answers by itself, without sockets.
//!
//! A server implements [`Session`] and [`DocumentStore`]. [`execute`] runs the statement of a
//! request on them, and [`analytics::execute`] one of the analytics service.
//!
//! - `language`: the parser, and the evaluation of expressions;
//! - `execute`, `select`, `write`, `indexes`: one kind of statement each;
//! - [`PreparedPlans`]: prepared statements, and their loss on demand;
//! - [`Transactions`]: transactions that statements take part in.
#![forbid(unsafe_code)]

pub mod analytics;
mod consistency;
mod error;
mod execute;
mod index_definitions;
mod indexes;
mod keyspace;
mod language;
mod options;
mod plans;
mod select;
mod session;
mod transaction;
mod write;

/// The parser, for the targets in `fuzz/`. It exists only in builds of cargo-fuzz, which sets
/// this cfg.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use language::fuzzing;

pub use error::QueryError;
pub use execute::{Executed, ResultRows, execute};
pub use index_definitions::Indexes;
pub use language::{Random, Row};
pub use options::RequestOptions;
pub use plans::{PlanLoss, PreparedPlans};
pub use session::{
    BucketNames, DocumentStore, JSON_FLAGS, Mutation, NodeRun, Seen, Session, WriteMode,
};
pub use transaction::Transactions;
