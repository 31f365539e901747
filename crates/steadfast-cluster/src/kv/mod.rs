//! The key-value service: frames in, frames out.
//!
//! - `connection` moves bytes, and `faults` applies the rules to commands;
//! - `in_flight` has the commands that wait, and keeps order;
//! - `session` has the user and the features of a connection, and dispatches its commands;
//! - `opcodes` has what is known of a command before it runs, and `validate` rejects what its rules
//!   do not allow;
//! - the rest are the commands, a file for each kind.
//!
//! A command runs on the connection's task, right after its frame was decoded. Its response goes
//! to a buffer that is sent once for all frames that arrived together. Nothing is spawned for a
//! command. The few that wait (delayed commands, durable writes with slow replicas) are kept as
//! futures outside of the loop.

mod collections;
mod config;
mod connection;
mod data;
mod faults;
mod features;
mod in_flight;
mod observe;
mod opcodes;
mod range_scan;
mod response;
mod session;
mod setup;
mod stats;
mod stranger;
mod subdocument;
mod subdocument_rules;
mod unsent;
mod validate;

pub(crate) use connection::serve;
pub(crate) use features::OFFERED;
pub(crate) use stranger::{Stranger, Strangers};
