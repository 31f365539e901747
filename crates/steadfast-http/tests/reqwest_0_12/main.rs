//! The tests of reqwest 0.13, with reqwest 0.12.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::duplicate_mod,
    unreachable_pub,
    reason = "tests may panic and read the clock"
)]

extern crate reqwest_0_12 as reqwest;
extern crate reqwest_middleware_0_4 as reqwest_middleware;

#[path = "../common/mod.rs"]
mod common;
#[path = "../faults/http1.rs"]
mod http1;
#[path = "../faults/http2.rs"]
mod http2;
#[path = "../faults/integrations.rs"]
mod integrations;
#[path = "../faults/keep_alive.rs"]
mod keep_alive;
#[path = "../faults/nested.rs"]
mod nested;
#[path = "../faults/raw.rs"]
mod raw;
#[path = "../redirects.rs"]
mod redirects;
#[path = "../reqwest.rs"]
mod requests;
#[path = "../faults/streams.rs"]
mod streams;

use steadfast_http::reqwest_0_12 as integration;
