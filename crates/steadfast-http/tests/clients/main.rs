//! All integrations, mostly over sockets. The server's log is the judge: a request that is
//! not idempotent is carried out at most once, and no error says "was not applied" of one
//! that was carried out.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests may panic and read the clock"
)]

#[path = "../common/mod.rs"]
mod common;
mod early;
mod http1;
mod http2;
mod integrations;
mod keep_alive;
mod nested;
mod raw;
mod redirects;
mod requests;
mod reqwest_client;
mod streams;
mod tower_layer;
mod tunnel;
mod worlds;

use steadfast_http::reqwest as integration;
