//! The services that speak HTTP.
//!
//! Each service of each node has a listener. `serve` is the transport: it reads
//! requests, asks the fault rules, and applies their effect to the connection. A
//! request is then answered by the first of these that applies:
//!
//! 1. routes that need no credentials;
//! 2. an error, if the credentials are missing or invalid;
//! 3. a [`script`] that matches;
//! 4. the module of the service, a function from [`HttpRequest`] to [`HttpResponse`].
//!
//! The modules:
//!
//! - [`mgmt`]: bootstrap, buckets, collections and users;
//! - [`query`]: statements on documents, by `steadfast-sqlpp`; `analytics`: literals only;
//! - `search` and `views`: empty results, for scripts to fill;
//! - [`control`]: the cluster's own endpoint, for tests in any language.

mod analytics;
mod consistency;
pub(crate) mod control;
mod faults;
mod lenient;
mod message;
pub(crate) mod mgmt;
mod options;
pub(crate) mod query;
mod rows;
pub mod script;
mod search;
mod search_indexes;
mod statement_response;
mod unread;
mod views;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use steadfast_os::net::ResetOnClose;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub(crate) use message::{HttpRequest, HttpResponse};
pub(crate) use search_indexes::SearchIndexes;
pub(crate) use unread::UnreadResponses;

use crate::Service;
use crate::cluster::TestCluster;
use crate::cluster::node::{AcceptedConnection, ServerNode};
use crate::cluster::shared::Shared;
use crate::kv::Stranger;
use crate::users::User;
use lenient::LenientReader;
use statement_response::ResponseMeta;
use unread::BodyInPieces;

/// The largest body that is read.
const MAX_BODY: u64 = 20 * 1024 * 1024;
/// The largest body that is read of a client without valid credentials.
const MAX_STRANGE_BODY: u64 = 16 * 1024;
/// The most bytes that the names and values of headers may have together. The transport has a
/// limit of its own behind this one, for requests that cannot even be read.
const MAX_HEADERS: usize = 32 * 1024;

/// The size of the transport's buffers, one for each direction: what a connection costs whose
/// client reads nothing.
const TRANSPORT_BUFFER: usize = 128 * 1024;

/// The connection that a request came on.
#[derive(Debug, Clone)]
pub(crate) struct HttpSession {
    /// The cluster.
    pub shared: Arc<Shared>,
    /// The node.
    pub node: Arc<ServerNode>,
    /// The service.
    pub service: Service,
    /// The peer.
    pub peer: SocketAddr,
    /// The number of the connection.
    pub connection: u64,
    /// Cancelled once a request on the connection had valid credentials.
    authenticated: CancellationToken,
}

impl HttpSession {
    /// The handle of the cluster, for a request that changes it.
    pub(crate) fn cluster(&self) -> Option<TestCluster> {
        self.shared.cluster()
    }

    /// The user with this password or token; none if neither is right.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<Arc<User>> {
        let users = &self.shared.users;
        match message::basic_credentials(headers) {
            Some((name, password)) => users.check(&name, password.as_bytes()),
            None => users.by_token(message::bearer_token(headers)?),
        }
    }
}

/// Serves an HTTP connection until either side ends it. Dropping the future cuts it.
pub(crate) async fn serve<S>(stream: S, reset: ResetOnClose, connection: AcceptedConnection)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let session = HttpSession {
        shared: connection.shared,
        node: connection.node,
        service: connection.service,
        peer: connection.peer,
        connection: connection.id,
        authenticated: CancellationToken::new(),
    };
    let mut stranger = Some(Stranger::enter(&session.shared.strangers, connection.id));
    let cut = faults::Cut::new(reset);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (session, cut) = (session.clone(), cut.clone());
        async move { Ok::<_, Infallible>(answer(request, session, cut).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new());
    builder.max_buf_size(TRANSPORT_BUFFER);
    // It would be the system's date.
    builder.auto_date_header(!steadfast_os::is_simulated());
    let (reader, writer) = tokio::io::split(stream);
    let stream = tokio::io::join(LenientReader::new(reader), writer);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    loop {
        tokio::select! {
            served = &mut serving => {
                if let Err(error) = served {
                    tracing::debug!(peer = %session.peer, %error, "HTTP connection ended");
                }
                return;
            }
            () = cut.requested() => return,
            () = session.authenticated.cancelled(), if stranger.is_some() => stranger = None,
            () = Stranger::displaced(stranger.as_ref()) => {
                tracing::debug!(peer = %session.peer, "too many clients without credentials");
                return;
            }
        }
    }
}

async fn answer(
    request: hyper::Request<Incoming>,
    session: HttpSession,
    cut: faults::Cut,
) -> hyper::Response<BodyInPieces> {
    let unread = &session.shared.unread;
    let response = match read(request, &session).await {
        Ok(request) => {
            let serve = || async {
                let response = dispatch(&request, &session).await;
                // From here on: a fault may keep the response from its client.
                response.counted(unread, cut.token())
            };
            faults::apply(&request, &session, &cut, serve).await
        }
        Err(refusal) => refusal,
    };
    tracing::debug!(service = %session.service, peer = %session.peer, status = response.status, "answered");
    response.into_hyper(unread, cut.token())
}

/// Reads a request, or says why it is not read. The body of a client without valid credentials is
/// not worth much memory.
async fn read(
    request: hyper::Request<Incoming>,
    session: &HttpSession,
) -> Result<HttpRequest, HttpResponse> {
    let (head, body) = request.into_parts();
    let headers: usize = head
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if headers > MAX_HEADERS {
        let sentence = format!("the headers have {headers} bytes, more than {MAX_HEADERS}");
        return Err(HttpResponse::text(431, &sentence));
    }
    let known = session.user(&head.headers).is_some();
    let limit = if known { MAX_BODY } else { MAX_STRANGE_BODY };
    let too_large = || match known {
        true => HttpResponse::text(413, &format!("the body has more than {limit} bytes")),
        false => unauthenticated(session.service),
    };
    if known {
        session.authenticated.cancel();
    }
    if body.size_hint().lower() > limit {
        return Err(too_large());
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    match Limited::new(body, most).collect().await {
        Ok(body) => Ok(HttpRequest::new(head, body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(HttpResponse::text(
            400,
            &format!("cannot read the body: {error}"),
        )),
    }
}

/// The response to missing or wrong credentials.
fn unauthenticated(service: Service) -> HttpResponse {
    match service {
        Service::Management | Service::KeyValue => mgmt::unauthenticated(),
        Service::Query => query::unauthenticated(),
        Service::Analytics => analytics::unauthenticated(),
        Service::Search => search::unauthenticated(),
        Service::Views => views::unauthenticated(),
    }
}

/// Passes a request to its service.
async fn dispatch(request: &HttpRequest, session: &HttpSession) -> HttpResponse {
    if let Some(response) = open_to_all(request, session) {
        return response;
    }
    let Some(user) = session.user(&request.headers) else {
        return unauthenticated(session.service);
    };
    if let Some(response) = session.shared.scripts.answer(request, session) {
        return response;
    }
    match session.service {
        Service::Management => mgmt::answer(request, session, &user).await,
        Service::Query => query::answer(request, session, &user),
        Service::Analytics => analytics::answer(request),
        Service::Search => search::answer(request, session),
        Service::Views => views::answer(request, session, &user),
        Service::KeyValue => HttpResponse::text(404, "this port does not speak HTTP"),
    }
}

/// Requests that need no credentials: pings, and the first look at a cluster.
fn open_to_all(request: &HttpRequest, session: &HttpSession) -> Option<HttpResponse> {
    let path = request.path.as_str();
    match session.service {
        Service::Management => mgmt::open(request, session),
        Service::Query | Service::Analytics => (path == "/admin/ping")
            .then(|| HttpResponse::new(200, "application/json", "{\"status\":\"OK\"}")),
        Service::Search => (path == "/api/ping").then(|| HttpResponse::text(200, "")),
        Service::Views => (path == "/").then(|| {
            let version = session.shared.version.rules().full_name;
            let version = version
                .split_once('-')
                .map_or(version, |(number, _)| number);
            let welcome = serde_json::json!({"couchdb": "Welcome", "version": version});
            HttpResponse::json(200, &welcome)
        }),
        Service::KeyValue => None,
    }
}

/// The envelope that a service has around rows.
fn envelope(request: &HttpRequest, service: Service, rows: usize) -> rows::Envelope {
    match service {
        Service::Query | Service::Analytics => {
            let members = options::read(request).unwrap_or_default();
            let context_id = options::context_id(&members);
            let header = match service {
                Service::Analytics => ResponseMeta::analytics(context_id),
                _ => ResponseMeta::new(context_id),
            };
            header.around_rows()
        }
        Service::Search => search::envelope(rows),
        Service::Views => views::envelope(rows),
        Service::Management | Service::KeyValue => rows::Envelope {
            head: "[".into(),
            tail: Box::new(|_| "]".into()),
        },
    }
}
