//! What a run is measured by.
//!
//! - [`Lane`]: the operations of one worker.
//! - [`Timeline`]: all lanes together, interval by interval.
//! - [`Decisions`]: retries and refusals, as the client counts them.
//! - [`resident_bytes`] for memory.

mod decisions;
mod lane;
mod memory;
mod timeline;

pub use decisions::{Decided, Decisions, Recorder};
pub use lane::{Counts, Lane};
pub use memory::resident_bytes;
pub use timeline::{Latency, Sample, Timeline};
