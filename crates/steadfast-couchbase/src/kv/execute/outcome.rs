//! What became of an attempt that a connection took: an answer and its meaning, or
//! none, and how far it had come.

use std::time::Duration;

use steadfast::{Failure, reason::TIMEOUT};
use steadfast_wire::{Frame, Status};

use super::{Attempt, Run, closed};
use crate::breaker::Outcome;
use crate::drive::Tried;
use crate::error::ErrorKind;
use crate::kv::connection::{Closing, Connection, Ended};
use crate::kv::meaning::{Asked, Meaning, Verdict, failed_path, meaning, path_error};
use crate::options::VbucketRetry;
use crate::reason::{
    KV_COLLECTION_OUTDATED, KV_ERROR_MAP_RETRY_INDICATED, KV_NOT_MY_VBUCKET,
    SOCKET_CLOSED_WHILE_IN_FLIGHT, SOCKET_NOT_AVAILABLE,
};
use crate::strategy::RetryDirective;
use crate::world::now;

impl Run<'_> {
    /// Tells the breaker what became of the attempt. One that the client itself
    /// ended says nothing.
    #[cold]
    pub(super) fn tell_breaker(&mut self, answer: &Result<Frame, Ended>) {
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

    /// The breaker allowed an attempt that was then not made, and is told so: else a
    /// canary would be waited for that nobody sent.
    #[cold]
    pub(super) fn not_made(&mut self) {
        if let Some((node, permit)) = self.permit.take() {
            node.breaker.record(permit, Outcome::NotMade, now());
        }
    }

    pub(super) fn answered(&mut self, answer: Frame, collection: u32) -> Attempt {
        let status = answer.status();
        if status == Status::Success {
            return Ok(answer);
        }
        self.unsuccessful(answer, collection)
    }

    #[cold]
    fn unsuccessful(&mut self, answer: Frame, collection: u32) -> Attempt {
        let Some(connection) = self.last.connection.clone() else {
            return Err(Tried::Final(ErrorKind::Couchbase));
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
            Verdict::Done => Ok(answer),
            Verdict::Final(kind) => {
                self.last.answered(&answer);
                Err(Tried::Final(kind))
            }
            Verdict::FailedAtPath => {
                let kind = self.failed_at(&answer);
                self.last.answered(&answer);
                Err(Tried::Final(kind))
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
                Err(Tried::Failed(failure, kind))
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
    pub(super) fn ended(&mut self, ended: Ended) -> Attempt {
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
                Err(Tried::Failed(
                    with_peer(failure),
                    ErrorKind::RequestCanceled,
                ))
            }
            Ended::Closed {
                sent: true,
                by_user: false,
            } => {
                let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
                let failure = failure.with_note("connection closed, no answer");
                Err(Tried::Failed(
                    with_peer(failure),
                    ErrorKind::RequestCanceled,
                ))
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
                Err(Tried::Closed(with_peer(failure)))
            }
            Ended::TimedOut { sent } => {
                let (failure, kind) = if sent {
                    let failure = Failure::in_flight(&TIMEOUT).with_note("no answer in time");
                    (failure, ErrorKind::AmbiguousTimeout)
                } else {
                    let failure = Failure::not_sent(&TIMEOUT).with_note("not sent in time");
                    (failure, ErrorKind::UnambiguousTimeout)
                };
                Err(Tried::Failed(with_peer(failure.timed_out()), kind))
            }
        }
    }
}

/// What the error map says of retrying, for strategies that obey it (D28).
pub(crate) fn directed(failure: Failure, connection: &Connection, status: Status) -> Failure {
    let map = connection.error_map.as_ref();
    let definition = map.and_then(|map| map.get(status));
    match definition.and_then(|definition| RetryDirective::of(status, definition)) {
        Some(directive) => directive.attach_to(failure),
        None => failure,
    }
}
