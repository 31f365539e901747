//! The attempts of one key-value request.
//!
//! An attempt finds the node of the document, takes a connection to it, resolves
//! the collection's id, submits the frame and waits for the response. Everything
//! else that can happen is in [`failure`].

mod failure;
mod last;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

pub(crate) use failure::with_directive;
use last::LastAttempt;
pub(crate) use last::server_duration;
use steadfast::breaker::BreakerPermit;
use steadfast::{Failure, RetryStrategy, StrategyExt};
use steadfast_wire::{Feature, Frame, Status};

use super::compression::CompressedValue;
use super::connection::{Admission, Connection, SubmitError, Ticket, Turn};
use super::request::{DurabilityLevel, KeyPlace, KvRequest};
use crate::client::Core;
use crate::drive::{Attempts, Tried};
use crate::error::{Error, ErrorKind, OperationTarget};
use crate::observe::{Dispatch, Finished, SlowRequest};
use crate::options::RetryIf;
use crate::topology::{Node, NodeId, Routes, VbucketRoute, WaitCondition};

/// The state of a request between and during its attempts.
pub(crate) struct KvAttempts<'r> {
    request: &'r KvRequest<'r>,
    compressed: CompressedValue,
    route: VbucketRoute,
    vbucket: u16,
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
    permit: Option<(Arc<Node>, BreakerPermit)>,
    last: LastAttempt,
}

/// An attempt that ended before it was submitted. Nothing was sent.
type Unsent = Box<Tried>;

impl<'r> KvAttempts<'r> {
    pub(super) fn new(request: &'r KvRequest<'r>) -> Self {
        Self {
            request,
            compressed: if request.compressible {
                CompressedValue::NotTried
            } else {
                CompressedValue::NotAllowed
            },
            route: VbucketRoute::default(),
            vbucket: 0,
            node: None,
            blocked: false,
            awaited_map: false,
            turn: None,
            permit: None,
            last: LastAttempt::default(),
        }
    }

    /// The vbucket of the last attempt.
    pub(super) fn vbucket(&self) -> u16 {
        self.vbucket
    }

    /// Returns the strategy with the brake of the node that the first attempt goes to, if
    /// the client sheds. For the client's own strategy, the node has it already.
    pub(super) fn braked<'s>(
        &mut self,
        own: Option<&'s dyn RetryStrategy>,
    ) -> Option<Arc<dyn RetryStrategy + 's>> {
        let bucket = self.request.bucket;
        if !bucket.core.options.fleet {
            return None;
        }
        let routes = bucket.routes.load();
        let braked = self.locate(routes.as_ref()?)?.braked.as_ref()?;
        Some(match own {
            Some(own) => Arc::new(own.with_brake(braked.brake().clone())),
            None => braked.clone(),
        })
    }

    /// Returns the node that has the document.
    fn locate<'n>(&mut self, routes: &'n Routes) -> Option<&'n Arc<Node>> {
        let KvRequest {
            vbucket, id, copy, ..
        } = *self.request;
        self.vbucket = vbucket.unwrap_or_else(|| routes.vbucket(id.as_bytes()));
        self.route.update(routes, self.vbucket, copy);
        self.route.node(routes, self.vbucket, copy)
    }

    /// Returns a connection to the node that has the document.
    fn find_connection(&mut self) -> Result<Arc<Connection>, Unsent> {
        let request = self.request;
        let bucket = request.bucket;
        self.blocked = false;
        if bucket.core.is_closed() {
            return Err(failure::client_closed());
        }
        let routes = bucket.routes.load();
        let Some(routes) = routes.as_ref() else {
            return Err(self.no_connection(None, bucket.open_problem()));
        };
        // A new config may change the number of replicas, so each attempt checks.
        if usize::from(request.copy) > routes.replicas() {
            return Err(self.no_copy("the bucket has fewer replicas"));
        }
        let Some(node) = self.locate(routes) else {
            self.node = None;
            return Err(if request.skip_missing_copy {
                self.no_copy("no node has this copy now")
            } else {
                // The client may have missed the config that names its node.
                bucket.config_wanted.notify_one();
                self.no_connection(None, "no node has this vbucket now")
            });
        };
        self.node = Some(node.id);
        let Some(connection) = node.connection(self.vbucket) else {
            return Err(self.no_connection(Some(node), "no connection to the node"));
        };
        // Asked last: a canary must not be spent on an attempt that cannot be made.
        if node.breaker.is_some() {
            self.ask_breaker(node)?;
        }
        Ok(connection)
    }

    /// The collection's id, if it is known or not needed.
    fn collection_id(&self) -> Option<u32> {
        match self.request.key {
            KeyPlace::Absent => Some(0),
            KeyPlace::KeyField => self.request.collection.id(),
        }
    }

    /// Hands the frame to the connection. Not part of `attempt`, whose future
    /// would keep these variables while it waits for the response.
    fn submit<'c>(
        &mut self,
        connection: &'c Arc<Connection>,
        turn: Option<Box<Turn>>,
        collection_id: u32,
        deadline: Option<Instant>,
    ) -> Result<Ticket<'c>, Unsent> {
        let request = self.request;
        let turn = turn.filter(|turn| turn.is_at(connection));
        if let Some(lacking) = request.lacking_feature(connection, collection_id) {
            self.last.note(lacking);
            return Err(Box::new(Tried::Unsendable(ErrorKind::FeatureNotAvailable)));
        }
        // Before the connection is locked: compression takes time.
        if connection.has(Feature::Snappy) {
            let compression = request.bucket.core.options.compression;
            self.compressed.compress(&request.value, compression);
        }
        let target = (self.vbucket, collection_id);
        let compressed = self.compressed.bytes();
        let opcode = request.operation.opcode();
        let admission = match &turn {
            Some(turn) => Admission::Turn(turn),
            None => Admission::InOrder,
        };
        let submitted = connection.submit(opcode, deadline, admission, |opaque, out| {
            request.encode(connection, target, compressed, deadline, opaque, out)
        });
        match submitted {
            Ok(ticket) => {
                self.last.begin(ticket.opaque());
                Ok(ticket)
            }
            Err(SubmitError::Full) => Err(self.wait_in_line(turn, connection)),
            Err(error) => Err(self.not_submitted(error, connection)),
        }
    }

    #[cold]
    fn slow_request(&self, finished: &Finished, response: Option<&Frame>) -> SlowRequest {
        let connection = self.last.connection.as_ref();
        SlowRequest {
            operation: self.request.operation.name(),
            service: "kv",
            retries: finished.retries,
            timeout: Some(self.request.timeout()),
            last_opaque: self.last.opaque,
            last_local: connection.map(|connection| connection.local.clone()),
            last_remote: connection.map(|connection| connection.peer.clone()),
            last_server_duration: match response {
                Some(response) => server_duration(response),
                None => self.last.server_duration(),
            },
        }
    }
}

impl Attempts for KvAttempts<'_> {
    type Output = Frame;

    /// Cancel-safe: the ticket withdraws what was not sent, and the connection
    /// drops a late response.
    async fn attempt(&mut self, deadline: Option<Instant>) -> Result<Frame, Tried> {
        // Dropped, for the next in line, unless it is used or kept below.
        let turn = self.turn.take();
        let connection = match self.find_connection() {
            Ok(connection) => connection,
            Err(unsent) => return Err(*unsent),
        };
        let collection_id = match self.collection_id() {
            Some(id) => id,
            // Boxed, so that later operations do not carry it.
            None => match Box::pin(self.look_up_collection(&connection, deadline)).await {
                Ok(id) => id,
                Err(unsent) => {
                    self.return_permit();
                    return Err(*unsent);
                }
            },
        };
        let response = match self.submit(&connection, turn, collection_id, deadline) {
            Ok(ticket) => ticket.await,
            Err(unsent) => {
                self.return_permit();
                return Err(*unsent);
            }
        };
        if self.permit.is_some() {
            self.tell_breaker(&response);
        }
        self.last.connection = Some(connection);
        match response {
            Ok(response) if response.status() == Status::Success => Ok(response),
            Ok(response) => self.handle_error_response(response, collection_id),
            Err(no_response) => Err(self.handle_no_response(no_response)),
        }
    }

    /// Cancel-safe: dropping the future leaves the queue.
    async fn woken(&mut self, _: &Failure) {
        let bucket = self.request.bucket;
        let condition = WaitCondition {
            vbucket: self.vbucket,
            copy: self.request.copy,
            node: self.node,
            route: self.route.clone(),
            blocked: self.blocked,
        };
        let met = |condition: &WaitCondition| bucket.core.is_closed() || bucket.is_met(condition);
        let mut woken = bucket.waiting.wait(condition, met);
        let turn = self.turn.as_deref();
        let early = poll_fn(move |cx| match turn.map(|turn| turn.poll(cx)) {
            Some(Poll::Ready(())) => Poll::Ready(false),
            Some(Poll::Pending) | None => Pin::new(&mut woken).poll(cx).map(|()| true),
        });
        if early.await {
            self.route.count_early_wake();
        }
    }

    /// Cancel-safe.
    async fn closed(&self) {
        self.request.bucket.core.closed.cancelled().await
    }

    fn add_context(&mut self, error: Error) -> Error {
        let request = self.request;
        let bucket = request.bucket;
        let target = match request.key {
            KeyPlace::Absent => OperationTarget::bucket(&bucket.name),
            KeyPlace::KeyField => OperationTarget {
                bucket: Some(bucket.name.clone()),
                scope: Some(request.collection.scope.clone()),
                collection: Some(request.collection.name.clone()),
                key: (bucket.core.options.unredacted_keys).then(|| request.id.to_owned()),
            },
        };
        let error = error.with_target(target).with_kv(self.last.context());
        match self.last.noted() {
            Some(note) => error.because(note),
            None => error,
        }
    }

    fn retry_if(&self) -> Option<&RetryIf> {
        let request = self.request;
        let own = request.options.retry_if.as_ref();
        own.or(request.bucket.core.options.retry_if.as_ref())
    }

    /// The server may have applied an operation and then failed, or not know whether
    /// it is durable. A status without a meaning of its own proves nothing.
    fn proves_not_applied(&self, kind: ErrorKind) -> bool {
        !matches!(
            kind,
            ErrorKind::Couchbase
                | ErrorKind::InternalServerFailure
                | ErrorKind::DurabilityAmbiguous
        )
    }

    fn finished(&mut self, finished: &Finished, response: Option<&Frame>) {
        let KvRequest {
            bucket, operation, ..
        } = *self.request;
        let default;
        let collection = match self.request.key {
            KeyPlace::KeyField => self.request.collection,
            KeyPlace::Absent => {
                default = bucket.collections.default_collection();
                &default
            }
        };
        let place = [&*bucket.name, &*collection.scope, &*collection.name];
        let durations = &collection.durations;
        durations.record(operation, finished, place, &bucket.core);
        let reports = &bucket.core.reports;
        if reports.is_slow_kv(finished.elapsed) {
            reports.slow(finished.elapsed, self.slow_request(finished, response));
        }
    }

    fn core(&self) -> &Core {
        &self.request.bucket.core
    }

    fn place(&self) -> [&str; 3] {
        let KvRequest {
            bucket, collection, ..
        } = *self.request;
        match self.request.key {
            KeyPlace::Absent => [&bucket.name, "", ""],
            KeyPlace::KeyField => [&bucket.name, &collection.scope, &collection.name],
        }
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

    fn dispatch(&self, response: Option<&Frame>) -> Dispatch {
        self.last.dispatch(response)
    }
}
