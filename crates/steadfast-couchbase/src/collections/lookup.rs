//! Asking a node for the id of a collection.

use std::sync::Arc;
use std::time::Instant;

use steadfast::Failure;
use steadfast_wire::collections::{CollectionIdFound, CollectionPath};
use steadfast_wire::{ErrorBody, Frame, FrameBuilder, Opcode, Status};
use tokio::sync::watch;

use super::Collection;
use crate::error::ErrorKind;
use crate::kv::connection::{Closing, Connection, Ended, NotTaken};
use crate::kv::execute::directed;
use crate::kv::meaning::{Asked, Verdict, meaning};
use crate::kv::operation::KvOperation;
use crate::reason::SOCKET_NOT_AVAILABLE;
use crate::topology::BucketCore;

/// What came of a lookup.
pub(crate) type Lookup = Result<u32, Unresolved>;

/// Why there is no id. Nothing of the operation was sent.
#[derive(Clone, Debug)]
pub(crate) enum Unresolved {
    /// The map does not have the scope.
    NoScope,
    /// The map does not have the collection.
    NoCollection,
    /// The lookup failed, and with it the attempt that needed it; an error of
    /// this kind if it is not retried.
    Failed(Failure, ErrorKind),
    /// The server's answer is final.
    Refused(ErrorKind),
}

impl Collection {
    /// Looks the id up over this connection, or waits for who does already.
    ///
    /// Dropping the future stops waiting; the lookup goes on.
    pub(crate) async fn resolve(
        self: &Arc<Self>,
        bucket: &Arc<BucketCore>,
        connection: &Arc<Connection>,
    ) -> Lookup {
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
                    let lookup = look_up(
                        self.clone(),
                        bucket.clone(),
                        connection.clone(),
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
            Ok(lookup) => lookup.clone().unwrap_or_else(|| Err(cut_short())),
            Err(_) => Err(cut_short()),
        }
    }
}

/// The task went away without a result, as when the runtime is shut down.
fn cut_short() -> Unresolved {
    let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE);
    let failure = failure.with_note("the lookup of the collection was cut short");
    Unresolved::Failed(failure, ErrorKind::ServiceNotAvailable)
}

async fn look_up(
    collection: Arc<Collection>,
    bucket: Arc<BucketCore>,
    connection: Arc<Connection>,
    done: Done,
) {
    let deadline = crate::world::now() + bucket.core.options.kv_timeout;
    let lookup = ask(&collection, &bucket, &connection, deadline).await;
    let lookup = match lookup {
        Ok((id, manifest)) => {
            bucket.collections.fetched();
            collection.learn(id, manifest);
            Ok(id)
        }
        Err(unresolved) => Err(unresolved),
    };
    done.finish(lookup);
}

async fn ask(
    collection: &Collection,
    bucket: &BucketCore,
    connection: &Arc<Connection>,
    deadline: Instant,
) -> Result<(u32, u64), Unresolved> {
    let path = CollectionPath {
        scope: &collection.scope,
        collection: &collection.name,
    };
    let opcode = Opcode::GetCollectionId;
    let ticket = connection.submit(opcode, Some(deadline), |opaque, out| {
        FrameBuilder::request(opcode)
            .opaque(opaque)
            .value(path)
            .encode(out)
    });
    let unavailable = |note: String| {
        let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).with_peer(connection.peer.clone());
        let failure = failure.with_note(format!("looking the collection up: {note}"));
        Unresolved::Failed(failure, ErrorKind::ServiceNotAvailable)
    };
    let ticket = ticket.map_err(|not_taken| match not_taken {
        NotTaken::Closed => unavailable("the connection is closed".to_owned()),
        NotTaken::Full => unavailable("the socket does not keep up".to_owned()),
        NotTaken::Unencodable(error) => unavailable(error.to_string()),
    })?;
    let answer = ticket.await.map_err(|ended| match ended {
        Ended::Closed { .. } => unavailable("the connection was closed".to_owned()),
        Ended::TimedOut { .. } => unavailable("no answer in time".to_owned()),
    })?;
    read(&answer).ok_or_else(|| match answer.status() {
        // These two never reach the orchestrator as what they are (D10).
        Status::UnknownScope => Unresolved::NoScope,
        Status::UnknownCollection => Unresolved::NoCollection,
        Status::Success => unavailable("the answer cannot be read".to_owned()),
        status => answered(status, bucket, connection),
    })
}

/// What any other answer means is what it means to any operation.
fn answered(status: Status, bucket: &BucketCore, connection: &Connection) -> Unresolved {
    let asked = Asked {
        operation: KvOperation::GetCollectionId,
        with_cas: false,
    };
    let meaning = meaning(asked, status, connection.error_map.as_deref());
    if meaning.closes_connection {
        connection.close(Closing::Invalid(format!("the server answered {status}")));
    }
    if meaning.asks_for_config {
        bucket.inbox.ask_for_config();
    }
    match meaning.verdict {
        // Nothing of the operation itself was sent.
        Verdict::Retry(reason, kind) => {
            let failure = Failure::not_sent(reason)
                .with_peer(connection.peer.clone())
                .with_note(format!("looking the collection up: answered {status}"));
            Unresolved::Failed(directed(failure, connection, status), kind)
        }
        Verdict::Final(kind) => Unresolved::Refused(kind),
        // Neither is an answer to this question.
        Verdict::Done | Verdict::FailedAtPath => Unresolved::Refused(ErrorKind::DecodingFailure),
    }
}

fn read(answer: &Frame) -> Option<(u32, u64)> {
    if answer.status() != Status::Success {
        return None;
    }
    let found = CollectionIdFound::decode(answer.extras()).ok()?;
    Some((found.collection, found.manifest_uid))
}

/// The manifest that an answer speaks of.
pub(crate) fn manifest_of(answer: &Frame) -> Option<u64> {
    ErrorBody::of(answer).ok()??.manifest_uid
}

/// Tells those who wait, and makes room for the next lookup, whatever becomes of
/// the task.
struct Done {
    collection: Arc<Collection>,
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
