//! One key-value operation, attempt by attempt.

mod dispatch;
mod outcome;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use outcome::directed;
use steadfast::{Failure, RetryStrategy};
use steadfast_wire::Frame;

use super::last::Last;
use super::operation::KvOperation;
use super::request::{Body, Common, KeyPlace, call, timeout};
use crate::breaker::Permit;
use crate::collections::Collection;
use crate::drive::{Attempts, Tried, drive};
use crate::error::{Error, OperationTarget};
use crate::observe::{Finished, SlowRequest};
use crate::reason::UNKNOWN;
use crate::topology::{BucketCore, Course, Node, NodeId, Wish};

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

type Attempt = Result<Frame, Tried>;

impl Attempts for Run<'_> {
    type Output = Frame;

    async fn attempt(&mut self, deadline: Option<Instant>) -> Attempt {
        let connection = match self.dispatch() {
            Ok(connection) => connection,
            Err(tried) => return Err(*tried),
        };
        let collection = match self.subject.collection.id() {
            Some(id) => id,
            // In a box, so that the operations that follow do not carry it.
            None => match Box::pin(self.resolve(&connection, deadline)).await {
                Ok(id) => id,
                Err(tried) => {
                    self.not_made();
                    return Err(*tried);
                }
            },
        };
        let answer = match self.submit(&connection, collection, deadline) {
            Ok(ticket) => ticket.await,
            Err(tried) => {
                self.not_made();
                return Err(*tried);
            }
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
            KeyPlace::Nowhere => OperationTarget::bucket(&bucket.name),
            KeyPlace::InFrame | KeyPlace::InValue => OperationTarget {
                bucket: Some(bucket.name.clone()),
                scope: Some(collection.scope.clone()),
                collection: Some(collection.name.clone()),
                key: shown.then(|| String::from_utf8_lossy(id).into_owned()),
            },
        };
        let error = error.with_target(place).with_kv(self.last.context());
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
}

/// The client is closed, and nothing was sent.
fn closed() -> Failure {
    Failure::not_sent(&UNKNOWN).with_note("the client is closed")
}
