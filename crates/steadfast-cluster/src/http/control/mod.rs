//! The control endpoint, for tests in any language.
//!
//! The endpoint speaks HTTP and JSON on its own port, so that it answers while
//! everything else is down. It offers the same operations as [`TestCluster`]. An
//! invalid request gets a 400 with a sentence. It listens on loopback unless told
//! otherwise, and every request needs its token: see `guard`.

mod contents;
mod faults;
mod guard;
mod holds;
#[cfg(feature = "sqlpp")]
mod plans;
mod rules;
mod scripts;
mod status;
mod topology;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{HttpRequest, HttpResponse, UnreadResponses};
use crate::cluster::{ClusterError, TestCluster, WeakCluster};
use crate::fault::vocabulary;
use guard::Guard;

/// The largest body that is read.
const MAX_BODY: usize = 1024 * 1024;

const HELP: &str = "\
steadfast cluster: control endpoint

Every request needs the printed token, and a body is JSON:
  Authorization: Bearer TOKEN
  Content-Type: application/json

GET    /status                                    nodes, buckets, addresses, seed
GET    /ca                                        the authority's certificate, PEM
GET    /faults                                    rules in force, and how often they hit
POST   /faults        {\"opcode\":\"SET\",\"key\":\"k\",\"times\":3,\"effect\":\"answer\",\"status\":\"ETMPFAIL\"}
DELETE /faults, /faults/{id}                      remove all, or one
GET    /scripts                                   answers in force, and how often they were given
POST   /scripts       {\"service\":\"query\",\"matching\":\"SELECT\",\"times\":1,\"status\":503,
                       \"headers\":{\"Retry-After\":\"1\"},\"body\":{…}}, or instead of a body
                      {\"rows\":[…],\"error\":{…}}, {\"rows\":[…],\"cut\":true}, and \"pause_ms\", \"skip\", \"node\"
DELETE /scripts, /scripts/{id}                    remove all, or one
GET    /plans                                     how many statements are prepared
POST   /plans/lose    {\"as\":\"forgotten\"}        4040; or unrecognizable (4050), undecodable (4070)
GET    /journal?since=0&limit=1000                applied mutations, oldest first
POST   /topology/rebalance-in   {\"wait\":true,\"vbuckets_per_step\":16,\"pause_ms\":10}
POST   /topology/rebalance-out  {\"node\":1}        both take the pace: 1 or more per step, up to 60000 ms;
                                                  without \"wait\":false the answer comes when it is done
POST   /topology/rebalance                        spread evenly over the nodes as they are
GET    /topology/rebalance                        the one that runs, or ran last: its state, how far it is
POST   /topology/cancel                           stops it where it is; /topology/rebalance goes on from there
POST   /topology/fail-over, /crash, /restart, /recover   {\"node\":1}
POST   /holds         {\"what\":\"replication\",\"node\":1}   or persistence
DELETE /holds/{id}
POST   /buckets       {\"name\":\"b\",\"replicas\":1,\"vbuckets\":1024,\"quota_bytes\":1073741824}
DELETE /buckets/{bucket}                          POST /buckets/{bucket}/flush
POST   /buckets/{bucket}/scopes                   {\"name\":\"s\"}
DELETE /buckets/{bucket}/scopes/{scope}
POST   /buckets/{bucket}/scopes/{scope}/collections  {\"name\":\"c\",\"max_ttl\":0}
DELETE /buckets/{bucket}/scopes/{scope}/collections/{collection}
POST   /users         {\"name\":\"u\",\"password\":\"p\",\"buckets\":[\"b\"],\"read_only\":false}, or \"roles\":\"data_reader[b]\"
DELETE /users/{name}
POST   /clock         {\"advance_ms\":60000}        documents expire, locks end
PUT    /error-map/{hex code}  {\"name\":\"X\",\"desc\":\"…\",\"attrs\":[\"retry-later\"],\"retry\":{…}}
DELETE /error-map/{hex code}
";

/// Starts the endpoint; it ends with the cluster.
pub(crate) async fn start(
    cluster: &TestCluster,
    address: SocketAddr,
    host: Option<&str>,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let problem = format!("cannot listen for control on {address}: {error}");
        io::Error::new(error.kind(), problem)
    })?;
    let bound = listener.local_addr()?;
    let stopped = cluster.stopped();
    // The endpoint must not keep alive what it controls.
    let control = Arc::new(Control {
        cluster: cluster.downgrade(),
        holds: holds::Kept::default(),
        guard: Guard::new(cluster.control_token(), host),
        unread: Arc::clone(&cluster.shared().unread),
    });
    tokio::spawn(stopped.run_until_cancelled_owned(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve(stream, control.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a control connection");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
        }
    }));
    Ok(bound)
}

struct Control {
    cluster: WeakCluster,
    holds: holds::Kept,
    guard: Guard,
    unread: Arc<UnreadResponses>,
}

async fn serve(stream: TcpStream, control: Arc<Control>) {
    let displaced = &CancellationToken::new();
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let control = control.clone();
        async move {
            let (head, body) = request.into_parts();
            let response = match Limited::new(body, MAX_BODY).collect().await {
                Ok(body) => {
                    control
                        .answer(&HttpRequest::new(head, body.to_bytes()))
                        .await
                }
                Err(error) => HttpResponse::error(413, format!("cannot read the body: {error}")),
            };
            Ok::<_, Infallible>(response.into_hyper(&control.unread, displaced))
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new());
    builder.max_buf_size(super::TRANSPORT_BUFFER);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    if let Some(Err(error)) = displaced.run_until_cancelled(serving).await {
        tracing::debug!(%error, "control connection ended");
    }
}

/// The result of a route.
type Routed = Result<HttpResponse, ControlError>;

/// The reason why a control request failed.
#[derive(Debug)]
enum ControlError {
    /// The request is invalid.
    Invalid(String),
    /// It names something that does not exist.
    Missing(String),
    /// The cluster's state does not allow it.
    Conflict(String),
    /// An internal error.
    Internal(String),
}

impl Control {
    async fn answer(&self, request: &HttpRequest) -> HttpResponse {
        if let Some(refusal) = self.guard.refuse(request) {
            return refusal;
        }
        let Some(cluster) = self.cluster.upgrade() else {
            return HttpResponse::error(503, "the cluster has stopped");
        };
        match self.route(request, &cluster).await {
            Ok(response) => response,
            Err(ControlError::Invalid(sentence)) => HttpResponse::error(400, sentence),
            Err(ControlError::Missing(sentence)) => HttpResponse::error(404, sentence),
            Err(ControlError::Conflict(sentence)) => HttpResponse::error(409, sentence),
            Err(ControlError::Internal(sentence)) => HttpResponse::error(500, sentence),
        }
    }

    async fn route(&self, request: &HttpRequest, cluster: &TestCluster) -> Routed {
        let segments = request.segments();
        match (request.method.as_str(), segments.as_slice()) {
            ("GET", []) => Ok(HttpResponse::text(
                200,
                &(HELP.to_owned() + &vocabulary::help()),
            )),
            ("GET", ["status"]) => Ok(status::status(cluster)),
            ("GET", ["ca"]) => status::ca(cluster),
            ("GET", ["journal"]) => status::journal(request, cluster),
            ("POST", ["clock"]) => status::advance_clock(request, cluster),
            (_, ["faults", rest @ ..]) => {
                let add = || faults::add(request, cluster);
                rules::route("fault", rest, request, &cluster.faults().rules, add)
            }
            (_, ["scripts", rest @ ..]) => {
                let add = || scripts::add(request, cluster);
                rules::route("script", rest, request, &cluster.scripts().rules, add)
            }
            #[cfg(feature = "sqlpp")]
            ("GET", ["plans"]) => Ok(plans::count(cluster)),
            #[cfg(feature = "sqlpp")]
            ("POST", ["plans", "lose"]) => plans::lose(request, cluster),
            (method, ["error-map", code]) => faults::error_map(method, code, request, cluster),
            ("GET", ["topology", "rebalance"]) => Ok(topology::rebalance(cluster)),
            ("POST", ["topology", action]) => topology::route(action, request, cluster).await,
            (method, ["holds", rest @ ..]) => self.holds.route(method, rest, request, cluster),
            (method, ["buckets", rest @ ..]) => {
                contents::buckets(method, rest, request, cluster).await
            }
            (method, ["users", rest @ ..]) => contents::users(method, rest, request, cluster),
            (method, _) => Err(no_route(method, request)),
        }
    }
}

fn no_route(method: &str, request: &HttpRequest) -> ControlError {
    ControlError::Missing(format!(
        "there is no {method} {}; GET / lists what there is",
        request.path
    ))
}

fn body<T: serde::de::DeserializeOwned>(request: &HttpRequest) -> Result<T, ControlError> {
    request.json().map_err(ControlError::Invalid)
}

impl From<ClusterError> for ControlError {
    fn from(error: ClusterError) -> Self {
        let sentence = error.to_string();
        match error {
            ClusterError::Invalid(_) | ClusterError::Manifest(_) => Self::Invalid(sentence),
            ClusterError::UnknownNode(_) | ClusterError::UnknownBucket(_) => {
                Self::Missing(sentence)
            }
            ClusterError::Rebalancing | ClusterError::Cancelled => Self::Conflict(sentence),
            ClusterError::Io(_) | ClusterError::Tls(_) => Self::Internal(sentence),
        }
    }
}
