//! The services that speak HTTP.
//!
//! One listener per service and node ends here. `serve` is the transport: it reads
//! requests, asks the fault rules, and does to the connection what they say. What a
//! request means is for the service's own file to say; each is a function from a
//! [`Request`] to a [`Response`]:
//!
//! - [`mgmt`]: what clients bootstrap from, and what creates and drops things;
//! - [`control`]: the cluster's own endpoint, for tests in any language.
//!
//! Query, analytics, search and views listen already, so that their ports are in every
//! map, and answer 404 until there is something to say.

pub mod control;
mod faults;
mod message;
pub mod mgmt;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite};

pub use message::{Request, Response};

use crate::cluster::Cluster;
use crate::cluster::node::{Connection, Node};
use crate::cluster::shared::Shared;
use crate::service::Service;
use crate::users::User;

/// The largest body that is read.
const MAX_BODY: usize = 20 * 1024 * 1024;

/// Where a request came in.
#[derive(Clone)]
pub struct Place {
    /// The cluster.
    pub shared: Arc<Shared>,
    /// The node.
    pub node: Arc<Node>,
    /// The service.
    pub service: Service,
    /// Who asks.
    pub peer: SocketAddr,
}

impl Place {
    /// The handle of the cluster, for a request that changes it.
    pub fn cluster(&self) -> Option<Cluster> {
        self.shared.cluster()
    }

    /// Who asks, by password or token; nobody if neither is right.
    pub fn user(&self, request: &Request) -> Option<Arc<User>> {
        let users = &self.shared.users;
        match request.basic_credentials() {
            Some((name, password)) => users.check(&name, password.as_bytes()),
            None => users.by_token(request.bearer_token()?),
        }
    }
}

/// Serves an HTTP connection until either side ends it. Dropping the future cuts it.
pub(crate) async fn serve<S>(stream: S, socket: Socket, connection: Connection)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = Place {
        shared: connection.shared,
        node: connection.node,
        service: connection.service,
        peer: connection.peer,
    };
    let cut = faults::Cut::new(socket);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (place, cut) = (place.clone(), cut.clone());
        async move { Ok::<_, Infallible>(answer(request, place, cut).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new());
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = serving => {
            if let Err(error) = served {
                tracing::debug!(peer = %place.peer, %error, "HTTP connection ended");
            }
        }
        () = cut.requested() => {}
    }
}

async fn answer(
    request: hyper::Request<Incoming>,
    place: Place,
    cut: faults::Cut,
) -> hyper::Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let response = match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => {
            let request = Request::new(head, body.to_bytes());
            faults::apply(&request, &place, &cut, || dispatch(&request, &place)).await
        }
        Err(error) => Response::text(413, &format!("cannot read the body: {error}")),
    };
    response.into_hyper()
}

/// Sends a request to its service.
async fn dispatch(request: &Request, place: &Place) -> Response {
    match place.service {
        Service::Mgmt => mgmt::answer(request, place).await,
        Service::Kv => Response::text(404, "this port does not speak HTTP"),
        Service::Query | Service::Analytics | Service::Search | Service::Views => Response::text(
            404,
            &format!("the {} service has nothing here", place.service),
        ),
    }
}
