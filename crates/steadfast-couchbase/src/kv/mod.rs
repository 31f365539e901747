//! The key-value service: connections, operations, and what answers mean.

pub(crate) mod connection;
#[cfg(test)]
mod decisions;
pub(crate) mod execute;
pub(crate) mod handshake;
pub(crate) mod last;
pub(crate) mod meaning;
pub(crate) mod operation;
pub(crate) mod packing;
pub(crate) mod request;
