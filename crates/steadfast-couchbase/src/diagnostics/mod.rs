//! Whether the client is ready, and how its endpoints are.

mod checkup;
mod ping;
mod ready;
mod report;

pub use checkup::{Checkup, Finding, Outcome};
pub use ping::{PingReport, PingResult};
pub use ready::Readiness;
pub use report::{DiagnosticsReport, EndpointDiagnostics, EndpointState};
