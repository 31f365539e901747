//! Rejected connections, and what they mean to operations.

use std::fmt;
use std::io;

use steadfast::{Failure, Reason};
use steadfast_wire::{ErrorBody, Frame, Status};

use crate::credentials::Credentials;
use crate::error::ErrorKind;
use crate::reason::{
    AUTHENTICATION_ERROR, BUCKET_ACCESS_ERROR, NODE_NOT_AVAILABLE, SERVER_NOT_PROVEN,
    SOCKET_NOT_AVAILABLE, TLS_ERROR,
};
use crate::sasl::SaslError;
use crate::server_text::bounded;

/// A connection that was not established.
#[derive(Clone, Debug)]
pub(crate) struct Rejected {
    /// The reason for operations that wait for the connection.
    pub(crate) reason: &'static Reason,
    /// A description without secrets, on one line.
    pub(crate) note: String,
    /// The steps that succeeded before.
    pub(crate) reached: Reached,
    /// Set for a bucket of a kind that the client cannot use.
    pub(crate) unsupported: bool,
    /// What is known about the cost beyond that; see [`Rejected::cost`].
    cost: Option<DialCost>,
}

/// What a failed dial cost the node, as far as a client can tell (D64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialCost {
    /// It was refused, or the node responded soon.
    Little,
    /// It was slow or broken off, so the node is probably busy.
    Much,
}

/// The last step of a handshake that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// Nothing came back.
    #[default]
    Nothing,
    /// The server responded, so TLS works if it is used. The end of the TLS handshake
    /// does not prove that: a server may reject the client's certificate later.
    Answers,
    /// The server knows the user.
    Authentication,
    /// The bucket is open, if one was asked for.
    Bucket,
}

impl Rejected {
    /// Rejected before any step succeeded.
    pub(crate) fn new(reason: &'static Reason, note: String) -> Self {
        Self {
            reason,
            note: bounded(&note),
            reached: Reached::Nothing,
            unsupported: false,
            cost: None,
        }
    }

    /// Nothing listens at the address, or there is no such address.
    pub(crate) fn refused(note: String) -> Self {
        Self {
            cost: Some(DialCost::Little),
            ..Self::lost(note)
        }
    }

    /// The same rejection, by a dial that was slow or broken off.
    pub(crate) fn costly(self) -> Self {
        Self {
            cost: Some(DialCost::Much),
            ..self
        }
    }

    /// Returns what the dial cost the node.
    pub(crate) fn cost(&self) -> DialCost {
        let responded = self.reached > Reached::Nothing || self.reason != &SOCKET_NOT_AVAILABLE;
        match self.cost {
            Some(cost) => cost,
            None if responded => DialCost::Little,
            None => DialCost::Much,
        }
    }

    /// Returns whether other credentials or certificates could change it.
    pub(crate) fn is_of_credentials(&self) -> bool {
        [&AUTHENTICATION_ERROR, &SERVER_NOT_PROVEN, &TLS_ERROR].contains(&self.reason)
    }

    /// The socket, or the protocol on it, failed.
    pub(crate) fn lost(note: String) -> Self {
        Self::new(&SOCKET_NOT_AVAILABLE, note)
    }

    pub(crate) fn io(error: io::Error) -> Self {
        // After the handshake a peer may still say that it does not like the
        // client's certificate (D20).
        if crate::tls::is_tls_failure(&error) {
            return Self::tls(&error);
        }
        Self::lost(error.to_string())
    }

    pub(crate) fn tls(error: &dyn fmt::Display) -> Self {
        Self::new(&TLS_ERROR, error.to_string())
    }

    /// Status 0x20 at the SASL step, and nothing else (D3).
    pub(super) fn authentication(credentials: &Credentials, answer: &Frame) -> Self {
        let who = match credentials.user() {
            Some(user) => format!("user \"{user}\""),
            None => "the token".to_owned(),
        };
        let (status, said) = (answer.status(), said(answer));
        let note = format!(
            "the server refused these credentials; check user and password \
             ({who}: {status}{said})"
        );
        Self::new(&AUTHENTICATION_ERROR, note)
    }

    /// The server accepted the credentials but did not prove that it knows the
    /// password. This failure is permanent, and the server must not be trusted (D60).
    pub(super) fn unproven(error: &SaslError) -> Self {
        let note = format!(
            "the server did not prove that it knows the password, so it may be an impostor \
             ({error})"
        );
        Self::new(&SERVER_NOT_PROVEN, note)
    }

    /// Returns whether the node does not have the bucket, which the user may open.
    pub(crate) fn is_unknown_bucket(&self) -> bool {
        self.reason == &NODE_NOT_AVAILABLE
    }

    /// No node has the bucket, which the user may open (D4).
    pub(crate) fn missing_bucket(bucket: &str) -> Self {
        let note = format!(
            "the cluster has no bucket \"{bucket}\"; check its spelling \
             (its nodes answered {})",
            Status::KeyNotFound
        );
        Self::new(&BUCKET_ACCESS_ERROR, note)
    }

    /// A bucket without a config is of a kind that the client cannot use.
    pub(super) fn without_config(bucket: &str, status: Status) -> Self {
        Self::unsupported_bucket(&format_args!(
            "the server has no config for the bucket \"{bucket}\" ({status}): only buckets \
             with vbuckets are supported, and not memcached buckets"
        ))
    }

    /// The bucket is of a kind that the client cannot use.
    pub(crate) fn unsupported_bucket(problem: &dyn fmt::Display) -> Self {
        Self {
            unsupported: true,
            ..Self::new(&BUCKET_ACCESS_ERROR, problem.to_string())
        }
    }

    /// The same rejection, after these steps succeeded.
    pub(crate) fn after(self, reached: Reached) -> Self {
        Self { reached, ..self }
    }

    /// The kind of the error if the strategy does not wait.
    pub(crate) fn kind(&self) -> ErrorKind {
        kind_of(self.reason)
    }

    /// The failure of an operation that waits for this connection.
    pub(crate) fn failure(&self) -> Failure {
        Failure::not_sent(self.reason).with_note(self.note.clone())
    }
}

/// The kind of the error if the strategy does not wait for a connection that was
/// rejected for this reason.
pub(crate) fn kind_of(reason: &Reason) -> ErrorKind {
    if reason == &AUTHENTICATION_ERROR || reason == &SERVER_NOT_PROVEN {
        ErrorKind::AuthenticationFailure
    } else if reason == &TLS_ERROR || reason == &BUCKET_ACCESS_ERROR {
        ErrorKind::Couchbase
    } else {
        ErrorKind::ServiceNotAvailable
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.note)
    }
}

impl std::error::Error for Rejected {}

/// Any problem with SASL that is not a status 0x20 (D3).
pub(super) fn sasl_refused(error: &SaslError) -> Rejected {
    Rejected::lost(format!("authentication cannot go on: {error}"))
}

pub(super) fn bad_answer(what: &str, error: &dyn fmt::Display) -> Rejected {
    Rejected::lost(format!("{what} cannot be read: {error}"))
}

/// The status of SELECT_BUCKET is not success (D4).
pub(super) fn bucket_refused(bucket: &str, answer: &Frame) -> Rejected {
    let status = answer.status();
    let reason = match status {
        Status::AccessError | Status::AuthError => &BUCKET_ACCESS_ERROR,
        // The user may open it, and this node does not have it, or not yet.
        Status::KeyNotFound => &NODE_NOT_AVAILABLE,
        Status::NotSupported => {
            tracing::error!(
                bucket,
                "the server does not support opening a bucket here, which is a bug in this client"
            );
            &SOCKET_NOT_AVAILABLE
        }
        _ => &SOCKET_NOT_AVAILABLE,
    };
    let said = said(answer);
    let note = if reason == &BUCKET_ACCESS_ERROR {
        format!(
            "the server does not open the bucket \"{bucket}\"; check that it exists and that \
             the user has rights on it ({status}{said})"
        )
    } else if reason == &NODE_NOT_AVAILABLE {
        format!(
            "the node has no bucket \"{bucket}\"; check its spelling, or wait if the node \
             has just started ({status}{said})"
        )
    } else {
        format!("opening the bucket \"{bucket}\": {status}{said}")
    };
    Rejected::new(reason, note)
}

/// The context in the server's error body, in parentheses.
fn said(answer: &Frame) -> String {
    match ErrorBody::of(answer) {
        Ok(Some(ErrorBody {
            context: Some(context),
            ..
        })) => format!(" ({context})"),
        Ok(_) | Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use steadfast_wire::sasl::Mechanism;

    use super::*;

    #[test]
    fn a_problem_of_the_client_with_sasl_is_no_authentication_error() {
        for error in [
            SaslError::NoMechanism("none is offered".to_owned()),
            SaslError::Unsuited(Mechanism::Plain),
            SaslError::Malformed("salt is empty"),
            SaslError::Nonce,
            SaslError::BrokenOff,
            SaslError::OutOfTurn(Mechanism::Plain),
        ] {
            assert_eq!(
                sasl_refused(&error).reason,
                &SOCKET_NOT_AVAILABLE,
                "{error}"
            );
        }
    }
}
