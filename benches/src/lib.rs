//! Exact measurements: allocations, and instructions by callgrind.
//!
//! The same build gives the same numbers on any day and on a busy machine, so a check can
//! hold the code to them.

mod alloc;
mod instructions;

pub use alloc::{allocations_during, allocations_per_call};
pub use instructions::{Unmeasured, instructions_between, instructions_per_call};

/// A workload that makes a given number of calls.
///
/// The loop is inside, so that measuring one does not put an indirect call
/// around each of its calls.
pub type Workload<'a> = &'a (dyn Fn(u64) + Sync);

/// The part of a budget of instructions that may be exceeded, because they move a little
/// from build to build.
pub const SLACK: f64 = 1.03;
