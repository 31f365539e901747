//! Key-value operations against a real cluster on real sockets.
//!
//! One binary with a module for each idea, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod arguments;
mod compression;
mod counters;
mod documents;
mod durability;
mod expiry;
#[path = "../fixture/mod.rs"]
mod fixture;
mod locks;
mod lookups;
mod map_attributes;
mod mutations;
mod replicas;
mod retries;
mod retry_if;
mod text;
