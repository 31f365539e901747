//! The key-value service: connections, operations, and what answers mean.

pub(crate) mod connection;
pub(crate) mod execute;
pub(crate) mod handshake;
pub(crate) mod meaning;
pub(crate) mod operation;
pub(crate) mod request;
