//! Tests of the command as users run it: the real binary, real sockets, its output and its
//! exit status.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod audit;
mod cluster;
mod contents;
mod control;
mod doctor;
mod documents;
mod explain;
mod failures;
#[cfg(unix)]
mod guides;
mod help;
mod interrupts;
mod json;
mod load;
mod login;
mod rebalance;
mod schedule;
mod secrets;
mod simulate;
mod storm;
mod support;
mod timeouts;
mod usage;
