//! Authentication, from the server's side.
//!
//! SCRAM with three hashes, PLAIN, and OAUTHBEARER with tokens that the test registered.
//! An exchange takes the client's messages and returns the responses, without I/O.
//!
//! The hashes are implemented apart from the client's on purpose: a mistake in shared code
//! would be on both sides of an exchange, and no test would see it.

pub(crate) mod scram;

use std::sync::Arc;

use scram::{ScramHash, ScramServer};
use steadfast_wire::sasl::{Mechanism, OauthBearer, Plain};

use crate::users::{User, Users};

/// The response to a step.
#[derive(Debug)]
pub(crate) enum SaslResponse {
    /// More is needed: send this.
    Continue(Vec<u8>, ScramServer),
    /// This is the user; send this.
    Done(Arc<User>, Vec<u8>),
    /// Authentication failed.
    Refused,
}

/// Begins an exchange with the client's first message.
pub(crate) fn start(mechanism: Mechanism, message: &[u8], users: &Users) -> SaslResponse {
    match mechanism {
        Mechanism::ScramSha512 => scram(ScramHash::Sha512, message, users),
        Mechanism::ScramSha256 => scram(ScramHash::Sha256, message, users),
        Mechanism::ScramSha1 => scram(ScramHash::Sha1, message, users),
        Mechanism::Plain => plain(message, users),
        Mechanism::OauthBearer => bearer(message, users),
    }
}

/// Goes on with an exchange.
pub(crate) fn step(server: ScramServer, message: &[u8]) -> SaslResponse {
    match server.finish(message) {
        Some((user, verifier)) => SaslResponse::Done(user, verifier),
        None => SaslResponse::Refused,
    }
}

fn scram(hash: ScramHash, message: &[u8], users: &Users) -> SaslResponse {
    match ScramServer::start(hash, message, users) {
        Some((server, challenge)) => SaslResponse::Continue(challenge, server),
        None => SaslResponse::Refused,
    }
}

fn plain(message: &[u8], users: &Users) -> SaslResponse {
    let user = Plain::decode(message)
        .ok()
        .and_then(|plain| users.check(plain.username, plain.password.as_bytes()));
    user.map_or(SaslResponse::Refused, |user| {
        SaslResponse::Done(user, Vec::new())
    })
}

fn bearer(message: &[u8], users: &Users) -> SaslResponse {
    let user = OauthBearer::decode(message)
        .ok()
        .and_then(|bearer| users.by_token(bearer.token));
    user.map_or(SaslResponse::Refused, |user| {
        SaslResponse::Done(user, Vec::new())
    })
}

/// Takes the bytes for a login by each mechanism. A fuzzer that does not know the password
/// must never get in.
#[cfg(fuzzing)]
pub fn fuzz_login(first: &[u8], last: &[u8]) {
    let users = Users::default();
    users.put(
        "app",
        "the fuzzer does not know this",
        crate::users::Rights::all_buckets(),
    );
    for mechanism in [
        Mechanism::ScramSha1,
        Mechanism::Plain,
        Mechanism::OauthBearer,
    ] {
        match start(mechanism, first, &users) {
            SaslResponse::Continue(_, server) => {
                assert!(matches!(step(server, last), SaslResponse::Refused));
            }
            SaslResponse::Done(..) => panic!("a stranger is logged in"),
            SaslResponse::Refused => {}
        }
    }
}
