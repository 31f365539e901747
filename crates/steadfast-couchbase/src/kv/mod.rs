//! The key-value service: connections, operations, and what answers mean.

pub(crate) mod connection;
pub(crate) mod handshake;
