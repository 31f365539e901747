//! The cluster as clients see it, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod analytics;
mod control;
mod data;
mod documents;
mod faults;
mod http_faults;
mod http_tls;
mod management;
mod order;
mod query;
mod query_options;
mod range_scan;
mod scripts_control;
mod search;
mod setup;
mod strict;
mod subdocument;
mod support;
mod tls;
mod topology;
mod transactions;
mod versions;
mod views;
