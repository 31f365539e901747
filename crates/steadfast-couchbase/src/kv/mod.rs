//! The key-value service: requests, their attempts, connections, and the meaning
//! of responses.

pub(crate) mod attempt;
pub(crate) mod collection_ids;
mod compression;
pub(crate) mod connection;
mod encode;
pub(crate) mod future;
pub(crate) mod handshake;
pub(crate) mod meaning;
pub(crate) mod operation;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod value;

#[cfg(test)]
mod tests;
