//! A Couchbase client whose retry handling follows the documents to the letter:
//! SDK RFC 0049 revision 16, RFC 0005 and RFC 0013.
#![forbid(unsafe_code)]
#![allow(
    dead_code,
    unused_imports,
    reason = "the connections that use these parts are not there yet"
)]

mod breaker;
mod config_error;
pub mod connection_string;
mod credentials;
mod dns;
pub mod options;
pub mod reason;
mod sasl;
mod tls;

pub use config_error::ConfigError;
pub use connection_string::ConnectionString;
pub use credentials::Credentials;
pub use options::ClusterOptions;
