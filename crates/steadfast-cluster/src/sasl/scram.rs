//! SCRAM (RFC 5802), the server's half, without channel binding.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

use crate::users::{User, Users};

/// The least that RFC 5802 (section 5.1) allows, so that tests do not wait.
const ITERATIONS: u32 = 4096;

/// Which hash an exchange uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScramHash {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// Runs the same expression for the hash that is meant.
macro_rules! with_hash {
    ($hash:expr, $type:ident => $body:expr) => {
        match $hash {
            ScramHash::Sha1 => {
                type $type = Sha1;
                $body
            }
            ScramHash::Sha256 => {
                type $type = Sha256;
                $body
            }
            ScramHash::Sha512 => {
                type $type = Sha512;
                $body
            }
        }
    };
}

impl ScramHash {
    fn digest(self, data: &[u8]) -> Vec<u8> {
        with_hash!(self, Hash => Hash::digest(data).to_vec())
    }

    fn hmac(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        with_hash!(self, Hash => {
            let mut mac = <Hmac<Hash> as KeyInit>::new_from_slice(key)
                .expect("HMAC takes keys of any length");
            mac.update(data);
            mac.finalize().into_bytes().to_vec()
        })
    }

    fn salted_password(self, password: &[u8], salt: &[u8]) -> Vec<u8> {
        with_hash!(self, Hash => {
            let mut out = vec![0; <Hash as Digest>::output_size()];
            pbkdf2::pbkdf2_hmac::<Hash>(password, salt, ITERATIONS, &mut out);
            out
        })
    }
}

/// The keys that the server derives from a password, for one hash.
#[derive(Debug, Clone)]
pub(crate) struct ScramKeys {
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl ScramKeys {
    /// Derives the keys from a password.
    pub(crate) fn derive(hash: ScramHash, password: &[u8], salt: &[u8]) -> Self {
        let salted = hash.salted_password(password, salt);
        Self {
            salt: salt.to_vec(),
            stored_key: hash.digest(&hash.hmac(&salted, b"Client Key")),
            server_key: hash.hmac(&salted, b"Server Key"),
        }
    }
}

/// An exchange that has sent its challenge and waits for the proof.
#[derive(Debug)]
pub(crate) struct ScramServer {
    hash: ScramHash,
    /// Absent for an unknown name; the exchange continues nevertheless, so that it does not
    /// reveal which names exist.
    user: Option<Arc<User>>,
    channel: String,
    nonce: String,
    /// The client's first message and the server's, as the proof covers them.
    transcript: String,
}

impl ScramServer {
    /// Reads the client's first message and makes the challenge.
    pub(crate) fn start(hash: ScramHash, message: &[u8], users: &Users) -> Option<(Self, Vec<u8>)> {
        let message = std::str::from_utf8(message).ok()?;
        let (flag, rest) = message.split_once(',')?;
        let (authorize, bare) = rest.split_once(',')?;
        // Channel binding ("p=…") is not offered, so a client must not require it.
        if !matches!(flag, "n" | "y") {
            return None;
        }
        let (name, client_nonce) = bare.strip_prefix("n=")?.split_once(",r=")?;
        let client_nonce = client_nonce
            .split(',')
            .next()
            .filter(|nonce| !nonce.is_empty())?;
        let user = users.get(&name.replace("=2C", ",").replace("=3D", "="));
        let salt = match &user {
            Some(user) => user.scram_keys(hash).salt.clone(),
            None => ScramHash::Sha256.digest(name.as_bytes())[..16].to_vec(),
        };
        let nonce = format!(
            "{client_nonce}{}",
            STANDARD.encode(steadfast_os::random::bytes::<18>())
        );
        let challenge = format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(salt));
        let server = Self {
            hash,
            user,
            channel: STANDARD.encode(format!("{flag},{authorize},")),
            nonce,
            transcript: format!("{bare},{challenge}"),
        };
        Some((server, challenge.into_bytes()))
    }

    /// Checks the client's proof; the user, and the server's own proof to send back.
    pub(crate) fn finish(self, message: &[u8]) -> Option<(Arc<User>, Vec<u8>)> {
        let message = std::str::from_utf8(message).ok()?;
        let (without_proof, proof) = message.rsplit_once(",p=")?;
        let mut parts = without_proof.split(',');
        let channel = parts.next()?.strip_prefix("c=")?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        if channel != self.channel || nonce != self.nonce {
            return None;
        }
        let user = self.user?;
        let keys = user.scram_keys(self.hash);
        let transcript = format!("{},{without_proof}", self.transcript);
        let signature = self.hash.hmac(&keys.stored_key, transcript.as_bytes());
        let mut client_key = STANDARD.decode(proof).ok()?;
        if client_key.len() != signature.len() {
            return None;
        }
        client_key
            .iter_mut()
            .zip(&signature)
            .for_each(|(byte, mask)| *byte ^= mask);
        let is_right: bool = self.hash.digest(&client_key).ct_eq(&keys.stored_key).into();
        let verifier = self.hash.hmac(&keys.server_key, transcript.as_bytes());
        is_right.then(|| {
            (
                user.clone(),
                format!("v={}", STANDARD.encode(verifier)).into_bytes(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Rights;

    /// The client's half, as far as a test needs it.
    fn exchange(hash: ScramHash, name: &str, password: &str) -> Option<Arc<User>> {
        let users = Users::default();
        users.put("a,b", "secret", Rights::all_buckets());
        let bare = format!("n={name},r=nonce with spaces");
        let (server, challenge) =
            ScramServer::start(hash, format!("n,,{bare}").as_bytes(), &users)?;
        let challenge = String::from_utf8(challenge).unwrap();
        let part = |tag: &str| {
            challenge
                .split(',')
                .find_map(|part| part.strip_prefix(tag))
                .unwrap()
                .to_owned()
        };
        let without_proof = format!("c=biws,r={}", part("r="));
        let transcript = format!("{bare},{challenge},{without_proof}");
        let salted =
            hash.salted_password(password.as_bytes(), &STANDARD.decode(part("s=")).unwrap());
        let client_key = hash.hmac(&salted, b"Client Key");
        let signature = hash.hmac(&hash.digest(&client_key), transcript.as_bytes());
        let proof: Vec<u8> = client_key
            .iter()
            .zip(&signature)
            .map(|(a, b)| a ^ b)
            .collect();
        let last = format!("{without_proof},p={}", STANDARD.encode(proof));
        let (user, verifier) = server.finish(last.as_bytes())?;
        let expected = hash.hmac(&hash.hmac(&salted, b"Server Key"), transcript.as_bytes());
        assert_eq!(
            verifier,
            format!("v={}", STANDARD.encode(expected)).into_bytes()
        );
        Some(user)
    }

    #[test]
    fn the_right_password_is_proved_with_every_hash() {
        for hash in [ScramHash::Sha1, ScramHash::Sha256, ScramHash::Sha512] {
            assert_eq!(exchange(hash, "a=2Cb", "secret").unwrap().name, "a,b");
            assert!(exchange(hash, "a=2Cb", "wrong").is_none());
            assert!(exchange(hash, "nobody", "secret").is_none());
        }
    }

    #[test]
    fn the_keys_are_those_of_rfc_5802() {
        // The example of section 5: user "user", password "pencil".
        let salt = STANDARD.decode("QSXCR+Q6sek8bf92").unwrap();
        let keys = ScramKeys::derive(ScramHash::Sha1, b"pencil", &salt);
        let transcript = "n=user,r=fyko+d2lbbFgONRv9qkxdawL,\
            r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096,\
            c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j";
        let verifier = ScramHash::Sha1.hmac(&keys.server_key, transcript.as_bytes());
        assert_eq!(STANDARD.encode(verifier), "rmF9pqV8S7suAoZWja4dJRkFsKQ=");
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let users = Users::default();
        for bad in [
            &b""[..],
            b"n",
            b"n,",
            b"n,,",
            b"n,,n=x",
            b"n,,n=x,r=",
            b"p=x,,n=x,r=y",
            b"\xff",
        ] {
            assert!(ScramServer::start(ScramHash::Sha1, bad, &users).is_none());
        }
        for bad in [&b""[..], b"c=biws", b"c=biws,r=x,p=y", b"\xff", b",p="] {
            let (server, _) = ScramServer::start(ScramHash::Sha1, b"n,,n=x,r=y", &users).unwrap();
            assert!(server.finish(bad).is_none());
        }
    }
}
