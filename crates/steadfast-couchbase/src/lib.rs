//! A Couchbase client whose retry handling follows the documents to the letter:
//! SDK RFC 0049 revision 16, RFC 0005 and RFC 0013.
#![forbid(unsafe_code)]
#![allow(
    dead_code,
    unused_imports,
    reason = "the connections that use these parts are not there yet"
)]

mod breaker;
mod bucket;
mod client;
mod cluster;
pub mod collection;
mod collections;
mod config_error;
mod connection_string;
mod credentials;
mod dns;
mod drive;
mod error;
mod fast_fail;
mod kv;
mod observe;
pub mod options;
pub mod reason;
mod sasl;
mod strategy;
mod tls;
mod topology;
mod world;

pub use bucket::Bucket;
pub use cluster::Cluster;
pub use collection::Collection;
pub use config_error::ConfigError;
pub use connection_string::{ConnectionString, Host};
pub use credentials::Credentials;
pub use error::{Error, ErrorContext, ErrorKind, HttpContext, KvContext, Place, Result};
pub use fast_fail::{TERMINALS, fast_fail_on_terminal_errors, fast_fail_or};
pub use kv::operation::KvOperation;
pub use kv::request::DurabilityLevel;
pub use options::ClusterOptions;
pub use strategy::{ErrorMapDirected, RetryDirective};
