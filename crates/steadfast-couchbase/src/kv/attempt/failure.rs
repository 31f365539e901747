//! Failed attempts: no connection, an error response, or no response.
//!
//! Each becomes a [`AttemptError`] that says how far the attempt came. The engine decides
//! from that whether the request may be sent again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast::breaker::Signal;
use steadfast::{Failure, reason::TIMEOUT};
use steadfast_wire::{Frame, Status};

use super::KvAttempts;
use crate::drive::AttemptError;
use crate::error::ErrorKind;
use crate::explain::likely_note;
use crate::hedge::HANGS;
use crate::kv::collection_ids::manifest_uid;
use crate::kv::connection::{Connection, NoResponse, NoResponseCause, SubmitError, Turn};
use crate::kv::meaning::{Disposition, failed_path, path_error};
use crate::options::VbucketRetry;
use crate::reason::{
    CIRCUIT_BREAKER_OPEN, KV_CONNECTION_FULL, NODE_NOT_AVAILABLE, SOCKET_CLOSED_WHILE_IN_FLIGHT,
    SOCKET_NOT_AVAILABLE, UNKNOWN,
};
use crate::strategy::RetryDirective;
use crate::topology::{Node, host_part, is_terminal};
use crate::world::now;

/// The wait for a slot. The operation's turn ends it, or its deadline.
const UNTIL_ITS_TURN: Duration = Duration::from_secs(24 * 3600);

/// The longest wait for a new map. By then the client has polled for one, twice.
const UNTIL_THE_MAP_CHANGES: Duration = Duration::from_secs(5);

/// Returns how long to wait for a new map: a quarter of the time that is left, so that there is
/// time for another attempt if no map comes (D63).
fn until_the_map_changes(deadline: Option<Instant>) -> Duration {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(now()));
    left.map_or(UNTIL_THE_MAP_CHANGES, |left| {
        (left / 4).min(UNTIL_THE_MAP_CHANGES)
    })
}

/// The client is closed, and nothing was sent.
#[cold]
pub(super) fn client_closed() -> AttemptError {
    AttemptError::Closed(not_sent_as_closed())
}

fn not_sent_as_closed() -> Failure {
    Failure::not_sent(&UNKNOWN).with_note("the client is closed")
}

/// The operation waits for its turn, under any strategy.
fn connection_full(peer: Arc<str>, note: &'static str, at_most: Duration) -> AttemptError {
    let failure = Failure::not_sent(&KV_CONNECTION_FULL)
        .with_peer(peer)
        .with_note(note)
        .with_prescribed_delay(at_most);
    AttemptError::Failed(failure, ErrorKind::ServiceNotAvailable)
}

/// Before the frame was submitted.
impl KvAttempts<'_> {
    /// The requested copy does not exist.
    #[cold]
    pub(super) fn no_copy(&mut self, note: &str) -> AttemptError {
        self.last.note(note);
        AttemptError::Unsendable(ErrorKind::DocumentUnretrievable)
    }

    /// There is no connection. Only now do terminal states matter (D19).
    #[cold]
    pub(super) fn no_connection(
        &mut self,
        node: Option<&Arc<Node>>,
        note: impl Into<Cow<'static, str>>,
    ) -> AttemptError {
        self.blocked = true;
        let bucket = self.request.bucket();
        if let Some(rejected) = bucket.core.terminals.for_bucket(&bucket.name) {
            return AttemptError::Failed(rejected.failure(), rejected.kind());
        }
        let failure = match node {
            Some(node) => {
                // A terminal state can end without the node's knowledge, so only
                // the check above counts.
                let rejected = node.rejected().filter(|it| !is_terminal(it.reason));
                let reason = rejected
                    .as_ref()
                    .map_or(&SOCKET_NOT_AVAILABLE, |it| it.reason);
                let failure = Failure::not_sent(reason).with_peer(node.label.clone());
                match rejected {
                    Some(rejected) => failure.with_note(rejected.note),
                    None => failure.with_note(note),
                }
            }
            None => Failure::not_sent(&NODE_NOT_AVAILABLE).with_note(note),
        };
        AttemptError::Failed(failure, ErrorKind::ServiceNotAvailable)
    }

    /// Asks the node's circuit breaker for a permit.
    #[cold]
    pub(super) fn ask_breaker(&mut self, node: &Arc<Node>) -> Result<(), AttemptError> {
        let Some(breaker) = &node.breaker else {
            return Ok(());
        };
        match breaker.allow(now()) {
            Ok(permit) => {
                self.permit = Some(Box::new((node.clone(), permit)));
                Ok(())
            }
            Err(_) => {
                let failure = Failure::not_sent(&CIRCUIT_BREAKER_OPEN);
                let failure = failure.with_peer(node.label.clone());
                let kind = ErrorKind::ServiceNotAvailable;
                Err(AttemptError::Failed(failure, kind))
            }
        }
    }

    /// Returns the permit of an attempt that was not made. Otherwise the breaker
    /// would wait for a canary that was never sent.
    #[cold]
    pub(super) fn return_permit(&mut self) {
        if let Some((node, permit)) = self.permit.take().map(|it| *it)
            && let Some(breaker) = &node.breaker
        {
            breaker.record(permit, Signal::NotMade, now());
        }
    }

    /// The connection is full: the operation keeps its place in line, or joins the line
    /// (D45). It does not wait for a new connection, because there is one.
    #[cold]
    pub(super) fn wait_in_line(
        &mut self,
        turn: Option<Box<Turn>>,
        connection: &Arc<Connection>,
    ) -> AttemptError {
        self.turn = Some(turn.unwrap_or_else(|| Box::new(connection.wait_in_line())));
        let note = "the connection has no free slot";
        connection_full(connection.peer.clone(), note, UNTIL_ITS_TURN)
    }

    /// The connection for durable writes is being dialled. The dial ends soon, or the others are
    /// shared.
    #[cold]
    pub(super) fn wait_for_durable(&mut self, node: &Node) -> AttemptError {
        self.blocked = true;
        let note = "the connection for durable writes is being dialled";
        connection_full(node.label.clone(), note, HANGS)
    }

    /// The connection did not accept the frame.
    #[cold]
    pub(super) fn not_submitted(
        &mut self,
        error: SubmitError,
        connection: &Connection,
    ) -> AttemptError {
        let note = match error {
            SubmitError::Closed => {
                self.blocked = true;
                "the connection is closed"
            }
            SubmitError::Full => "the connection is full",
            SubmitError::Unencodable(error) => {
                self.last.note(error.to_string());
                return AttemptError::Unsendable(ErrorKind::InvalidArgument);
            }
        };
        let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).with_peer(connection.peer.clone());
        let failure = failure.with_note(note);
        AttemptError::Failed(failure, ErrorKind::ServiceNotAvailable)
    }
}

/// After the frame was submitted.
impl KvAttempts<'_> {
    /// Reports the end of the attempt to the breaker. The client's own closing
    /// says nothing about the node.
    #[cold]
    pub(super) fn report_to_breaker(&mut self, response: &Result<Frame, NoResponse>) {
        let Some((node, permit)) = self.permit.take().map(|it| *it) else {
            return;
        };
        let signal = match response {
            Ok(_) => Signal::Alive,
            Err(ended) if ended.cause == NoResponseCause::ClosedByUser => return,
            Err(_) => Signal::Failed,
        };
        if let Some(breaker) = &node.breaker {
            breaker.record(permit, signal, now());
        }
    }

    /// Does what the status of a response asks for.
    #[cold]
    pub(super) fn handle_error_response(
        &mut self,
        response: Frame,
        deadline: Option<Instant>,
    ) -> Result<Frame, AttemptError> {
        let Some(connection) = self.last.connection.clone() else {
            return Err(AttemptError::Final(ErrorKind::Couchbase));
        };
        let status = response.status();
        let (operation, with_cas) = (self.request.operation, self.request.with_cas);
        let meaning = connection.handle_status(operation, with_cas, status);
        if meaning.fetches_config && meaning.disposition != Disposition::Done {
            self.request.bucket().config_wanted.notify_one();
        }
        let Some((failure, kind)) = meaning.disposition.failure() else {
            let kind = match meaning.disposition {
                Disposition::Done => return Ok(response),
                Disposition::Final(kind) => kind,
                Disposition::FailedAtPath => self.failed_at_path(&response),
                _ => unreachable!("the others have a failure"),
            };
            self.last.record(&response);
            return Err(AttemptError::Final(kind));
        };
        let failure = failure.with_peer(connection.peer.clone()).with_note(
            match likely_note(operation, status) {
                Some(note) => Cow::Borrowed(note),
                None => Cow::Owned(format!("answered {status}")),
            },
        );
        let failure = match meaning.disposition {
            Disposition::Reroute => self.reroute(failure, &response, &connection, deadline),
            Disposition::DropCollectionId => {
                let manifest = manifest_uid(&response);
                self.request
                    .collection
                    .entry
                    .invalidate(self.collection_id, manifest);
                failure
            }
            Disposition::ObeyErrorMap => with_directive(failure, &connection, status),
            _ => failure,
        };
        self.last.record(&response);
        Err(AttemptError::Failed(failure, kind))
    }

    /// Finds out which path of a subdocument mutation failed, and why.
    fn failed_at_path(&mut self, response: &Frame) -> ErrorKind {
        let Some((sent_as, status)) = failed_path(response) else {
            self.last.note("the server does not say which path failed");
            return ErrorKind::DecodingFailure;
        };
        let named_as = self.request.paths.get(usize::from(sent_as)).copied();
        let index = usize::from(named_as.unwrap_or(sent_as));
        self.last.at_path(index);
        self.last
            .note(format!("path {index} was answered {status}"));
        path_error(status)
    }

    /// Not my vbucket: applies the config in the response, and decides where and
    /// when the request goes next (D21 to D23).
    fn reroute(
        &mut self,
        failure: Failure,
        response: &Frame,
        connection: &Connection,
        deadline: Option<Instant>,
    ) -> Failure {
        let bucket = self.request.bucket();
        if !response.value().is_empty() {
            bucket.apply_config_from(response, host_part(&connection.peer));
        }
        let refused_by = self.node.unwrap_or_default();
        let routes = bucket.routes.load();
        let at_once = routes.as_ref().is_some_and(|routes| {
            let copy = self.request.copy;
            let at_once = self.route.reroute(refused_by, routes, self.vbucket, copy);
            // The request must not be woken early by the route that it takes anyway.
            let next = self.route.node(routes, self.vbucket, copy);
            self.node = next.map(|node| node.id);
            at_once
        });
        match (at_once, bucket.core.options.vbucket_retry) {
            (true, _) => failure.with_prescribed_delay(Duration::ZERO),
            (false, VbucketRetry::Fixed(delay)) => failure.with_prescribed_delay(delay),
            (false, VbucketRetry::AwaitMap) if !self.awaited_map => {
                self.awaited_map = true;
                failure.with_prescribed_delay(until_the_map_changes(deadline))
            }
            (false, VbucketRetry::Controlled | VbucketRetry::AwaitMap) => failure,
        }
    }

    /// The connection closed, or the deadline passed. `sent` decides whether the
    /// request may have been applied.
    #[cold]
    pub(super) fn handle_no_response(&mut self, no_response: NoResponse) -> AttemptError {
        let NoResponse { cause, sent } = no_response;
        let failure = match (cause, sent) {
            (NoResponseCause::ClosedByUser, false) => not_sent_as_closed(),
            (NoResponseCause::ClosedByUser, true) => {
                Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT)
            }
            (NoResponseCause::Closed, false) => Failure::not_sent(&SOCKET_NOT_AVAILABLE)
                .with_note("the connection closed before it was sent"),
            (NoResponseCause::Closed, true) => Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT)
                .with_note("the connection closed before the response"),
            (NoResponseCause::WentSilent, false) => Failure::not_sent(&SOCKET_NOT_AVAILABLE)
                .with_note("the connection went silent before it was sent"),
            (NoResponseCause::WentSilent, true) => {
                Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT)
                    .with_note("the connection went silent and was closed")
            }
            (NoResponseCause::TimedOut, false) => {
                let failure = Failure::not_sent(&TIMEOUT).timed_out();
                failure.with_note("not sent in time")
            }
            (NoResponseCause::TimedOut, true) => {
                let failure = Failure::in_flight(&TIMEOUT).timed_out();
                failure.with_note("no response in time")
            }
        };
        let failure = match &self.last.connection {
            Some(connection) => failure.with_peer(connection.peer.clone()),
            None => failure,
        };
        match cause {
            NoResponseCause::ClosedByUser => AttemptError::Closed(failure),
            NoResponseCause::Closed | NoResponseCause::WentSilent => {
                AttemptError::Failed(failure, ErrorKind::RequestCanceled)
            }
            NoResponseCause::TimedOut if sent => {
                AttemptError::Failed(failure, ErrorKind::AmbiguousTimeout)
            }
            NoResponseCause::TimedOut => {
                AttemptError::Failed(failure, ErrorKind::UnambiguousTimeout)
            }
        }
    }
}

/// Attaches what the error map says about retries, for strategies that obey it
/// (D28).
pub(crate) fn with_directive(failure: Failure, connection: &Connection, status: Status) -> Failure {
    let map = connection.error_map.as_ref();
    let definition = map.and_then(|map| map.get(status));
    match definition.and_then(|definition| RetryDirective::from_definition(status, definition)) {
        Some(directive) => directive.attach_to(failure),
        None => failure,
    }
}
