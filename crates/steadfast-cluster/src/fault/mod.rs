//! Faults: rules that break requests on purpose.
//!
//! A [`Fault`] is a rule: a [`FaultCondition`] selects requests, and an [`Effect`] says what
//! happens to them. Rules are tried in the order in which they were added, and the first
//! match wins. An [`Effect::Pass`] in front therefore exempts requests from a broader rule
//! behind it. A rule ends when its [`FaultGuard`] is dropped. A [`Schedule`] orders faults
//! and topology changes over time.
//!
//! ```
//! use steadfast_cluster::fault::Fault;
//! use steadfast_wire::{Opcode, Status};
//!
//! let fault = Fault::on(Opcode::Set).key("user:42").times(3).answer(Status::TemporaryFailure);
//! assert_eq!(fault.to_string(), "SET of key \"user:42\", 3 times: answer ETMPFAIL (0x86)");
//! ```

mod active;
mod rule;
mod schedule;
mod spec;
mod validate;
pub(crate) mod vocabulary;

pub use active::FaultGuard;
pub(crate) use active::{Faults, FiredFault, IncomingRequest};
pub use rule::{Effect, Fault, FaultAnswer, FaultCondition, Garble};
pub use schedule::Schedule;
pub(crate) use spec::text_or_number;
pub use vocabulary::{parse_opcode, parse_status};
