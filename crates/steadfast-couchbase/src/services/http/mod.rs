//! HTTP requests to the nodes of a cluster, and how far each came.
//!
//! Whether a retry is lawful depends on the stage in which an attempt ended, so
//! this module makes HTTP report that stage:
//!
//! - [`mod@client`] opens connections and marks the moment in which one of them takes
//!   up a request. Before that moment nothing was sent; after it bytes may have
//!   left.
//! - [`pool`] keeps idle connections, and forgets them after a timeout.
//! - [`operation`] picks a node and sends.
//! - [`failed_attempt`] turns what happens into a failure with the right stage, reason and
//!   peer.
//! - [`response`] reads the response until it ends, the deadline passes or the
//!   client is closed.
//! - [`endpoint`] knows the nodes that have a service, and whose turn it is.
//!
//! Hyper's own repetition of requests is switched off: only the orchestrator
//! retries.

mod client;
mod endpoint;
mod failed_attempt;
mod operation;
mod pool;
mod response;

pub(crate) use client::HttpRequest;
pub(crate) use endpoint::{Endpoint, RoundRobin};
pub(crate) use failed_attempt::mask_credentials;
pub(crate) use operation::{HttpOperation, HttpSender, run};
pub(crate) use pool::KnownEndpoints;
pub(crate) use response::{
    HttpResponse, ReadError, ResponseBody, ServiceError, ServiceResponse, named_limit,
};
