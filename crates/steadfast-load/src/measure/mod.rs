//! Measurements of a run: operations, latency, retries, memory.

mod histogram;
mod memory;
mod retries;
mod timeline;
mod worker_stats;

pub(crate) use histogram::decoded;
pub(crate) use memory::resident_bytes;
pub use retries::RetryCounts;
pub(crate) use retries::{RetryCount, RetryRecorder};
pub(crate) use timeline::{Latency, Sample, Timeline};
pub(crate) use worker_stats::{OperationCounts, WorkerStats};
