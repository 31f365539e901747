//! The attempts of one key-value request.
//!
//! An attempt finds the node of the document, takes a connection to it, submits the frame
//! and reads the response. Failed attempts are in [`failure`].

mod failure;
mod last;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

pub(crate) use failure::with_directive;
use last::LastAttempt;
pub(crate) use last::server_duration;
use steadfast::breaker::BreakerPermit;
use steadfast_wire::{Feature, Frame};

use super::compression::CompressedValue;
use super::connection::{Admission, Connection, Received, SubmitError, Ticket, Turn};
use super::meaning::proves_not_applied;
use super::request::{DurabilityLevel, KvRequest};
use super::response::KvResponse;
use crate::client::Core;
use crate::drive::{AttemptError, Driven, WakeUp};
use crate::error::{Error, ErrorKind};
use crate::observe::{Dispatch, Finished};
use crate::options::RetryIf;
use crate::topology::{Node, NodeId, Routes, VbucketRoute, WaitCondition, Waiting};

/// The state of a request between and during its attempts.
pub(crate) struct KvAttempts<'a> {
    pub(super) request: KvRequest<'a>,
    compressed: CompressedValue,
    route: VbucketRoute,
    vbucket: u16,
    /// The collection's id in the last attempt.
    collection_id: u32,
    /// The node of the last attempt; after "not my vbucket", that of the next.
    node: Option<NodeId>,
    /// Set when the last attempt found no connection.
    blocked: bool,
    /// Set when it has waited for a new map.
    awaited_map: bool,
    /// The place in line, if the last attempt found its connection full. Boxed, so
    /// that operations that wait for something else stay small.
    turn: Option<Box<Turn>>,
    /// The circuit breaker's permit for this attempt, if there is a breaker.
    permit: Option<Box<(Arc<Node>, BreakerPermit)>>,
    last: LastAttempt,
}

/// A response that means success, and its arrival.
pub(crate) struct Success {
    pub(super) frame: Frame,
    at: Instant,
}

/// The start of an attempt.
pub(super) enum Begun {
    /// The connection has accepted the frame.
    Sent(Ticket),
    /// The id of the collection must be looked up first.
    NeedsCollectionId(Arc<Connection>),
}

impl<'a> KvAttempts<'a> {
    #[inline]
    pub(super) fn new(request: KvRequest<'a>) -> Self {
        Self {
            compressed: CompressedValue::new(request.compressible),
            request,
            route: VbucketRoute::default(),
            vbucket: 0,
            collection_id: 0,
            node: None,
            blocked: false,
            awaited_map: false,
            turn: None,
            permit: None,
            last: LastAttempt::default(),
        }
    }

    /// Makes the response of the operation.
    pub(super) fn response(&mut self, frame: Frame) -> KvResponse<'a> {
        self.request.response(frame, self.vbucket)
    }

    /// Returns the node that has the document.
    fn locate<'n>(&mut self, routes: &'n Routes) -> Option<&'n Arc<Node>> {
        let copy = self.request.copy;
        self.vbucket = self.request.vbucket_in(routes);
        self.route.update(routes, self.vbucket, copy);
        self.route.node(routes, self.vbucket, copy)
    }

    /// Returns a connection to the node that has the document.
    fn find_connection(&mut self) -> Result<Arc<Connection>, AttemptError> {
        let bucket = self.request.bucket();
        self.blocked = false;
        if bucket.core.is_closed() {
            return Err(failure::client_closed());
        }
        let routes = bucket.routes.load();
        let Some(routes) = routes.as_ref() else {
            return Err(self.no_connection(None, bucket.open_problem()));
        };
        // A new config may change the number of replicas, so each attempt checks.
        if usize::from(self.request.copy) > routes.replicas() {
            return Err(self.no_copy("the bucket has fewer replicas"));
        }
        let Some(node) = self.locate(routes) else {
            self.node = None;
            return Err(if self.request.skip_missing_copy {
                self.no_copy("no node has this copy now")
            } else {
                // The client may have missed the config that names its node.
                bucket.config_wanted.notify_one();
                self.no_connection(None, "no node has this vbucket now")
            });
        };
        self.node = Some(node.id);
        let connection = match self.request.durability {
            None => node.connection(self.vbucket),
            Some(_) if node.begin_durable(bucket) => node.connection(self.vbucket),
            Some(_) => node.durable_connection(self.vbucket),
        };
        let Some(connection) = connection else {
            if self.request.durability.is_some() && node.connection(self.vbucket).is_some() {
                return Err(self.wait_for_durable(node));
            }
            return Err(self.no_connection(Some(node), "no connection to the node"));
        };
        // Asked last: a canary must not be spent on an attempt that cannot be made.
        if node.breaker.is_some() {
            self.ask_breaker(node)?;
        }
        Ok(connection)
    }

    /// Begins an attempt: finds a connection and hands the frame to it.
    pub(super) fn begin(
        &mut self,
        deadline: Option<Instant>,
        waker: &Waker,
    ) -> Result<Begun, AttemptError> {
        // Dropped, for the next in line, unless it is used or kept below.
        let turn = self.turn.take();
        let connection = self.find_connection()?;
        match self.request.collection_id() {
            Some(id) => self.submit(connection, turn, id, deadline, waker),
            None => Ok(Begun::NeedsCollectionId(connection)),
        }
    }

    /// Continues with an attempt whose collection id was looked up.
    pub(super) fn continue_with(
        &mut self,
        id: Result<u32, AttemptError>,
        connection: Arc<Connection>,
        deadline: Option<Instant>,
        waker: &Waker,
    ) -> Result<Begun, AttemptError> {
        match id {
            Ok(id) => self.submit(connection, None, id, deadline, waker),
            Err(error) => {
                self.return_permit();
                self.last.connection = Some(connection);
                Err(error)
            }
        }
    }

    /// Hands the frame to the connection.
    fn submit(
        &mut self,
        connection: Arc<Connection>,
        turn: Option<Box<Turn>>,
        collection_id: u32,
        deadline: Option<Instant>,
        waker: &Waker,
    ) -> Result<Begun, AttemptError> {
        let submitted = self.try_submit(connection, turn, collection_id, deadline, waker);
        if submitted.is_err() {
            self.return_permit();
        }
        submitted.map(Begun::Sent)
    }

    fn try_submit(
        &mut self,
        connection: Arc<Connection>,
        turn: Option<Box<Turn>>,
        collection_id: u32,
        deadline: Option<Instant>,
        waker: &Waker,
    ) -> Result<Ticket, AttemptError> {
        let request = &self.request;
        let turn = turn.filter(|turn| turn.is_at(&connection));
        if let Some(lacking) = request.lacking_feature(&connection, collection_id) {
            self.last.note(lacking);
            return Err(AttemptError::Unsendable(ErrorKind::FeatureNotAvailable));
        }
        // Before the connection is locked: compression takes time.
        if connection.has(Feature::Snappy) {
            let compression = request.bucket().core.options.compression;
            self.compressed.compress(&request.value, compression);
        }
        let target = (self.vbucket, collection_id);
        let compressed = self.compressed.bytes();
        let opcode = request.operation.opcode();
        let admission = match &turn {
            Some(turn) => Admission::Turn(turn),
            None => Admission::InOrder,
        };
        let waker = Some(waker.clone());
        let encode = |opaque, out: &mut _| {
            request.encode(&connection, target, compressed, deadline, opaque, out)
        };
        match connection.accept(opcode, deadline, admission, waker, encode) {
            Ok(opaque) => {
                self.last.begin(opaque);
                self.collection_id = collection_id;
                Ok(Ticket::new(connection, opaque))
            }
            Err(SubmitError::Full) => Err(self.wait_in_line(turn, &connection)),
            Err(error) => Err(self.not_submitted(error, &connection)),
        }
    }

    /// Ends an attempt of a request with this deadline.
    #[inline]
    pub(super) fn end(
        &mut self,
        received: Received,
        deadline: Option<Instant>,
    ) -> Result<Success, AttemptError> {
        let Received {
            response,
            at,
            connection,
        } = received;
        if self.permit.is_some() {
            self.report_to_breaker(&response);
        }
        self.last.connection = Some(connection);
        self.last.status = response.as_ref().ok().map(Frame::status);
        match response {
            Ok(frame) if frame.is_success() => Ok(Success { frame, at }),
            Ok(response) => {
                let frame = self.handle_error_response(response, deadline)?;
                Ok(Success { frame, at })
            }
            Err(no_response) => Err(self.handle_no_response(no_response)),
        }
    }

    /// Joins the queue of requests that wait for a change, or for the end of the client.
    pub(super) fn wait(&self, wake_up: WakeUp) -> Waiting<'a> {
        let bucket = self.request.bucket();
        let condition = match wake_up {
            WakeUp::Never | WakeUp::Closing => None,
            WakeUp::Change(_) => Some(WaitCondition {
                vbucket: self.vbucket,
                copy: self.request.copy,
                node: self.node,
                route: self.route.clone(),
                blocked: self.blocked,
                durable: self.request.durability.is_some(),
            }),
        };
        bucket.waiting.wait(condition, |condition| {
            bucket.core.is_closed() || condition.is_some_and(|condition| bucket.is_met(condition))
        })
    }

    /// Completes when a wait has become pointless: the slot is granted, there is a new route
    /// or connection, or the client is closed.
    pub(super) fn poll_woken(
        &mut self,
        waiting: &mut Waiting<'a>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if let Some(turn) = &self.turn
            && turn.poll(cx).is_ready()
        {
            return Poll::Ready(());
        }
        Pin::new(waiting)
            .poll(cx)
            .map(|()| self.route.count_early_wake())
    }
}

impl Driven for KvAttempts<'_> {
    type Output = Success;

    fn add_context(&mut self, error: Error) -> Error {
        let error = error.with_target(self.request.target());
        let error = error.with_kv(self.last.context());
        match self.last.noted() {
            Some(note) => error.because(note),
            None => error,
        }
    }

    fn retry_if(&self) -> Option<&RetryIf> {
        let request = &self.request;
        let options = request.options.as_ref();
        let own = options.and_then(|options| options.retry_if.as_ref());
        own.or(request.bucket().core.options.retry_if.as_ref())
    }

    /// Only a status can prove it. A final error without one is the client's own, from before
    /// anything was sent.
    fn proves_not_applied(&self, _: ErrorKind) -> bool {
        self.last.status.is_none_or(proves_not_applied)
    }

    fn finished(&mut self, finished: &Finished, success: Option<&Success>) {
        let last = &self.last;
        self.request.record_end(finished, || {
            let server_duration = match success {
                Some(success) => server_duration(&success.frame),
                None => last.server_duration(),
            };
            let connection = last.connection.as_deref();
            (self.request).slow(finished, last.opaque, connection, server_duration)
        });
    }

    fn succeeded_at(&self, success: &Success) -> Instant {
        success.at
    }

    fn core(&self) -> &Core {
        &self.request.bucket().core
    }

    fn place(&self) -> [&str; 3] {
        let collection = self.request.collection;
        [collection.bucket(), collection.scope(), collection.name()]
    }

    fn durability(&self) -> Option<&'static str> {
        // The names of RFC 0067, which are not those of the management service.
        self.request.durability.map(|level| match level {
            DurabilityLevel::Majority => "majority",
            DurabilityLevel::MajorityAndPersistToActive => "majority_and_persist_active",
            DurabilityLevel::PersistToMajority => "persist_majority",
            DurabilityLevel::Unknown(_) => "unknown",
        })
    }

    fn dispatch(&self, success: Option<&Success>) -> Dispatch {
        self.last.dispatch(success.map(|success| &success.frame))
    }
}
