//! Requests to a node of the cluster, and how far they came.
//!
//! What may be retried hangs on the stage in which an attempt ended, so this is
//! where HTTP is made to say it honestly:
//!
//! - [`Connector`] opens connections. Whatever goes wrong there, nothing of the
//!   request has left.
//! - [`Outgoing`] marks the moment in which a connection takes the request up. A
//!   request that fails before, as on a pooled connection that the server has
//!   closed meanwhile, was not sent. From then on bytes may have left.
//! - [`Exchange`] picks a node, sends, and turns what happens into a failure of
//!   the right stage, reason and peer.
//! - [`Reader`] is the body of the answer, which ends at the deadline and when
//!   the client is closed.
//!
//! There is one retry loop, and it is not here: hyper's own repetition of
//! requests is switched off.

mod breakers;
mod connector;
mod endpoint;
mod exchange;
mod outgoing;
mod reader;
mod watch;

pub(crate) use breakers::Breakers;
pub(crate) use connector::Connector;
pub(crate) use endpoint::{Endpoint, Turns};
pub(crate) use exchange::{Answer, Exchange};
pub(crate) use outgoing::Outgoing;
pub(crate) use reader::{Reader, Unread};
pub(crate) use watch::Interrupted;

use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use outgoing::Marked;

/// The client with its pool of connections.
pub(crate) type HttpClient = Client<Connector, Marked>;

/// The most that a head may have. Answers of the services have a few hundred
/// bytes of headers.
const MAX_HEAD: usize = 64 * 1024;

/// A client whose connections close after being idle for so long.
pub(crate) fn client(
    tls: Option<Arc<rustls::ClientConfig>>,
    connect_timeout: Duration,
    idle: Duration,
) -> (HttpClient, Connector) {
    let connector = Connector::new(tls, connect_timeout);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle)
        .http1_max_buf_size(MAX_HEAD)
        // The orchestrator decides what is sent again.
        .retry_canceled_requests(false)
        .build(connector.clone());
    (client, connector)
}
