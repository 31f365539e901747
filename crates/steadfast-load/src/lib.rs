//! A load generator that accounts for every write while faults are injected.
//!
//! *Never apply a write twice* is a promise about the moments when connections break,
//! nodes crash and responses get lost. This crate causes such moments and checks the promise. It
//! runs a mixed workload through a client, injects faults into the cluster, and compares
//! what the client reported about every write with the cluster's journal and with the
//! documents.
//!
//! ```no_run
//! use steadfast_load::client::{Access, Steadfast};
//! use steadfast_load::progress::Quiet;
//! use steadfast_load::{Embedded, Settings, Target, run};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let settings = Settings {
//!     seed: 4711,
//!     ..Settings::default()
//! };
//! let cluster = Embedded::start(settings.nodes, settings.seed, settings.tls).await?;
//! let client = Steadfast::connect(Access::embedded(&cluster), None, settings.timeout).await?;
//! let target = Target::Embedded(cluster);
//! let report = run(&settings, client, &target, &mut Quiet, std::future::pending()).await?;
//! assert!(report.holds(), "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! - To test another client, implement [`client::Client`].
//! - `accounting` has the rules for writes, `history` the check of their order, `workload` the operations, `faults` the faults
//!   and their schedule. `run` combines them.
//! - docs/load.md explains the command `steadfast load` and the fields of the JSON report.
#![forbid(unsafe_code)]

mod accounting;
pub mod client;
mod embedded;
mod expect;
mod faults;
mod history;
mod measure;
pub mod progress;
mod report;
mod run;
mod workload;
mod write_id;

pub use embedded::{BUCKET, Embedded, PASSWORD, USER};
pub use expect::Expectation;
pub use report::{LoadReport, MergedReport};
pub use run::{Settings, Target, run};
