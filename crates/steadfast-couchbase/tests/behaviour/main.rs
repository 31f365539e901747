//! Behaviour of the client against a cluster on real sockets, and against hostile
//! servers.
//!
//! One binary, because linking takes longer than running. Tests wait for
//! conditions; where an operation must time out, its timeout is short.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod access;
mod admission;
mod barriers;
mod closing;
mod collections;
mod configs;
mod conformance;
mod draining;
mod errors;
mod extremes;
mod first_steps;
#[path = "../fixture/mod.rs"]
mod fixture;
mod forwarding;
mod hostile;
mod logging;
mod map_lag;
mod nested;
mod orchestration;
mod overload;
mod production;
mod readiness;
mod redialling;
mod routing;
mod scripted;
mod seeds;
mod silence;
mod slots;
mod sockets;
mod statuses;
