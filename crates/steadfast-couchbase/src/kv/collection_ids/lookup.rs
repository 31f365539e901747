//! Looks up the id of a collection.

use std::sync::Arc;
use std::time::Instant;

use steadfast::{Failure, reason::TIMEOUT};
use steadfast_wire::collections::{CollectionIdFound, CollectionPath};
use steadfast_wire::{ErrorBody, Feature, Frame, FrameBuilder, Opcode, Status};
use tokio::sync::watch;

use super::CollectionEntry;
use crate::drive::AttemptError;
use crate::error::ErrorKind;
use crate::kv::attempt::with_directive;
use crate::kv::connection::{Admission, Connection, NoResponseCause, SubmitError};
use crate::kv::meaning::Disposition;
use crate::kv::operation::KvOperation;
use crate::reason::{
    COLLECTION_NOT_FOUND, KV_COLLECTION_OUTDATED, SCOPE_NOT_FOUND, SOCKET_NOT_AVAILABLE,
};
use crate::topology::BucketCore;
use crate::world::{before, deadline_after};

/// The result of a lookup. The error is that of the attempt that needs the id: nothing of
/// the operation itself was sent.
pub(crate) type Lookup = Result<u32, AttemptError>;

impl CollectionEntry {
    /// Looks the id up, or joins the running lookup, until the deadline of an operation on
    /// this connection.
    ///
    /// Cancel-safe: the lookup continues for others.
    pub(crate) async fn look_up(
        self: &Arc<Self>,
        bucket: &Arc<BucketCore>,
        connection: &Connection,
        deadline: Option<Instant>,
    ) -> Lookup {
        if !connection.has(Feature::Collections) {
            return Err(AttemptError::Unsendable(ErrorKind::FeatureNotAvailable));
        }
        let lookup = self.join_lookup(bucket);
        match deadline {
            None => lookup.await,
            Some(deadline) => match tokio::time::timeout_at(deadline.into(), lookup).await {
                Ok(lookup) => lookup,
                Err(_) => Err(too_late()),
            },
        }
    }

    /// Cancel-safe: the lookup continues for others.
    async fn join_lookup(self: &Arc<Self>, bucket: &Arc<BucketCore>) -> Lookup {
        let mut under_way = {
            let mut state = self.state.lock();
            if let Some(id) = self.id() {
                return Ok(id);
            }
            match &state.under_way {
                Some(under_way) => under_way.clone(),
                None => {
                    let (done, under_way) = watch::channel(None);
                    state.under_way = Some(under_way.clone());
                    let lookup = run_lookup(
                        self.clone(),
                        bucket.clone(),
                        Done {
                            collection: self.clone(),
                            done,
                        },
                    );
                    bucket.core.tasks.spawn(lookup);
                    under_way
                }
            }
        };
        match under_way.wait_for(Option::is_some).await {
            Ok(lookup) => lookup.clone().unwrap_or_else(|| Err(interrupted())),
            Err(_) => Err(interrupted()),
        }
    }
}

/// The task ended without a result, as when the runtime is shut down.
fn interrupted() -> AttemptError {
    let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE);
    let failure = failure.with_note("the collection lookup was interrupted");
    AttemptError::Failed(failure, ErrorKind::ServiceNotAvailable)
}

/// The deadline of the operation passed, and not that of the lookup.
fn too_late() -> AttemptError {
    let failure = Failure::not_sent(&TIMEOUT).timed_out();
    let failure = failure.with_note("the collection lookup was still running");
    AttemptError::Failed(failure, ErrorKind::UnambiguousTimeout)
}

/// No node could be asked in time.
fn not_connected() -> AttemptError {
    let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE);
    let failure = failure.with_note("collection lookup: no connection that tracks the topology");
    AttemptError::Failed(failure, ErrorKind::ServiceNotAvailable)
}

/// Runs as a task until the lookup has a result.
///
/// Cancel-safe: dropping the future ends the lookup, and another may begin.
async fn run_lookup(collection: Arc<CollectionEntry>, bucket: Arc<BucketCore>, done: Done) {
    let deadline = deadline_after(bucket.core.options.kv_timeout);
    // Not over the operation's own connection, where it would be a barrier (D56).
    let tracking = before(deadline, bucket.tracking_connection()).await;
    let lookup = match tracking {
        Some(tracking) => ask(&collection, &bucket, &tracking, deadline).await,
        None => Err(not_connected()),
    };
    done.finish(lookup.map(|(id, manifest)| {
        bucket.collections.mark_answered();
        collection.learn(id, manifest);
        id
    }));
}

/// Cancel-safe: dropping the future withdraws the request.
async fn ask(
    collection: &CollectionEntry,
    bucket: &BucketCore,
    connection: &Arc<Connection>,
    deadline: Option<Instant>,
) -> Result<(u32, u64), AttemptError> {
    let path = CollectionPath {
        scope: &collection.scope,
        collection: &collection.name,
    };
    let opcode = Opcode::GetCollectionId;
    let unavailable = |note: String| {
        let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).with_peer(connection.peer.clone());
        let failure = failure.with_note(format!("collection lookup: {note}"));
        AttemptError::Failed(failure, ErrorKind::ServiceNotAvailable)
    };
    let not_found = |reason, kind| {
        // The first response on a bucket may come from a node that has not heard of the
        // collection yet (D11). It counts once, for all operations that wait for it.
        let reason = match bucket.collections.mark_answered() {
            true => reason,
            false => &KV_COLLECTION_OUTDATED,
        };
        let failure = Failure::not_sent(reason).with_peer(connection.peer.clone());
        AttemptError::Failed(failure, kind)
    };
    let ticket = connection.submit(opcode, deadline, Admission::Always, |opaque, out| {
        FrameBuilder::request(opcode)
            .opaque(opaque)
            .value(path)
            .encode(out)
    });
    let ticket = ticket.map_err(|error| match error {
        SubmitError::Closed => unavailable("the connection is closed".to_owned()),
        SubmitError::Full => unavailable("the connection is full".to_owned()),
        SubmitError::Unencodable(error) => unavailable(error.to_string()),
    })?;
    let response = ticket.await.map_err(|ended| match ended.cause {
        NoResponseCause::Closed | NoResponseCause::WentSilent | NoResponseCause::ClosedByUser => {
            unavailable("the connection was closed".to_owned())
        }
        NoResponseCause::TimedOut => unavailable("no response in time".to_owned()),
    })?;
    read(&response).ok_or_else(|| match response.status() {
        // These two have reasons of their own (D10).
        Status::UnknownScope => not_found(&SCOPE_NOT_FOUND, ErrorKind::ScopeNotFound),
        Status::UnknownCollection => {
            not_found(&COLLECTION_NOT_FOUND, ErrorKind::CollectionNotFound)
        }
        Status::Success => unavailable("the response is invalid".to_owned()),
        status => error_response(status, bucket, connection),
    })
}

/// Any other status means the same as to any operation.
fn error_response(status: Status, bucket: &BucketCore, connection: &Connection) -> AttemptError {
    let meaning = connection.handle_status(KvOperation::GetCollectionId, false, status);
    if meaning.fetches_config {
        bucket.config_wanted.notify_one();
    }
    match (meaning.disposition, meaning.disposition.failure()) {
        // Nothing of the operation itself was sent.
        (_, Some((answered, kind))) => {
            let failure = Failure::not_sent(answered.reason)
                .with_peer(connection.peer.clone())
                .with_note(format!("collection lookup: answered {status}"));
            AttemptError::Failed(with_directive(failure, connection, status), kind)
        }
        // The response is to the lookup, so the operation was not sent.
        (Disposition::Final(kind), None) => AttemptError::Unsendable(kind),
        // Final too: neither fits a lookup.
        (_, None) => AttemptError::Unsendable(ErrorKind::DecodingFailure),
    }
}

fn read(response: &Frame) -> Option<(u32, u64)> {
    if response.status() != Status::Success {
        return None;
    }
    let found = CollectionIdFound::decode(response.extras()).ok()?;
    Some((found.collection, found.manifest_uid))
}

/// The manifest named in an error response.
pub(crate) fn manifest_uid(response: &Frame) -> Option<u64> {
    ErrorBody::of(response).ok()??.manifest_uid
}

/// Publishes the result and allows the next lookup, also when the task is dropped.
struct Done {
    collection: Arc<CollectionEntry>,
    done: watch::Sender<Option<Lookup>>,
}

impl Done {
    fn finish(self, lookup: Lookup) {
        self.collection.state.lock().under_way = None;
        self.done.send_replace(Some(lookup));
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        let mut state = self.collection.state.lock();
        let is_ours = state
            .under_way
            .as_ref()
            .is_some_and(|under_way| under_way.same_channel(&self.done.subscribe()));
        if is_ours {
            state.under_way = None;
        }
    }
}
