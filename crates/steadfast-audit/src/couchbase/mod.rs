//! Audits a Couchbase SDK through a driver: a small program that does what a line says.
//!
//! A cluster runs in this process. Each case injects one fault, asks the driver for one
//! operation, and judges by what the cluster received and applied, and when; then by what the
//! SDK says. `docs/audit-couchbase.md` describes the lines.

mod cases;
mod driver;
mod judge;
mod report;
mod run;

pub use judge::SdkRating;
pub use report::{SdkAuditReport, SdkCaseReport};
pub use run::{SdkAuditSettings, audit_couchbase};
