//! SASL authentication without I/O, client side.
//!
//! An [`Exchange`] takes what the server sent and returns what to send next:
//!
//! ```text
//!   begin ──▶ first message ──▶ SASL_AUTH
//!                                  │ 0x21, more is needed
//!   answer ◀── the server's first ◀┘
//!      └─────▶ next message ───▶ SASL_STEP
//!                                  │ 0x00, welcome
//!   finish ◀── the server's last ◀─┘
//! ```
//!
//! `finish` matters as much as the rest: with SCRAM the server proves there that
//! it knows the password too, and a server that skips its proof is not the
//! cluster. What the server sends is not trusted before that: its messages are
//! read with bounds and cannot make the client work for long ([`scram`]).
//!
//! A rejection of the credentials is not a [`SaslError`] but a status (0x20; decision
//! D3 in docs/decisions.md). A [`SaslError`] is an exchange that cannot continue.

mod choose;
mod error;
mod salted;
mod scram;

use steadfast_wire::Encode;
use steadfast_wire::sasl::{Mechanism, OauthBearer, Plain};

pub(crate) use choose::{Channel, choose, preferred};
pub(crate) use error::SaslError;
pub(crate) use salted::SaltedPasswords;
#[cfg(fuzzing)]
pub use scram::fuzzing::scram as fuzz_scram;

use crate::credentials::{CredentialKind, Credentials};
use salted::Hash;
use scram::Scram;

/// Ends an OAUTHBEARER exchange that the server rejects, so that it can answer with a
/// status (RFC 7628, section 3.2.3).
const BEARER_GIVES_UP: &[u8] = b"\x01";

/// One authentication on one connection.
pub(crate) struct Exchange {
    state: ExchangeState,
}

enum ExchangeState {
    /// Everything was said in the first message.
    Said(Mechanism),
    /// The server rejected the token, and the client has acknowledged it.
    TokenRefused,
    Scram(Scram),
}

impl Exchange {
    /// Begins one; the message is the value of SASL_AUTH.
    ///
    /// # Errors
    /// If the mechanism cannot use such credentials, or the credentials cannot be
    /// sent at all.
    pub(crate) fn begin(
        mechanism: Mechanism,
        credentials: &Credentials,
    ) -> Result<(Self, Vec<u8>), SaslError> {
        let hash = match (mechanism, credentials.kind()) {
            (Mechanism::ScramSha512, CredentialKind::Password(_)) => Hash::Sha512,
            (Mechanism::ScramSha256, CredentialKind::Password(_)) => Hash::Sha256,
            (Mechanism::ScramSha1, CredentialKind::Password(_)) => Hash::Sha1,
            (Mechanism::Plain, CredentialKind::Password(password)) => {
                return Self::said(mechanism, Plain::new(&password.user, &password.password));
            }
            (Mechanism::OauthBearer, CredentialKind::Token(token)) => {
                return Self::said(mechanism, OauthBearer { token });
            }
            (
                Mechanism::ScramSha512
                | Mechanism::ScramSha256
                | Mechanism::ScramSha1
                | Mechanism::Plain,
                CredentialKind::Token(_) | CredentialKind::Certificate(_),
            )
            | (
                Mechanism::OauthBearer,
                CredentialKind::Password(_) | CredentialKind::Certificate(_),
            ) => {
                return Err(SaslError::Unsuited(mechanism));
            }
        };
        let (scram, first) = Scram::begin(hash, credentials)?;
        let state = ExchangeState::Scram(scram);
        Ok((Self { state }, first))
    }

    /// Answers a server that wants to hear more; the message is the value of
    /// SASL_STEP.
    ///
    /// With SCRAM the keys are derived here, which takes some milliseconds of
    /// computing the first time; see [`scram::MOST_ITERATIONS`].
    ///
    /// # Errors
    /// If the server's message is none of this mechanism, or asks for something
    /// that no honest server asks for.
    pub(crate) fn answer(&mut self, server: &[u8]) -> Result<Vec<u8>, SaslError> {
        match &mut self.state {
            ExchangeState::Scram(scram) => scram.answer(server),
            ExchangeState::Said(Mechanism::OauthBearer) => {
                self.state = ExchangeState::TokenRefused;
                Ok(BEARER_GIVES_UP.to_vec())
            }
            ExchangeState::Said(mechanism) => Err(SaslError::OutOfTurn(*mechanism)),
            ExchangeState::TokenRefused => Err(SaslError::OutOfTurn(Mechanism::OauthBearer)),
        }
    }

    /// Checks the last message of a server that says that all is well.
    ///
    /// # Errors
    /// If the server did not prove that it knows the password, although the
    /// mechanism has it do so.
    pub(crate) fn finish(self, server: &[u8]) -> Result<(), SaslError> {
        match self.state {
            ExchangeState::Scram(scram) => scram.finish(server),
            ExchangeState::Said(_) => Ok(()),
            ExchangeState::TokenRefused => Err(SaslError::OutOfTurn(Mechanism::OauthBearer)),
        }
    }

    fn said(mechanism: Mechanism, message: impl Encode) -> Result<(Self, Vec<u8>), SaslError> {
        let mut first = bytes::BytesMut::new();
        message
            .append_to(&mut first)
            .map_err(SaslError::Unsendable)?;
        let state = ExchangeState::Said(mechanism);
        Ok((Self { state }, first.to_vec()))
    }
}

#[cfg(test)]
mod tests;
