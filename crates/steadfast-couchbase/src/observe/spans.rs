//! Spans, by the names of SDK RFC 0067 and of OpenTelemetry's database conventions.
//!
//! The fields `otel.…` are those that `tracing-opentelemetry` turns into the name, the
//! kind and the status of a span. Fields are computed only if a subscriber wants the
//! span. Keys, values and statements are in no span: they are often personal data.

use steadfast::Request;
use tracing::Span;
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;

use super::Finished;
use crate::drive::{AttemptError, Driven};
use crate::topology::host_part;

/// Returns whether any subscriber may want spans of requests. It is one load, and most
/// programs have none.
#[inline]
pub(crate) fn spans_are_wanted() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Starts the span of a request.
pub(crate) fn request_span(request: &Request<'_>, operation: &impl Driven) -> Span {
    let target = |index: usize| Some(operation.place()[index]).filter(|name| !name.is_empty());
    let labels = || operation.core().labels();
    tracing::debug_span!(
        "request",
        otel.name = request.operation(),
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = "couchbase",
        db.operation.name = request.operation(),
        db.namespace = target(0),
        couchbase.service = request.service(),
        couchbase.scope.name = target(1),
        couchbase.collection.name = target(2),
        couchbase.durability = operation.durability(),
        couchbase.cluster.name = labels().name.as_deref(),
        couchbase.cluster.uuid = labels().uuid.as_deref(),
        couchbase.retries = Empty,
        error.type = Empty,
    )
}

/// Records the end of a request on its span.
pub(crate) fn end_request(span: &Span, finished: &Finished) {
    if span.is_disabled() {
        return;
    }
    span.record("couchbase.retries", finished.retries);
    if let Some(kind) = finished.error {
        span.record("error.type", kind.name());
        span.record("otel.status_code", "ERROR");
    }
}

/// Starts the span of an attempt, within the current span.
pub(crate) fn attempt_span(number: u32) -> Span {
    tracing::debug_span!(
        "attempt",
        otel.name = "dispatch_to_server",
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = "couchbase",
        db.response.status_code = Empty,
        network.transport = "tcp",
        network.peer.address = Empty,
        network.peer.port = Empty,
        server.address = Empty,
        server.port = Empty,
        couchbase.local_id = Empty,
        couchbase.operation_id = Empty,
        couchbase.server_duration = Empty,
        attempt = number,
        reason = Empty,
        stage = Empty,
        error.type = Empty,
    )
}

/// Facts about an attempt that its span shows.
#[derive(Default)]
pub(crate) struct Dispatch {
    /// The node, as `host:port`.
    pub(crate) node: Option<std::sync::Arc<str>>,
    /// The address that the socket has.
    pub(crate) remote: Option<std::net::SocketAddr>,
    /// The ids of client and connection.
    pub(crate) connection: Option<std::sync::Arc<str>>,
    /// The id of the operation on its connection, or in the service.
    pub(crate) id: Option<String>,
    /// The status of the response.
    pub(crate) status: Option<String>,
    /// The time that the server reports.
    pub(crate) server_duration: Option<std::time::Duration>,
}

/// Records the end of an attempt on its span.
pub(crate) fn end_attempt(span: &Span, dispatch: &Dispatch, tried: Option<&AttemptError>) {
    if let Some(node) = &dispatch.node {
        span.record("server.address", host_part(node));
        if let Some((_, port)) = node.rsplit_once(':')
            && let Ok(port) = port.parse::<u16>()
        {
            span.record("server.port", port);
        }
    }
    if let Some(remote) = dispatch.remote {
        span.record("network.peer.address", remote.ip().to_string());
        span.record("network.peer.port", remote.port());
    }
    if let Some(connection) = &dispatch.connection {
        span.record("couchbase.local_id", &**connection);
    }
    if let Some(id) = &dispatch.id {
        span.record("couchbase.operation_id", id.as_str());
    }
    if let Some(status) = &dispatch.status {
        span.record("db.response.status_code", status.as_str());
    }
    if let Some(duration) = dispatch.server_duration {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        span.record("couchbase.server_duration", micros);
    }
    let Some(tried) = tried else {
        return;
    };
    span.record("otel.status_code", "ERROR");
    match tried {
        AttemptError::Final(kind) | AttemptError::Unsendable(kind) => {
            span.record("error.type", kind.name());
        }
        AttemptError::Failed(failure, _) | AttemptError::Closed(failure) => {
            span.record("reason", failure.reason.name());
            span.record("stage", failure.stage.name());
            span.record("error.type", failure.reason.name());
        }
    }
}
