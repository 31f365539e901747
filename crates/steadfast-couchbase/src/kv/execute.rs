//! One key-value operation, attempt by attempt.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast::{Failure, RetryStrategy, reason::TIMEOUT};
use steadfast_wire::{Feature, Frame};

use super::connection::{Closing, Connection, Ended, NotTaken, Ticket};
use super::last::Last;
use super::meaning::{Asked, Meaning, Verdict, failed_path, meaning, path_error};
use super::operation::KvOperation;
use super::request::{Accepts, Body, Common, KeyPlace, Target, call, remaining, timeout};
use crate::breaker::{Outcome, Permit};
use crate::collections::{Collection, Unresolved};
use crate::drive::{Attempts, Tried, drive};
use crate::error::{Error, ErrorKind, Place};
use crate::observe::{Finished, SlowRequest};
use crate::options::VbucketRetry;
use crate::reason::{
    CIRCUIT_BREAKER_OPEN, COLLECTION_NOT_FOUND, KV_COLLECTION_OUTDATED,
    KV_ERROR_MAP_RETRY_INDICATED, KV_NOT_MY_VBUCKET, NODE_NOT_AVAILABLE, SCOPE_NOT_FOUND,
    SOCKET_CLOSED_WHILE_IN_FLIGHT, SOCKET_NOT_AVAILABLE, UNKNOWN,
};
use crate::strategy::RetryDirective;
use crate::topology::{BucketCore, Course, Node, NodeId, Wish, is_terminal};
use crate::world::now;

/// What an operation is about.
pub(crate) struct Subject<'a> {
    pub(crate) bucket: &'a Arc<BucketCore>,
    pub(crate) collection: &'a Arc<Collection>,
    pub(crate) id: &'a [u8],
    /// Which copy is meant; 0 is the active one.
    pub(crate) copy: u8,
    /// Whether a copy that no node has is one to do without, instead of one to
    /// wait for.
    pub(crate) dispensable: bool,
    /// The vbucket, if that is known and not the document.
    pub(crate) vbucket: Option<u16>,
}

/// An answer that means success.
pub(crate) struct Answered {
    pub(crate) frame: Frame,
    /// The vbucket that was asked.
    pub(crate) vbucket: u16,
}

/// Runs an operation to its end. The answer is one that means success.
///
/// Dropping the future abandons the attempt under way.
// Not an async function: those keep what they are called with beside what they
// make of it, and a great many operations may be waiting at the same time.
pub(crate) fn execute<'a>(
    operation: KvOperation,
    subject: Subject<'a>,
    body: Body<'a>,
    common: &'a Common,
) -> impl Future<Output = Result<Answered, Error>> + Send + 'a {
    let core = &subject.bucket.core;
    let mut run = Run {
        operation,
        timeout: timeout(common, &core.options, body.durability),
        subject,
        body,
        course: Course::default(),
        vbucket: 0,
        node: None,
        blocked: false,
        permit: None,
        last: Last::default(),
    };
    async move {
        let strategy: &dyn RetryStrategy = match &common.strategy {
            Some(strategy) => &**strategy,
            None => &*core.strategy,
        };
        let call = call(operation, common, run.timeout);
        let frame = drive(call, strategy, &mut run).await?;
        let vbucket = run.vbucket;
        Ok(Answered { frame, vbucket })
    }
}

/// An operation under way.
struct Run<'a> {
    operation: KvOperation,
    subject: Subject<'a>,
    body: Body<'a>,
    timeout: Duration,
    course: Course,
    vbucket: u16,
    /// The node of the last attempt; after a refusal, that of the next.
    node: Option<NodeId>,
    /// Whether the last attempt could not be dispatched.
    blocked: bool,
    /// The right to this attempt, where there is a circuit breaker.
    permit: Option<(Arc<Node>, Permit)>,
    last: Last,
}

type Attempt = Tried<Frame>;

impl Attempts for Run<'_> {
    type Output = Frame;

    async fn attempt(&mut self, deadline: Option<Instant>) -> Attempt {
        let connection = match self.dispatch() {
            Ok(connection) => connection,
            Err(tried) => return *tried,
        };
        let collection = match self.subject.collection.id() {
            Some(id) => id,
            // In a box, so that the operations that follow do not carry it.
            None => match Box::pin(self.resolve(&connection, deadline)).await {
                Ok(id) => id,
                Err(tried) => return *tried,
            },
        };
        let answer = match self.submit(&connection, collection, deadline) {
            Ok(ticket) => ticket.await,
            Err(tried) => return *tried,
        };
        if self.permit.is_some() {
            self.tell_breaker(&answer);
        }
        self.last.connection = Some(connection);
        match answer {
            Ok(answer) => self.answered(answer, collection),
            Err(ended) => self.ended(ended),
        }
    }

    async fn woken(&mut self, _: &Failure) {
        let bucket = self.subject.bucket;
        let wish = Wish {
            vbucket: self.vbucket,
            copy: self.subject.copy,
            node: self.node,
            course: self.course.clone(),
            blocked: self.blocked,
        };
        let parked = bucket
            .parking
            .park(wish, |wish| bucket.core.is_closed() || bucket.is_news(wish));
        parked.await;
        self.course.woken();
    }

    async fn closed(&self) {
        self.subject.bucket.core.closed.cancelled().await
    }

    fn explain(&mut self, error: Error) -> Error {
        let Subject {
            bucket,
            collection,
            id,
            ..
        } = &self.subject;
        let shown = bucket.core.options.unredacted_keys;
        let place = match self.body.key {
            KeyPlace::Nowhere => Place::of_bucket(&bucket.name),
            KeyPlace::InFrame | KeyPlace::InValue => Place {
                bucket: Some(bucket.name.clone()),
                scope: Some(collection.scope.clone()),
                collection: Some(collection.name.clone()),
                key: shown.then(|| String::from_utf8_lossy(id).into_owned()),
            },
        };
        let error = error.with_place(place).with_kv(self.last.context());
        match self.last.take_note() {
            Some(note) => error.because(note),
            None => error,
        }
    }

    fn finished(&mut self, finished: &Finished) {
        let Subject {
            bucket, collection, ..
        } = &self.subject;
        let place = [&*bucket.name, &*collection.scope, &*collection.name];
        let operation = self.operation;
        collection.durations.record(operation, finished, place);
        let reports = &bucket.core.reports;
        if reports.is_slow_kv(finished.elapsed) {
            reports.slow(finished.elapsed, self.slow_request(finished));
        }
    }
}

impl Run<'_> {
    /// A connection to the node that has the document, or why there is none.
    fn dispatch(&mut self) -> Result<Arc<Connection>, Box<Attempt>> {
        let bucket = self.subject.bucket;
        self.blocked = false;
        if bucket.core.is_closed() {
            return Err(Box::new(Tried::Closed(closed())));
        }
        let routes = bucket.routes();
        let Some(routes) = routes.as_ref() else {
            return Err(self.blocked(None, bucket.why_not_open()));
        };
        let copy = self.subject.copy;
        if usize::from(copy) > routes.replicas() {
            // Bounds may change with a config, so they are looked at each time.
            return Err(self.no_copy("the bucket has fewer replicas"));
        }
        let known = self.subject.vbucket;
        self.vbucket = known.unwrap_or_else(|| routes.vbucket(self.subject.id));
        let Some(node) = self.course.node(routes, self.vbucket, copy) else {
            self.node = None;
            return Err(if self.subject.dispensable {
                self.no_copy("no node has this copy now")
            } else {
                self.blocked(None, "no node has this vbucket now")
            });
        };
        self.node = Some(node.id);
        if node.breaker.is_on() {
            self.ask_breaker(node)?;
        }
        match node.connection(self.vbucket) {
            Some(connection) => Ok(connection),
            None => Err(self.blocked(Some(node), "no connection to the node")),
        }
    }

    /// Hands the attempt to the connection. Not part of `attempt`, which would
    /// keep what this needs while it waits for the answer.
    fn submit<'c>(
        &mut self,
        connection: &'c Connection,
        collection: u32,
        deadline: Option<Instant>,
    ) -> Result<Ticket<'c>, Box<Attempt>> {
        if let Err(lacking) = self.body.fits(connection, collection) {
            self.last.note(lacking);
            return Err(Box::new(Tried::Final(ErrorKind::FeatureNotAvailable)));
        }
        let accepts = Accepts::of(connection);
        let compression = self.subject.bucket.core.options.compression;
        self.body.pack(accepts, compression);
        let target = Target {
            vbucket: self.vbucket,
            collection,
            id: self.subject.id,
            remaining: match self.body.durability {
                Some(_) => remaining(deadline),
                None => None,
            },
            accepts,
        };
        let (operation, body) = (self.operation, &self.body);
        let submitted = connection.submit(operation.opcode(), deadline, |opaque, out| {
            body.encode(operation, &target, opaque, out)
        });
        match submitted {
            Ok(ticket) => {
                self.last.begin(ticket.opaque());
                Ok(ticket)
            }
            Err(not_taken) => Err(Box::new(self.not_taken(not_taken, connection))),
        }
    }

    /// There is no such copy to read.
    #[cold]
    fn no_copy(&mut self, note: &str) -> Box<Attempt> {
        self.last.note(note);
        Box::new(Tried::Final(ErrorKind::DocumentUnretrievable))
    }

    /// A breaker that is open is a reason like any other.
    #[cold]
    fn ask_breaker(&mut self, node: &Arc<Node>) -> Result<(), Box<Attempt>> {
        match node.breaker.allow(now()) {
            Ok(permit) => {
                self.permit = Some((node.clone(), permit));
                Ok(())
            }
            Err(_) => {
                let failure = Failure::not_sent(&CIRCUIT_BREAKER_OPEN);
                let failure = failure.with_peer(node.label.clone());
                let kind = ErrorKind::ServiceNotAvailable;
                Err(Box::new(Tried::Failed(failure, kind)))
            }
        }
    }

    /// Tells the breaker what became of the attempt. One that the client itself
    /// ended says nothing.
    #[cold]
    fn tell_breaker(&mut self, answer: &Result<Frame, Ended>) {
        let Some((node, permit)) = self.permit.take() else {
            return;
        };
        let outcome = match answer {
            Ok(_) => Outcome::Alive,
            Err(Ended::Closed { by_user: true, .. }) => return,
            Err(Ended::Closed { .. } | Ended::TimedOut { .. }) => Outcome::Failed,
        };
        node.breaker.record(permit, outcome, now());
    }

    /// It cannot be dispatched. Only now the terminal states matter (D19).
    #[cold]
    fn blocked(
        &mut self,
        node: Option<&Arc<Node>>,
        note: impl Into<Cow<'static, str>>,
    ) -> Box<Attempt> {
        self.blocked = true;
        let bucket = self.subject.bucket;
        if let Some(rejected) = bucket.core.terminals.of_bucket(&bucket.name) {
            return Box::new(Tried::Failed(rejected.failure(), rejected.kind()));
        }
        let failure = match node {
            Some(node) => {
                // Terminal states have an end, which the node does not hear of:
                // the only word on them is that of above.
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
        Box::new(Tried::Failed(failure, ErrorKind::ServiceNotAvailable))
    }

    #[cold]
    async fn resolve(
        &mut self,
        connection: &Arc<Connection>,
        deadline: Option<Instant>,
    ) -> Result<u32, Box<Attempt>> {
        let Subject {
            bucket, collection, ..
        } = &self.subject;
        if !connection.has(Feature::Collections) {
            return Err(Box::new(Tried::Final(ErrorKind::FeatureNotAvailable)));
        }
        let lookup = collection.resolve(bucket, connection);
        let lookup = match deadline {
            None => Ok(lookup.await),
            Some(deadline) => tokio::time::timeout_at(deadline.into(), lookup).await,
        };
        let not_found = |reason, kind| {
            // Before the server first said what is in the map, it may just not
            // have heard of it (D11).
            let reason = if bucket.collections.fetched() {
                reason
            } else {
                &KV_COLLECTION_OUTDATED
            };
            let failure = Failure::not_sent(reason).with_peer(connection.peer.clone());
            Err(Box::new(Tried::Failed(failure, kind)))
        };
        match lookup {
            Ok(Ok(id)) => Ok(id),
            Ok(Err(Unresolved::NoScope)) => not_found(&SCOPE_NOT_FOUND, ErrorKind::ScopeNotFound),
            Ok(Err(Unresolved::NoCollection)) => {
                not_found(&COLLECTION_NOT_FOUND, ErrorKind::CollectionNotFound)
            }
            Ok(Err(Unresolved::Failed(failure, kind))) => {
                Err(Box::new(Tried::Failed(failure, kind)))
            }
            Ok(Err(Unresolved::Refused(kind))) => {
                self.last.connection = Some(connection.clone());
                Err(Box::new(Tried::Final(kind)))
            }
            Err(_) => {
                let failure = Failure::not_sent(&TIMEOUT).timed_out();
                let failure = failure.with_note("the collection was being looked up");
                Err(Box::new(Tried::Failed(
                    failure,
                    ErrorKind::UnambiguousTimeout,
                )))
            }
        }
    }

    #[cold]
    fn not_taken(&mut self, not_taken: NotTaken, connection: &Connection) -> Attempt {
        let note = match not_taken {
            NotTaken::Closed => {
                self.blocked = true;
                "the connection is closed"
            }
            // Another connection would be no news: there is one.
            NotTaken::Full => "the socket does not keep up",
            NotTaken::Unencodable(error) => {
                self.last.note(error.to_string());
                return Tried::Final(ErrorKind::InvalidArgument);
            }
        };
        let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).with_peer(connection.peer.clone());
        Tried::Failed(failure.with_note(note), ErrorKind::ServiceNotAvailable)
    }

    fn answered(&mut self, answer: Frame, collection: u32) -> Attempt {
        let status = answer.status();
        if status == steadfast_wire::Status::Success {
            return Tried::Done(answer);
        }
        self.unsuccessful(answer, collection)
    }

    #[cold]
    fn unsuccessful(&mut self, answer: Frame, collection: u32) -> Attempt {
        let Some(connection) = self.last.connection.clone() else {
            return Tried::Final(ErrorKind::Couchbase);
        };
        let status = answer.status();
        let asked = Asked {
            operation: self.operation,
            with_cas: self.body.cas != 0,
        };
        let meaning = meaning(asked, status, connection.error_map.as_deref());
        let Meaning {
            verdict,
            closes_connection,
            asks_for_config,
        } = meaning;
        if closes_connection {
            let why = format!("the server answered {status}");
            connection.close(Closing::Invalid(why));
        }
        if asks_for_config && verdict != Verdict::Done {
            self.subject.bucket.inbox.ask_for_config();
        }
        match verdict {
            Verdict::Done => Tried::Done(answer),
            Verdict::Final(kind) => {
                self.last.answered(&answer);
                Tried::Final(kind)
            }
            Verdict::FailedAtPath => {
                let kind = self.failed_at(&answer);
                self.last.answered(&answer);
                Tried::Final(kind)
            }
            Verdict::Retry(reason, kind) => {
                let mut failure = Failure::responded(reason)
                    .with_peer(connection.peer.clone())
                    .with_note(format!("answered {status}"));
                if reason == &KV_NOT_MY_VBUCKET {
                    failure = self.moved(failure, &answer, &connection);
                } else if reason == &KV_COLLECTION_OUTDATED {
                    let manifest = crate::collections::manifest_of(&answer);
                    self.subject.collection.invalidate(collection, manifest);
                } else if reason == &KV_ERROR_MAP_RETRY_INDICATED {
                    failure = directed(failure, &connection, status);
                }
                self.last.answered(&answer);
                Tried::Failed(failure, kind)
            }
        }
    }

    /// One of the paths cannot be changed as asked: which, and why.
    fn failed_at(&mut self, answer: &Frame) -> ErrorKind {
        let Some((sent_as, status)) = failed_path(answer) else {
            self.last.note("the server does not say which path it was");
            return ErrorKind::DecodingFailure;
        };
        let named_as = self.body.paths.get(usize::from(sent_as)).copied();
        let index = usize::from(named_as.unwrap_or(sent_as));
        self.last.at_path(index);
        self.last
            .note(format!("path {index} was answered {status}"));
        path_error(status)
    }

    /// Not my vbucket: where to, and when (D21 to D23).
    fn moved(&mut self, failure: Failure, answer: &Frame, connection: &Connection) -> Failure {
        let bucket = self.subject.bucket;
        if !answer.value().is_empty() {
            let host = crate::topology::host_of(&connection.peer);
            bucket.learn_from(answer, host);
        }
        let refused_by = self.node.unwrap_or_default();
        let routes = bucket.routes();
        let at_once = routes.as_ref().is_some_and(|routes| {
            let copy = self.subject.copy;
            let at_once = self.course.refused(refused_by, routes, self.vbucket, copy);
            // What is known now of where it goes next is no news while it waits.
            let next = self.course.node(routes, self.vbucket, copy);
            self.node = next.map(|node| node.id);
            at_once
        });
        match (at_once, bucket.core.options.vbucket_retry) {
            (true, _) => failure.with_prescribed_delay(Duration::ZERO),
            (false, VbucketRetry::Fixed(delay)) => failure.with_prescribed_delay(delay),
            (false, VbucketRetry::Controlled) => failure,
        }
    }

    #[cold]
    fn slow_request(&self, finished: &Finished) -> SlowRequest {
        let connection = self.last.connection.as_ref();
        SlowRequest {
            operation: self.operation.name(),
            service: "kv",
            retries: finished.retries,
            timeout: Some(self.timeout),
            last_opaque: self.last.opaque,
            last_local: connection.map(|connection| connection.local.clone()),
            last_remote: connection.map(|connection| connection.peer.clone()),
            last_server_duration: self.last.server_duration(),
        }
    }

    #[cold]
    fn ended(&mut self, ended: Ended) -> Attempt {
        let peer = self.last.connection.as_ref().map(|it| it.peer.clone());
        let with_peer = |failure: Failure| match peer {
            Some(peer) => failure.with_peer(peer),
            None => failure,
        };
        match ended {
            Ended::Closed {
                sent: false,
                by_user: false,
            } => {
                let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE);
                let failure = failure.with_note("connection closed before it was sent");
                Tried::Failed(with_peer(failure), ErrorKind::RequestCanceled)
            }
            Ended::Closed {
                sent: true,
                by_user: false,
            } => {
                let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
                let failure = failure.with_note("connection closed, no answer");
                Tried::Failed(with_peer(failure), ErrorKind::RequestCanceled)
            }
            Ended::Closed {
                sent,
                by_user: true,
            } => {
                let failure = if sent {
                    Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT)
                } else {
                    closed()
                };
                Tried::Closed(with_peer(failure))
            }
            Ended::TimedOut { sent } => {
                let (failure, kind) = if sent {
                    let failure = Failure::in_flight(&TIMEOUT).with_note("no answer in time");
                    (failure, ErrorKind::AmbiguousTimeout)
                } else {
                    let failure = Failure::not_sent(&TIMEOUT).with_note("not sent in time");
                    (failure, ErrorKind::UnambiguousTimeout)
                };
                Tried::Failed(with_peer(failure.timed_out()), kind)
            }
        }
    }
}

/// The client is closed, and nothing was sent.
fn closed() -> Failure {
    Failure::not_sent(&UNKNOWN).with_note("the client is closed")
}

/// What the error map says of retrying, for strategies that obey it (D28).
pub(crate) fn directed(
    failure: Failure,
    connection: &Connection,
    status: steadfast_wire::Status,
) -> Failure {
    let map = connection.error_map.as_ref();
    let definition = map.and_then(|map| map.get(status));
    match definition.and_then(|definition| RetryDirective::of(status, definition)) {
        Some(directive) => directive.attach_to(failure),
        None => failure,
    }
}
