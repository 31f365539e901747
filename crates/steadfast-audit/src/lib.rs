//! Tests from outside whether any client retries safely.
//!
//! Almost everybody who calls a service has configured retries, and almost nobody has seen them
//! work. This crate runs any client as a program, once for each [`AuditCase`], against a server
//! on loopback that fails on purpose. It judges by what arrives there, and when:
//!
//! - [`Rating::Unsafe`]: a request that is not idempotent arrived again, although it may have
//!   been applied;
//! - [`Rating::Storm`]: retries have no bound, no backoff or no jitter;
//! - [`Rating::Rude`]: a retry came before the time that `Retry-After` names;
//! - [`Rating::GivesUpEarly`]: the client did not survive a fault that one retry survives;
//! - [`Rating::NotSeen`]: the case showed nothing, so nothing is claimed;
//! - [`Rating::Good`]: none of these.
//!
//! [`cases`] holds the faults as a table: what the server does, and what follows from it for a
//! client. The server knows nothing of ratings, and the judgement nothing of sockets. Nothing
//! is random.
#![forbid(unsafe_code)]

pub mod cases;
mod command;
pub mod couchbase;
mod expect;
mod journal;
mod judge;
mod probe;
mod report;
mod run;
mod server;

pub use cases::{AuditCase, AuditProtocol};
pub use command::{ClientEnd, ExitCause};
pub use expect::{DemandResult, SafetyDemand};
pub use journal::HttpArrival;
pub use judge::Rating;
pub use report::{AuditReport, CaseReport, RetryRecord, UnseenPart};
pub use run::{AuditError, AuditProgress, AuditSettings, audit_http};
