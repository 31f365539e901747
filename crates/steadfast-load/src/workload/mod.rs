//! A workload whose every write can be accounted for.
//!
//! Each worker has documents of its own, so that it always knows what must be in
//! them, and does one thing after the other. Documents that are made only once, or
//! that grow, are read back and removed after a while: a run of hours needs no more
//! room than one of seconds.
//!
//! - [`Kind`]: what there is to do, and how much of each.
//! - [`Step`]: what a worker does next, by the seed.
//! - [`Worker`]: does it, and knows what must have come of it.

mod book;
pub(crate) mod keys;
mod kind;
mod plan;
mod scene;
mod shared;
mod worker;

pub(crate) use keys::all_shared as shared_keys;
pub use kind::{Kind, Place};
pub use plan::Step;
pub use scene::Scene;
pub use worker::{Remains, Worker};
