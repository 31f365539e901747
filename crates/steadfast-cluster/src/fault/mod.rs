//! Breaking things on purpose.
//!
//! A fault is a rule with a verdict: *when* a request looks like this, *do* that to it.
//! Rules are asked in the order in which they were added and the first that matches
//! wins, so a [`Verdict::Pass`] in front exempts what a broader rule behind would hit.
//! A rule goes away when its [`FaultGuard`] is dropped.
//!
//! ```
//! use steadfast_cluster::fault::Fault;
//! use steadfast_wire::{Opcode, Status};
//!
//! let fault = Fault::on(Opcode::Set).key("user:42").times(3).answer(Status::TemporaryFailure);
//! assert_eq!(fault.to_string(), "SET of key \"user:42\", 3 times: answer ETMPFAIL (0x86)");
//! ```

mod rule;
mod rules;
mod sense;
mod spec;

pub use rule::{Answer, Fault, Garble, KeyMatch, Verdict, When};
pub use rules::{Decision, Event, FaultGuard, FaultStatus, Faults};
pub use spec::{FaultSpec, SpecError};
