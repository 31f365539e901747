//! Hashes the keys of documents.
//!
//! A key is hashed several times for each command, and the hash of std takes as long as a
//! response takes to encode. This one multiplies eight bytes at a time. It starts with a random
//! number, so that a client cannot choose keys that collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use bytes::Bytes;

/// A map by the key of a document, with its collection in front.
pub(crate) type KeyMap<V> = HashMap<Bytes, V, KeyHash>;

/// Odd, with as many ones as zeros: the fraction of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Makes hashers that start with the random number of the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHash {
    seed: u64,
}

impl Default for KeyHash {
    fn default() -> Self {
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(FACTOR));
        Self { seed: *SEED }
    }
}

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { state: self.seed }
    }
}

pub(crate) struct KeyHasher {
    state: u64,
}

impl KeyHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(FACTOR);
        self.state = product as u64 ^ (product >> u64::BITS) as u64;
    }
}

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        if rest.is_empty() {
            return;
        }
        // The length is hashed as well, so the last word may repeat bytes of the one before.
        self.add(match bytes.last_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte)),
        });
    }

    #[inline]
    fn write_usize(&mut self, length: usize) {
        self.add(length as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_that_differ_a_little_have_different_hashes() {
        let hash = KeyHash::default();
        let numbers = 0..10_000;
        let keys = numbers.flat_map(|number| {
            [
                format!("\0{number}"),
                format!("\0user:{number:06}"),
                format!("\0{number:030}"),
                format!("\0{number:\0<30}"),
            ]
        });
        let keys: HashSet<Vec<u8>> = keys.map(String::into_bytes).collect();
        // The parts that a map looks at: the upper seven bits, and the lower ones.
        let hashes: HashSet<u64> = keys.iter().map(|key| hash.hash_one(&key[..])).collect();
        assert_eq!(hashes.len(), keys.len());
        let mut slots = vec![0_u32; 1024];
        for hash in hashes {
            slots[(hash % 1024) as usize] += 1;
        }
        let (least, most) = (slots.iter().min(), slots.iter().max());
        assert!(least > Some(&10) && most < Some(&80), "{least:?} {most:?}");
    }

    #[test]
    fn bytes_and_slices_have_the_same_hash() {
        let hash = KeyHash::default();
        for len in 0..40 {
            let key = vec![7; len];
            let bytes = Bytes::from(key.clone());
            assert_eq!(hash.hash_one(&bytes), hash.hash_one(&key[..]));
        }
    }
}
