//! Nothing but tests: the official Rust SDK against an in-process cluster.
