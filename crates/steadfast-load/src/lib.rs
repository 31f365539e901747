//! A workload whose every write is accounted for, through a scripted calamity.
//!
//! *Never apply a write twice* is a promise about what happens between a client and
//! a server when connections break, nodes die and answers get lost. To believe it,
//! one breaks connections and counts. This crate does: it runs a mixed workload
//! through a client, lets a calamity befall the cluster meanwhile, and compares what
//! the client was told about every single write with what the cluster's journal and
//! the documents say.
//!
//! - [`workload`]: what is done.
//! - [`calamity`]: what befalls the cluster.
//! - [`accounting`]: whether every write came to what its client was told.
//! - [`client`]: what the workload needs of a client; this project's, or another.
//! - [`measure`], [`progress`], [`report`]: what one sees of it.
//! - [`mod@run`]: all of it together.
#![forbid(unsafe_code)]

pub mod accounting;
pub mod calamity;
pub mod client;
pub mod embedded;
pub mod measure;
pub mod progress;
pub mod report;
pub mod run;
pub mod token;
pub mod workload;

pub use embedded::Embedded;
pub use report::Report;
pub use run::{Settings, Target, run};
