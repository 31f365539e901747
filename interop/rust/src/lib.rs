//! Tests of the official Rust SDK against an in-process cluster.
