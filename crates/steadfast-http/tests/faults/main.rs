//! Faults on sockets, for every integration. The server's log is the judge: a request
//! that is not idempotent is carried out at most once, and no error says "was not
//! applied" of one that was carried out.
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
mod streams;
mod tunnel;

use steadfast_http::reqwest as integration;
