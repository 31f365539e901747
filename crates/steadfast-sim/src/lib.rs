//! Deterministic simulation of client, cluster and load.
//!
//! The client, the test cluster and the workload of `steadfast load` run unchanged, on one thread
//! and in virtual time, on a simulated network. One seed determines a run to the last byte, so a
//! failure that took thousands of seeds to find is repeated at will.
//!
//! - [`RunPlan`]: what a run does, made from a seed and readable as JSON.
//! - [`run`]: plays a plan and returns an [`RunOutcome`].
//! - [`Campaign`]: plays many seeds and collects their [`Findings`].
//! - [`shrink`]: removes from a failing plan whatever the failure does not need.
//!
//! A process plays one plan: counters of the process are a part of what is sent.
//! `steadfast simulate` starts a process for each seed.
#![deny(unsafe_code)]

mod campaign;
mod entropy;
mod net;
mod network_fault;
#[cfg(test)]
mod outages;
mod outcome;
mod plan;
mod run;
mod shrink;

pub use campaign::{Campaign, Findings, SeedFailure};
pub use net::Direction;
pub use network_fault::{NetworkFault, NetworkFaultKind};
pub use outcome::RunOutcome;
pub use plan::RunPlan;
pub use run::run;
pub use shrink::{Shrunk, shrink};
