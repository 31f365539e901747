//! Authentication, from the server's side.
//!
//! Four ways in: SCRAM with three hashes, which never shows the password; PLAIN, which
//! does; and OAUTHBEARER with tokens that the cluster was told to accept. An exchange
//! is a value that eats what the client sends and says what to answer, so the wire is
//! somebody else's concern.

pub mod scram;

use std::sync::Arc;

use scram::{ScramHash, ScramServer};

use crate::users::{User, Users};

/// A way to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Challenge and response.
    Scram(ScramHash),
    /// The password as it is.
    Plain,
    /// A token instead of a password.
    OauthBearer,
}

impl Mechanism {
    /// All of them as a server lists them, best first.
    pub const LISTED: &'static str = "SCRAM-SHA512 SCRAM-SHA256 SCRAM-SHA1 PLAIN OAUTHBEARER";

    /// The mechanism of this name. Both spellings of the SCRAM names are in use.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        match name {
            b"SCRAM-SHA512" | b"SCRAM-SHA-512" => Some(Self::Scram(ScramHash::Sha512)),
            b"SCRAM-SHA256" | b"SCRAM-SHA-256" => Some(Self::Scram(ScramHash::Sha256)),
            b"SCRAM-SHA1" | b"SCRAM-SHA-1" => Some(Self::Scram(ScramHash::Sha1)),
            b"PLAIN" => Some(Self::Plain),
            b"OAUTHBEARER" => Some(Self::OauthBearer),
            _ => None,
        }
    }
}

/// What to answer to a step.
#[derive(Debug)]
pub enum Step {
    /// More is needed: send this.
    Continue(Vec<u8>, ScramServer),
    /// This is the user; send this.
    Done(Arc<User>, Vec<u8>),
    /// No.
    Refused,
}

/// Begins an exchange with the client's first message.
pub fn start(mechanism: Mechanism, message: &[u8], users: &Users) -> Step {
    match mechanism {
        Mechanism::Scram(hash) => match ScramServer::start(hash, message, users) {
            Some((server, challenge)) => Step::Continue(challenge, server),
            None => Step::Refused,
        },
        Mechanism::Plain => plain(message, users),
        Mechanism::OauthBearer => bearer(message, users),
    }
}

/// Goes on with an exchange.
pub fn step(server: ScramServer, message: &[u8]) -> Step {
    match server.finish(message) {
        Some((user, verifier)) => Step::Done(user, verifier),
        None => Step::Refused,
    }
}

fn plain(message: &[u8], users: &Users) -> Step {
    let mut parts = message.splitn(3, |byte| *byte == 0);
    let (Some(_authorize), Some(name), Some(password)) = (parts.next(), parts.next(), parts.next())
    else {
        return Step::Refused;
    };
    let user = std::str::from_utf8(name)
        .ok()
        .and_then(|name| users.check(name, password));
    user.map_or(Step::Refused, |user| Step::Done(user, Vec::new()))
}

fn bearer(message: &[u8], users: &Users) -> Step {
    let token = std::str::from_utf8(message).ok().and_then(|text| {
        text.split('\u{1}')
            .find_map(|part| part.strip_prefix("auth=Bearer "))
    });
    let user = token.and_then(|token| users.by_token(token));
    user.map_or(Step::Refused, |user| Step::Done(user, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Rights;

    fn users() -> Users {
        let users = Users::default();
        users.put("app", "secret", Rights::all_buckets());
        users.accept_token("tok", "app");
        users
    }

    #[test]
    fn plain_takes_the_right_password_only() {
        let start = |message: &[u8]| start(Mechanism::Plain, message, &users());
        assert!(matches!(start(b"\0app\0secret"), Step::Done(..)));
        for bad in [
            &b"\0app\0wrong"[..],
            b"\0nobody\0secret",
            b"app",
            b"",
            b"\0\xff\0x",
        ] {
            assert!(matches!(start(bad), Step::Refused));
        }
    }

    #[test]
    fn bearer_takes_accepted_tokens_only() {
        let start = |message: &[u8]| start(Mechanism::OauthBearer, message, &users());
        assert!(matches!(
            start(b"n,,\x01auth=Bearer tok\x01\x01"),
            Step::Done(..)
        ));
        assert!(matches!(
            start(b"n,,\x01auth=Bearer no\x01\x01"),
            Step::Refused
        ));
        assert!(matches!(start(b""), Step::Refused));
    }

    #[test]
    fn every_listed_mechanism_is_known() {
        for name in Mechanism::LISTED.split(' ') {
            assert!(Mechanism::from_name(name.as_bytes()).is_some(), "{name}");
        }
        assert_eq!(Mechanism::from_name(b"GSSAPI"), None);
    }
}
