//! What the HTTP services need of the cluster that they belong to.
//!
//! The services know how to speak HTTP and how to read its answers. Where the
//! nodes are, who the user is and whether the client is still open is the
//! cluster's business, which this trait keeps small enough to see through.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use steadfast::{Reason, RetryStrategy};
use steadfast_wire::config::{ClusterConfig, Service};
use tokio::sync::watch;

use super::Services;
use crate::observe::Reports;

/// The cluster, as its HTTP services see it.
pub(crate) trait Host: Send + Sync {
    /// The services' own state, of which a cluster has one.
    fn services(&self) -> &Services;

    /// The newest config, if one has come.
    fn config(&self) -> Option<Arc<ClusterConfig>>;

    /// The network by whose addresses nodes are reached; `None` is the cluster's
    /// own.
    fn network(&self) -> Option<Arc<str>>;

    /// Whether connections are made with TLS.
    fn is_tls(&self) -> bool;

    /// The header `Authorization`, marked sensitive; `None` if a client
    /// certificate says it all.
    fn authorization(&self) -> Option<HeaderValue>;

    /// How much time an operation of this service has unless it says otherwise.
    fn timeout(&self, service: Service) -> Duration;

    /// The strategy of operations that bring none.
    fn strategy(&self) -> Arc<dyn RetryStrategy>;

    /// The reason for which topology connections cannot be made, if it is one
    /// that waiting will not mend, and what is known about it. Consulted only
    /// when an operation cannot be dispatched (D19).
    fn terminal(&self) -> Option<(&'static Reason, String)>;

    /// Changes when config, terminal reason or closedness does.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Whether the client was closed.
    fn is_closed(&self) -> bool;

    /// The name that the client introduces itself with.
    fn agent(&self) -> &str;

    /// Where slow requests are reported.
    fn reports(&self) -> &Reports;
}
