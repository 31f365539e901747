//! The command as people and scripts run it: the real binary, real sockets, what it
//! prints and with which status it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod cluster;
mod doctor;
mod documents;
mod explain;
mod failures;
#[cfg(unix)]
mod guides;
mod help;
mod login;
mod rebalance;
mod schedule;
mod secrets;
mod storm;
mod support;
mod timeouts;
mod usage;
