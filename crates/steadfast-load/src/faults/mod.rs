//! Faults that a run injects into its cluster.
//!
//! The seed and the duration determine the [`schedule`]: every [`FaultKind`] once, in
//! its own order. The [`FaultInjector`] plays it on the cluster and records it in the
//! [`FaultLog`]. At the end, [`Coverage`] says what each fault caused.

mod beside;
mod coverage;
mod inject;
mod kind;
mod log;
mod schedule;

pub(crate) use beside::Beside;
pub(crate) use coverage::{Coverage, Observed};
pub(crate) use inject::FaultInjector;
#[cfg(test)]
pub(crate) use kind::FaultKind;
#[cfg(test)]
pub(crate) use log::FaultTotals;
pub(crate) use log::{FaultLog, InjectedFault};
pub(crate) use schedule::{ScheduledFault, schedule};
