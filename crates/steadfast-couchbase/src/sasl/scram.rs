//! SCRAM (RFC 5802), the client's half, without channel binding.
//!
//! Names and passwords are taken as they are: the server does not normalise them
//! (its documentation says that it does without SASLprep), so a client that did
//! would be refused with a password that PLAIN lets in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::SaslError;
use super::salted::{Hash, Secret};
use crate::credentials::{CredentialKind, Credentials, Password};

/// Fewer would make a stolen exchange easy to guess the password from. Servers
/// have been shipped with 4000, so the 4096 of RFC 5802 would be too many to ask.
pub(super) const LEAST_ITERATIONS: u32 = 1000;

/// More would let a server that has proved nothing yet keep this machine busy:
/// this many take about a second. Servers ask for some thousands, which take
/// some milliseconds.
pub(super) const MOST_ITERATIONS: u32 = 1_000_000;

/// The longest salt or nonce that is accepted.
const MOST_BYTES: usize = 1024;

/// The header of a client without channel binding; sent again in Base64.
const HEADER: &str = "n,,";

/// An exchange under way.
pub(super) struct Scram {
    hash: Hash,
    credentials: Credentials,
    state: ScramState,
}

enum ScramState {
    /// The first message was sent.
    First {
        nonce: String,
        /// It, without its header, as the proof covers it.
        bare: String,
    },
    /// The proof was sent, and the server is to answer with this.
    Proved { signature: Secret },
}

impl Scram {
    /// The first message, with a random nonce.
    pub(super) fn begin(
        hash: Hash,
        credentials: &Credentials,
    ) -> Result<(Self, Vec<u8>), SaslError> {
        let mut nonce = [0; 24];
        steadfast_os::random::fill(&mut nonce).map_err(SaslError::Randomness)?;
        Self::begin_with(hash, credentials, STANDARD.encode(nonce))
    }

    /// The first message, with this nonce.
    pub(super) fn begin_with(
        hash: Hash,
        credentials: &Credentials,
        nonce: String,
    ) -> Result<(Self, Vec<u8>), SaslError> {
        let user = password_of(credentials, hash)?
            .user
            .replace('=', "=3D")
            .replace(',', "=2C");
        let bare = format!("n={user},r={nonce}");
        let first = format!("{HEADER}{bare}").into_bytes();
        let scram = Self {
            hash,
            credentials: credentials.clone(),
            state: ScramState::First { nonce, bare },
        };
        Ok((scram, first))
    }

    /// The proof that the client knows the password.
    pub(super) fn answer(&mut self, server: &[u8]) -> Result<Vec<u8>, SaslError> {
        let hash = self.hash;
        let ScramState::First { nonce, bare } = &self.state else {
            return Err(SaslError::OutOfTurn(hash.mechanism()));
        };
        let server = text(server)?;
        let challenge = Challenge::read(server, nonce)?;
        let Password {
            password, salted, ..
        } = password_of(&self.credentials, hash)?;
        let salted = salted.get(
            hash,
            password.as_bytes(),
            &challenge.salt,
            challenge.iterations,
        );
        let salted = salted.get().expect("it was derived, or waited for, above");

        let without_proof = format!("c={},r={}", STANDARD.encode(HEADER), challenge.nonce);
        let transcript = format!("{bare},{server},{without_proof}");
        let client_key = hash.hmac(salted, b"Client Key");
        let mut proof = hash.hmac(&hash.digest(&client_key), transcript.as_bytes());
        proof
            .iter_mut()
            .zip(client_key.iter())
            .for_each(|(byte, key)| *byte ^= key);
        let server_key = hash.hmac(salted, b"Server Key");
        let signature = hash.hmac(&server_key, transcript.as_bytes());
        self.state = ScramState::Proved { signature };
        Ok(format!("{without_proof},p={}", STANDARD.encode(&*proof)).into_bytes())
    }

    /// Checks the server's own proof.
    pub(super) fn finish(self, server: &[u8]) -> Result<(), SaslError> {
        // Who says "welcome" before the proofs were exchanged has proved nothing.
        let ScramState::Proved { signature } = self.state else {
            return Err(SaslError::Signature);
        };
        let server = text(server)?;
        if server.starts_with("e=") {
            return Err(SaslError::BrokenOff);
        }
        let verifier = server
            .split(',')
            .next()
            .and_then(|part| part.strip_prefix("v="))
            .ok_or(SaslError::Malformed("last message has no verifier"))?;
        let verifier = decode(verifier, "verifier is not Base64")?;
        if bool::from(verifier.ct_eq(&signature)) {
            Ok(())
        } else {
            Err(SaslError::Signature)
        }
    }
}

/// The server's first message.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> Challenge<'a> {
    fn read(message: &'a str, client_nonce: &str) -> Result<Self, SaslError> {
        if message.starts_with("e=") {
            return Err(SaslError::BrokenOff);
        }
        // Extensions may follow; one that must be understood comes first and is
        // then in the nonce's place (RFC 5802, section 5.1, "m").
        let mut parts = message.split(',');
        let mut part = |prefix, problem| {
            parts
                .next()
                .and_then(|part| part.strip_prefix(prefix))
                .filter(|part| part.len() <= MOST_BYTES)
                .ok_or(SaslError::Malformed(problem))
        };
        let nonce: &str = part("r=", "first message does not begin with a nonce")?;
        let salt = part("s=", "first message has no salt")?;
        let iterations = part("i=", "first message has no iteration count")?;
        if !nonce.starts_with(client_nonce) || nonce.len() == client_nonce.len() {
            return Err(SaslError::Nonce);
        }
        let salt = decode(salt, "salt is not Base64")?;
        if salt.is_empty() {
            return Err(SaslError::Malformed("salt is empty"));
        }
        let asked = iterations
            .parse()
            .map_err(|_| SaslError::Malformed("iteration count is not a number"))?;
        if !(LEAST_ITERATIONS..=MOST_ITERATIONS).contains(&asked) {
            return Err(SaslError::Iterations {
                asked,
                least: LEAST_ITERATIONS,
                most: MOST_ITERATIONS,
            });
        }
        Ok(Self {
            nonce,
            salt,
            iterations: asked,
        })
    }
}

fn password_of(credentials: &Credentials, hash: Hash) -> Result<&Password, SaslError> {
    match credentials.kind() {
        CredentialKind::Password(password) => Ok(password),
        CredentialKind::Token(_) | CredentialKind::Certificate(_) => {
            Err(SaslError::Unsuited(hash.mechanism()))
        }
    }
}

fn text(message: &[u8]) -> Result<&str, SaslError> {
    std::str::from_utf8(message).map_err(|_| SaslError::Malformed("message is not text"))
}

fn decode(text: &str, problem: &'static str) -> Result<Vec<u8>, SaslError> {
    STANDARD
        .decode(text)
        .map_err(|_| SaslError::Malformed(problem))
}

#[cfg(fuzzing)]
pub(super) mod fuzzing;
#[cfg(test)]
mod tests;
