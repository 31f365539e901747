//! The hashes of SCRAM, and a cache of salted passwords.
//!
//! Deriving a salted password is slow by design: thousands of rounds of hashing.
//! All nodes have the same salt for a user, so the first connection's result serves
//! all. A client that lost all its connections reconnects without a burst of
//! computing.

use std::sync::{Arc, OnceLock};

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use steadfast_wire::sasl::Mechanism;
use zeroize::Zeroizing;

/// The number of keys kept. Honest servers use one salt for each hash; a server with
/// ever new salts only evicts entries.
const CAPACITY: usize = 8;

/// The keys derived from one password, which the caller keeps.
#[derive(Default)]
pub(crate) struct SaltedPasswords {
    /// The oldest first.
    known: Mutex<Vec<SaltedPassword>>,
}

struct SaltedPassword {
    hash: Hash,
    salt: Box<[u8]>,
    iterations: u32,
    /// Derived outside the lock by the first caller; the others wait for it.
    salted: Arc<OnceLock<Secret>>,
}

impl SaltedPasswords {
    /// The salted password, remembered or derived.
    pub(super) fn get(
        &self,
        hash: Hash,
        password: &[u8],
        salt: &[u8],
        iterations: u32,
    ) -> Arc<OnceLock<Secret>> {
        let cell = self.cell(hash, salt, iterations);
        cell.get_or_init(|| hash.salted(password, salt, iterations));
        cell
    }

    fn cell(&self, hash: Hash, salt: &[u8], iterations: u32) -> Arc<OnceLock<Secret>> {
        let mut known = self.known.lock();
        let same = |entry: &&SaltedPassword| {
            entry.hash == hash && entry.iterations == iterations && *entry.salt == *salt
        };
        if let Some(entry) = known.iter().find(same) {
            return Arc::clone(&entry.salted);
        }
        if known.len() == CAPACITY {
            known.remove(0);
        }
        let salted = Arc::new(OnceLock::new());
        known.push(SaltedPassword {
            hash,
            salt: salt.into(),
            iterations,
            salted: Arc::clone(&salted),
        });
        salted
    }
}

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

    fn output_size(self) -> usize {
        match self {
            Self::Sha1 => Sha1::output_size(),
            Self::Sha256 => Sha256::output_size(),
            Self::Sha512 => Sha512::output_size(),
        }
    }

    /// `Hi` of RFC 5802, which is PBKDF2 with one block of output.
    pub(super) fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Secret {
        let mut out = Zeroizing::new(vec![0; self.output_size()]);
        match self {
            Self::Sha1 => pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, &mut out),
            Self::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut out),
            Self::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, iterations, &mut out),
        }
        out
    }
}

fn mac<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Secret {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    Zeroizing::new(mac.finalize().into_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salted_passwords_are_cached_by_all_their_inputs() {
        let passwords = SaltedPasswords::default();
        let get = |hash, salt: &[u8], iterations| passwords.get(hash, b"pencil", salt, iterations);
        let first = get(Hash::Sha256, b"salt", 10);
        assert!(Arc::ptr_eq(&first, &get(Hash::Sha256, b"salt", 10)));
        for other in [
            get(Hash::Sha512, b"salt", 10),
            get(Hash::Sha256, b"tlas", 10),
            get(Hash::Sha256, b"salt", 11),
        ] {
            assert_ne!(first.get(), other.get());
        }
    }

    #[test]
    fn a_server_with_a_new_salt_each_time_fills_no_memory() {
        let passwords = SaltedPasswords::default();
        for salt in 0..100_u8 {
            passwords.get(Hash::Sha1, b"pencil", &[salt], 1);
        }
        assert_eq!(passwords.known.lock().len(), CAPACITY);
    }
}
