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
#[path = "../clients/http1.rs"]
mod http1;
#[path = "../clients/http2.rs"]
mod http2;
#[path = "../clients/integrations.rs"]
mod integrations;
#[path = "../clients/keep_alive.rs"]
mod keep_alive;
#[path = "../clients/nested.rs"]
mod nested;
#[path = "../clients/raw.rs"]
mod raw;
#[path = "../clients/redirects.rs"]
mod redirects;
#[path = "../clients/reqwest_client.rs"]
mod reqwest_client;
#[path = "../clients/streams.rs"]
mod streams;

use steadfast_http::reqwest_0_12 as integration;
