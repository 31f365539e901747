//! From an operation to a connection that takes it, or why there is none. Nothing
//! of it was sent then.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use steadfast::{Failure, reason::TIMEOUT};
use steadfast_wire::Feature;

use super::{Run, Subject, closed};
use crate::collections::Unresolved;
use crate::drive::Tried;
use crate::error::ErrorKind;
use crate::kv::connection::{Connection, NotTaken, Ticket};
use crate::kv::request::{Accepts, Target, remaining};
use crate::reason::{
    CIRCUIT_BREAKER_OPEN, COLLECTION_NOT_FOUND, KV_COLLECTION_OUTDATED, NODE_NOT_AVAILABLE,
    SCOPE_NOT_FOUND, SOCKET_NOT_AVAILABLE,
};
use crate::topology::{Node, is_terminal};
use crate::world::now;

impl Run<'_> {
    /// A connection to the node that has the document, or why there is none.
    pub(super) fn dispatch(&mut self) -> Result<Arc<Connection>, Box<Tried>> {
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
        let Some(connection) = node.connection(self.vbucket) else {
            return Err(self.blocked(Some(node), "no connection to the node"));
        };
        // Asked last: an attempt that cannot be made is not worth a canary.
        if node.breaker.is_on() {
            self.ask_breaker(node)?;
        }
        Ok(connection)
    }

    /// Hands the attempt to the connection. Not part of `attempt`, which would
    /// keep what this needs while it waits for the answer.
    pub(super) fn submit<'c>(
        &mut self,
        connection: &'c Connection,
        collection: u32,
        deadline: Option<Instant>,
    ) -> Result<Ticket<'c>, Box<Tried>> {
        if let Err(lacking) = self.body.fits(connection, collection) {
            self.last.note(lacking);
            return Err(Box::new(Tried::Unsendable(ErrorKind::FeatureNotAvailable)));
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
    fn no_copy(&mut self, note: &str) -> Box<Tried> {
        self.last.note(note);
        Box::new(Tried::Unsendable(ErrorKind::DocumentUnretrievable))
    }

    /// A breaker that is open is a reason like any other.
    #[cold]
    fn ask_breaker(&mut self, node: &Arc<Node>) -> Result<(), Box<Tried>> {
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

    /// It cannot be dispatched. Only now the terminal states matter (D19).
    #[cold]
    fn blocked(
        &mut self,
        node: Option<&Arc<Node>>,
        note: impl Into<Cow<'static, str>>,
    ) -> Box<Tried> {
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
    pub(super) async fn resolve(
        &mut self,
        connection: &Arc<Connection>,
        deadline: Option<Instant>,
    ) -> Result<u32, Box<Tried>> {
        let Subject {
            bucket, collection, ..
        } = &self.subject;
        if !connection.has(Feature::Collections) {
            return Err(Box::new(Tried::Unsendable(ErrorKind::FeatureNotAvailable)));
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
    fn not_taken(&mut self, not_taken: NotTaken, connection: &Connection) -> Tried {
        let note = match not_taken {
            NotTaken::Closed => {
                self.blocked = true;
                "the connection is closed"
            }
            // Another connection would be no news: there is one.
            NotTaken::Full => "the socket does not keep up",
            NotTaken::Unencodable(error) => {
                self.last.note(error.to_string());
                return Tried::Unsendable(ErrorKind::InvalidArgument);
            }
        };
        let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).with_peer(connection.peer.clone());
        Tried::Failed(failure.with_note(note), ErrorKind::ServiceNotAvailable)
    }
}
