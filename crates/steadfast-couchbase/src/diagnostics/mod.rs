//! Whether the client is ready, and how its endpoints are.

mod checkup;
mod ping;
mod ready;
mod report;

pub use checkup::{CheckResult, Checkup, Finding};
pub use ping::{PingReport, PingResult};
pub use ready::Readiness;
pub use report::{DiagnosticsReport, EndpointDiagnostics, EndpointState};
