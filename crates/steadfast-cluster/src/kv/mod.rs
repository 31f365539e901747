//! The key-value service: frames in, frames out.
//!
//! - `connection` moves bytes, asks the fault rules, and keeps order;
//! - `session` knows what a connection has agreed on and who is on it, and sends every
//!   command where it belongs;
//! - the rest are the commands, a file for each kind.
//!
//! A command is executed right where its frame was decoded, on the connection's task,
//! and its answer is written to a buffer that goes out once for all frames that came
//! together. Nothing is spawned for a command; the few that have to wait (a delayed
//! one, a durable write whose replicas are slow) are kept as futures beside the loop.

mod collections;
mod config;
mod connection;
mod data;
mod features;
mod observe;
mod response;
mod session;
mod setup;
mod stats;
mod subdocument;

pub(crate) use connection::serve;
pub(crate) use features::OFFERED;
