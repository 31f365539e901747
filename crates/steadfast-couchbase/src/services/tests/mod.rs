//! The services against a real cluster, over real sockets.

mod query;
mod support;
