//! Pings every node and service.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use steadfast::reason::TIMEOUT;
use steadfast::strategy::AnyStrategy;
use steadfast::{Call, Failure, Stage};
use steadfast_wire::config::Service;
use steadfast_wire::{FrameBuilder, Status};

use crate::Cluster;
use crate::client::Core;
use crate::drive::{AttemptError, Attempts, Driven, drive};
use crate::error::{Error, ErrorKind, OperationTarget};
use crate::kv::attempt::with_directive;
use crate::kv::connection::{Admission, Connection, NoResponseCause, SubmitError};
use crate::kv::meaning::Disposition;
use crate::kv::operation::KvOperation;
use crate::observe::Dispatch;
use crate::reason::{SOCKET_CLOSED_WHILE_IN_FLIGHT, SOCKET_NOT_AVAILABLE, UNKNOWN};
use crate::services;
use crate::topology::{BucketCore, Node};
use crate::world::{before, now};

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
                pings.push(async move { PingResult::new(name, None, remote, ping.await) });
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
        latency: Result<Duration, Error>,
    ) -> Self {
        Self {
            service,
            bucket,
            remote,
            latency: latency.as_ref().ok().copied(),
            error: latency.err().map(|error| error.to_string()),
        }
    }
}

/// Pings a node. Cancel-safe: dropping the future abandons the ping.
async fn ping_node(bucket: Arc<BucketCore>, node: Arc<Node>) -> PingResult {
    let operation = KvOperation::Noop;
    let call = Call::new(operation.name())
        .service("kv")
        .idempotent(operation.is_idempotent())
        .timeout(bucket.core.options.kv_timeout);
    let strategy = AnyStrategy::Borrowed(&*bucket.core.strategy);
    let mut ping = Ping {
        bucket: &bucket,
        node: &node,
        status: None,
    };
    let latency = drive(call, strategy, &bucket.core, &mut ping).await;
    let name = Some(bucket.name.to_string());
    PingResult::new("kv", name, node.label.to_string(), latency)
}

struct Ping<'a> {
    bucket: &'a Arc<BucketCore>,
    node: &'a Arc<Node>,
    /// The status of a response that is not a success.
    status: Option<Status>,
}

impl Ping<'_> {
    /// Says what it means that a node answered with an error status.
    fn refused(&mut self, status: Status, connection: &Connection) -> AttemptError {
        self.status = Some(status);
        let meaning = connection.handle_status(KvOperation::Noop, false, status);
        if meaning.fetches_config {
            self.bucket.config_wanted.notify_one();
        }
        match (meaning.disposition, meaning.disposition.failure()) {
            (_, Some((failure, kind))) => {
                let failure = failure
                    .with_peer(self.node.label.clone())
                    .with_note(format!("answered {status}"));
                AttemptError::Failed(with_directive(failure, connection, status), kind)
            }
            (Disposition::Final(kind), None) => AttemptError::Final(kind),
            // A ping has no paths, and only the status "success" means that the
            // node is well, whatever the error map says.
            (_, None) => AttemptError::Final(ErrorKind::Couchbase),
        }
    }
}

impl Attempts for Ping<'_> {
    /// Cancel-safe: dropping the future abandons the request.
    async fn attempt(&mut self, deadline: Option<Instant>) -> Result<Duration, AttemptError> {
        let kind = ErrorKind::ServiceNotAvailable;
        let unavailable = |note: &'static str| {
            let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE);
            let failure = failure.with_peer(self.node.label.clone()).with_note(note);
            Err(AttemptError::Failed(failure, kind))
        };
        if self.bucket.core.is_closed() {
            return Err(AttemptError::Closed(Failure::not_sent(&UNKNOWN)));
        }
        if self.node.connection(0).is_none() {
            return match self.bucket.core.terminals.for_bucket(&self.bucket.name) {
                Some(rejected) => Err(AttemptError::Failed(rejected.failure(), kind)),
                None => unavailable("no connection to the node"),
            };
        }
        // Not over a connection with operations, where a ping would be a barrier (D56).
        let connection = self.node.tracking_connection(self.bucket);
        let Some(Ok(connection)) = before(deadline, connection).await else {
            return unavailable("no connection for pings to the node");
        };
        let opcode = KvOperation::Noop.opcode();
        let begun = now();
        let ticket = connection.submit(opcode, deadline, Admission::Always, |opaque, out| {
            FrameBuilder::request(opcode).opaque(opaque).encode(out)
        });
        let ticket = match ticket {
            Ok(ticket) => ticket,
            Err(SubmitError::Closed) => return unavailable("the connection is closed"),
            Err(SubmitError::Full) => return unavailable("the connection is full"),
            Err(SubmitError::Unencodable(_)) => {
                return Err(AttemptError::Unsendable(ErrorKind::InvalidArgument));
            }
        };
        match ticket.await {
            Ok(answer) if answer.status() == Status::Success => {
                Ok(now().saturating_duration_since(begun))
            }
            Ok(answer) => Err(self.refused(answer.status(), &connection)),
            Err(ended) => {
                let failure = match ended.cause {
                    NoResponseCause::TimedOut => Failure::in_flight(&TIMEOUT).timed_out(),
                    NoResponseCause::ClosedByUser
                    | NoResponseCause::Closed
                    | NoResponseCause::WentSilent => {
                        Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT)
                    }
                };
                if ended.cause == NoResponseCause::ClosedByUser {
                    return Err(AttemptError::Closed(failure));
                }
                let failure = failure.with_peer(self.node.label.clone());
                Err(AttemptError::Failed(failure, kind))
            }
        }
    }

    /// Cancel-safe.
    async fn woken(&mut self, _: Stage) {
        self.bucket.core.closed.cancelled().await
    }
}

impl Driven for Ping<'_> {
    type Output = Duration;

    fn add_context(&mut self, error: Error) -> Error {
        let error = error.with_target(OperationTarget::bucket(&self.bucket.name));
        match self.status {
            Some(status) => error.because(format!("the node answered {status}")),
            None => error,
        }
    }

    fn core(&self) -> &Core {
        &self.bucket.core
    }

    fn place(&self) -> [&str; 3] {
        [&self.bucket.name, "", ""]
    }

    fn dispatch(&self, _: Option<&Duration>) -> Dispatch {
        Dispatch {
            node: Some(self.node.label.clone()),
            ..Dispatch::default()
        }
    }
}
