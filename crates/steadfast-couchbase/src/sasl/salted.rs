//! Salted passwords that were derived before.
//!
//! Deriving one is meant to be slow: thousands of rounds of hashing. Every node
//! of a cluster has the same salt for a user, and a node keeps it, so after the
//! first connection the answer is known. A client that lost all its connections
//! at once can then come back without a burst of computing.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::hash::{Hash, Secret};

/// How many are remembered; salts in honest use are one for each hash. A server
/// that sends another salt each time only makes the client forget.
const CAPACITY: usize = 8;

/// What was derived from one password; the password itself is the caller's to
/// hold beside it.
#[derive(Default)]
pub(crate) struct SaltedPasswords {
    /// The oldest first.
    known: Mutex<Vec<Entry>>,
}

struct Entry {
    hash: Hash,
    salt: Box<[u8]>,
    iterations: u32,
    /// Filled outside the lock, by the first who asks; the others wait for it, as
    /// deriving it themselves would take as long.
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
        let same = |entry: &&Entry| {
            entry.hash == hash && entry.iterations == iterations && *entry.salt == *salt
        };
        if let Some(entry) = known.iter().find(same) {
            return Arc::clone(&entry.salted);
        }
        if known.len() == CAPACITY {
            known.remove(0);
        }
        let salted = Arc::new(OnceLock::new());
        known.push(Entry {
            hash,
            salt: salt.into(),
            iterations,
            salted: Arc::clone(&salted),
        });
        salted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_is_answered_from_memory_and_another_one_is_not() {
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
