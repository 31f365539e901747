//! The three hashes that SCRAM is used with, as values.

use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use steadfast_wire::sasl::Mechanism;
use zeroize::Zeroizing;

/// Which hash an exchange uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha512,
}

/// Bytes that are, or lead to, the password.
pub(super) type Secret = Zeroizing<Vec<u8>>;

impl Hash {
    pub(super) const fn mechanism(self) -> Mechanism {
        match self {
            Self::Sha1 => Mechanism::ScramSha1,
            Self::Sha256 => Mechanism::ScramSha256,
            Self::Sha512 => Mechanism::ScramSha512,
        }
    }

    /// `H` of RFC 5802.
    pub(super) fn digest(self, data: &[u8]) -> Secret {
        Zeroizing::new(match self {
            Self::Sha1 => Sha1::digest(data).to_vec(),
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        })
    }

    /// `HMAC` of RFC 5802.
    pub(super) fn hmac(self, key: &[u8], data: &[u8]) -> Secret {
        match self {
            Self::Sha1 => mac::<Hmac<Sha1>>(key, data),
            Self::Sha256 => mac::<Hmac<Sha256>>(key, data),
            Self::Sha512 => mac::<Hmac<Sha512>>(key, data),
        }
    }

    /// `Hi` of RFC 5802, which is PBKDF2 with one block of output.
    pub(super) fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Secret {
        let out = |length| Zeroizing::new(vec![0; length]);
        match self {
            Self::Sha1 => {
                let mut out = out(Sha1::output_size());
                pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, &mut out);
                out
            }
            Self::Sha256 => {
                let mut out = out(Sha256::output_size());
                pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut out);
                out
            }
            Self::Sha512 => {
                let mut out = out(Sha512::output_size());
                pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, iterations, &mut out);
                out
            }
        }
    }
}

fn mac<M: Mac + hmac::digest::KeyInit>(key: &[u8], data: &[u8]) -> Secret {
    let mut mac = <M as Mac>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    Zeroizing::new(mac.finalize().into_bytes().to_vec())
}
