//! Diagnostics: readiness, pings, the state of endpoints, and step-by-step checks.

mod checkup;
mod ping;
mod ready;
mod report;

pub use checkup::{CheckResult, Checkup, Finding};
pub use ping::{PingReport, PingResult};
pub use ready::Readiness;
pub use report::{DiagnosticsReport, EndpointDiagnostics, EndpointState};
