//! Pings every node and service.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use steadfast_wire::config::Service;
use steadfast_wire::{FrameBuilder, Status};

use crate::Cluster;
use crate::kv::connection::{Admission, NoResponseCause};
use crate::kv::operation::KvOperation;
use crate::services;
use crate::topology::{BucketCore, Node};
use crate::world::{before, deadline_after, now};

/// The results of pinging all endpoints.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct PingReport {
    /// One entry for each endpoint.
    pub endpoints: Vec<PingResult>,
}

/// The result of pinging one endpoint.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct PingResult {
    /// The service.
    pub service: &'static str,
    /// The bucket, if the endpoint has one.
    pub bucket: Option<String>,
    /// The node, as `host:port`.
    pub remote: String,
    /// The time until the response.
    pub latency: Option<Duration>,
    /// The error, if there was no response.
    pub error: Option<String>,
}

impl PingReport {
    /// Whether all endpoints answered.
    pub fn is_ok(&self) -> bool {
        self.endpoints
            .iter()
            .all(|endpoint| endpoint.error.is_none())
    }
}

impl Cluster {
    /// Pings every node of every open bucket over a separate connection, and every HTTP service of the cluster.
    /// Pings of nodes are retried as the client's strategy decides; those of services
    /// are sent once.
    ///
    /// Cancel-safe: dropping the future abandons the pings.
    pub async fn ping(&self) -> PingReport {
        let mut pings = Vec::new();
        for bucket in self.core().buckets() {
            let routes = bucket.routes.load();
            let nodes = routes.iter().flat_map(|routes| routes.nodes());
            pings.extend(nodes.map(|node| ping_node(bucket.clone(), node.clone())));
        }
        let (mut endpoints, services) =
            futures_util::future::join(futures_util::future::join_all(pings), self.ping_services())
                .await;
        endpoints.extend(services);
        PingReport { endpoints }
    }

    /// Pings the HTTP services. Cancel-safe: dropping the future abandons the pings.
    async fn ping_services(&self) -> Vec<PingResult> {
        let handle = self.handle();
        let Some(config) = self.core().config() else {
            return Vec::new();
        };
        let mut pings = Vec::new();
        for service in Service::ALL {
            if service == Service::KeyValue {
                continue;
            }
            for endpoint in services::ping::Endpoint::all(&config, service, self.core()) {
                let remote = endpoint.authority.to_string();
                let timeout = self.core().options.connect_timeout;
                let ping = services::ping::ping(handle.clone(), service, endpoint, timeout);
                let name = services::name(service);
                pings.push(async move {
                    let latency = ping.await.map_err(|error| error.to_string());
                    PingResult::new(name, None, remote, latency)
                });
            }
        }
        futures_util::future::join_all(pings).await
    }
}

impl PingResult {
    fn new(
        service: &'static str,
        bucket: Option<String>,
        remote: String,
        latency: Result<Duration, String>,
    ) -> Self {
        Self {
            service,
            bucket,
            remote,
            latency: latency.as_ref().ok().copied(),
            error: latency.err(),
        }
    }
}

/// Pings a node once. Cancel-safe: dropping the future abandons the ping.
async fn ping_node(bucket: Arc<BucketCore>, node: Arc<Node>) -> PingResult {
    let name = Some(bucket.name.to_string());
    PingResult::new(
        "kv",
        name,
        node.label.to_string(),
        noop(&bucket, &node).await,
    )
}

/// Sends a NOOP over the connection that tracks the topology, because it is a barrier
/// ([D56](steadfast::decisions#d56)).
async fn noop(bucket: &Arc<BucketCore>, node: &Arc<Node>) -> Result<Duration, String> {
    let deadline = deadline_after(bucket.core.options.kv_timeout);
    if node.connection(0).is_none() {
        return Err(match bucket.core.terminals.for_bucket(&bucket.name) {
            Some(rejected) => rejected.note,
            None => "no connection to the node".to_owned(),
        });
    }
    let connection = before(deadline, node.tracking_connection(bucket)).await;
    let Some(Ok(connection)) = connection else {
        return Err("no connection for pings to the node".to_owned());
    };
    let (opcode, begun) = (KvOperation::Noop.opcode(), now());
    let ticket = connection.submit(opcode, deadline, Admission::Always, |opaque, out| {
        FrameBuilder::request(opcode).opaque(opaque).encode(out)
    });
    let Ok(ticket) = ticket else {
        return Err("the connection is closed".to_owned());
    };
    match ticket.await {
        Ok(answer) if answer.status() == Status::Success => {
            Ok(now().saturating_duration_since(begun))
        }
        Ok(answer) => {
            let status = answer.status();
            if (connection.handle_status(KvOperation::Noop, false, status)).fetches_config {
                bucket.config_wanted.notify_one();
            }
            Err(format!("the node answered {status}"))
        }
        Err(ended) => Err(match ended.cause {
            NoResponseCause::TimedOut => "no response in time",
            NoResponseCause::ClosedByUser => "the client was closed",
            NoResponseCause::Closed | NoResponseCause::WentSilent => "the connection was lost",
        }
        .to_owned()),
    }
}
