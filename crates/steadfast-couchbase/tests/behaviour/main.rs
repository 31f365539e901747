//! How the client behaves against a real cluster on real sockets, and against
//! servers that are not what they say.
//!
//! One binary, since linking takes longer than running. Tests wait for
//! conditions; where an operation has to run out of time, its time is short.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod access;
mod closing;
mod collections;
mod configs;
mod conformance;
mod errors;
mod hostile;
mod routing;
mod scripted;
mod sockets;
mod statuses;
mod storm;
mod support;
