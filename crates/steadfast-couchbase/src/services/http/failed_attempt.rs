//! Turns a failed attempt into a failure with its stage, reason and peer.

use steadfast::Failure;
use steadfast::reason::TIMEOUT;

use super::operation::HttpSender;
use super::response::{ReadError, ServiceError};
use crate::cluster::Handle;
use crate::drive::AttemptError;
use crate::error::ErrorKind;
use crate::reason::{SOCKET_CLOSED_WHILE_IN_FLIGHT, SOCKET_NOT_AVAILABLE, UNKNOWN};
use crate::server_text;

impl HttpSender {
    /// Says what it means that an attempt ended like this, after its bytes may have
    /// left or before.
    pub(super) fn failed(&mut self, error: ReadError, sent: bool) -> AttemptError {
        let (failure, kind) = match (error, sent) {
            (ReadError::Service(error), _) => return self.rejected(error),
            (ReadError::ClientClosed, true) => {
                let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
                return AttemptError::Closed(self.at_peer(failure));
            }
            (ReadError::ClientClosed, false) => {
                let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE);
                return AttemptError::Closed(self.at_peer(failure));
            }
            (ReadError::Deadline, true) => {
                let failure = Failure::in_flight(&TIMEOUT).with_note("no response in time");
                (failure.timed_out(), ErrorKind::AmbiguousTimeout)
            }
            (ReadError::Deadline, false) => {
                let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).timed_out();
                let failure = failure.with_note("no connection in time");
                return self.undispatched(failure, ErrorKind::RequestCanceled);
            }
            (ReadError::ConnectionLost(note), true) => {
                let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
                (failure.with_note(note), ErrorKind::RequestCanceled)
            }
            (ReadError::ConnectionLost(note), false) => {
                let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).with_note(note);
                return self.undispatched(failure, ErrorKind::RequestCanceled);
            }
            // The node may have executed the request, and asking again would not
            // tell.
            (ReadError::Malformed(note), _) => {
                let failure = Failure::inconclusive(&UNKNOWN).with_note(note);
                (failure, ErrorKind::DecodingFailure)
            }
        };
        AttemptError::Failed(self.at_peer(failure), kind)
    }

    /// Says what it means that the service reported this error.
    fn rejected(&mut self, error: ServiceError) -> AttemptError {
        let status = self.context.status.unwrap_or_default();
        let failure = error.failure(status, self.idempotent);
        self.context.code = error.code;
        let masked = |text: String| mask_credentials(&text, &self.client);
        self.context.message = error.message.map(masked);
        let Some(mut failure) = failure else {
            return AttemptError::Final(error.kind);
        };
        if let Some(wait) = self.retry_after {
            failure = failure.with_soft_hint(wait);
        }
        AttemptError::Failed(self.at_peer(failure), error.kind)
    }

    /// Says what it means that an operation cannot be dispatched. If the client
    /// knows a terminal reason, that is the reason (D19).
    pub(super) fn undispatched(&self, failure: Failure, kind: ErrorKind) -> AttemptError {
        let failure = match self.client.core.terminals.for_cluster() {
            Some(rejected) => Failure::not_sent(rejected.reason).with_note(rejected.note),
            None => failure,
        };
        AttemptError::Failed(self.at_peer(failure), kind)
    }

    /// Names the peer on a failure.
    pub(super) fn at_peer(&self, failure: Failure) -> Failure {
        match &self.context.dispatched_to {
            Some(peer) => failure.with_peer(peer.clone()),
            None => failure,
        }
    }
}

/// Masks the client's credentials, if a service's message repeats them.
pub(crate) fn mask_credentials(text: &str, client: &Handle) -> String {
    let header = client.authorization();
    let header = header.as_ref().and_then(|header| header.to_str().ok());
    match header.and_then(|header| header.split_once(' ')) {
        Some((_, secret)) => server_text::without(text, secret),
        None => text.to_owned(),
    }
}
