//! The workload: what each worker does, and what its documents must then contain.
//!
//! Each worker has documents of its own, so that it knows what must be in them, and uses
//! documents of all workers, whose histories are checked, and runs
//! one operation after the other, at the [`Pace`] of the run. Documents that are made once, or that grow, are read
//! back and removed after a while, so that a long run needs no more memory than a short
//! one.

mod expected;
pub(crate) mod keys;
mod kind;
mod pace;
mod plan;
mod run_state;
mod value;
mod worker;

pub(crate) use kind::OpKind;
pub(crate) use pace::{Pace, Starts};
pub(crate) use run_state::RunState;
pub(crate) use value::whole;
pub(crate) use worker::{FinalRead, Worker};
