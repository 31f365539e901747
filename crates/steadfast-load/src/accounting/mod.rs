//! Compares what the client reported about every write with what the cluster did.
//!
//! There are three sources for each write: the outcome that the client returned, the
//! cluster's journal of applied mutations, and the document, read back through the
//! client. They must agree:
//!
//! | outcome | applied | found when read back |
//! |---|---|---|
//! | acknowledged | exactly once | once |
//! | failed | never | never |
//! | ambiguous | at most once | at most once |
//!
//! Anything else is a [`Violation`]. An acknowledged write that is missing is *lost*; one
//! that is there more than once was *applied twice*. The rest is *unexplained*: a failed
//! write that was applied, an error without a fault that causes it, a journal entry
//! without a write.
//!
//! All acknowledged writes count, durable or not. A failover of a real cluster may lose a
//! write that only one node acknowledged. This crate fails a node over only while every
//! replica is in step, so nothing may be lost.

mod journal;
mod violation;
mod write;
mod write_log;

#[cfg(test)]
pub(crate) use journal::Mutation;
pub(crate) use journal::{ExpectedDocuments, JournalAudit};
pub(crate) use violation::{Violation, ViolationKind};
pub(crate) use write::WriteOutcome;
pub(crate) use write_log::{KEPT, Totals, WriteLog};
