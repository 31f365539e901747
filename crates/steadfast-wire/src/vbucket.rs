//! The hash from a key to its vbucket.

use std::sync::LazyLock;

use crc32fast::Hasher;

/// The vbucket of a document, of `count` that there are.
///
/// `id` is the document's key *without* the collection prefix: a document of the same name is in
/// the same vbucket whatever its collection.
///
/// # Panics
/// Never, but with `count` zero the answer is zero and means nothing.
///
/// ```
/// assert_eq!(steadfast_wire::vbucket::of_key(b"hello", 1024), 0x210);
/// ```
#[inline]
pub fn of_key(id: &[u8], count: u16) -> u16 {
    // It looks for features of the processor when it is made, which takes as long as a key.
    static HASHER: LazyLock<Hasher> = LazyLock::new(Hasher::new);
    let mut hasher = HASHER.clone();
    hasher.update(id);
    // Fifteen bits fit a u16 by construction.
    let hash = ((hasher.finalize() >> 16) & 0x7fff) as u16;
    hash.checked_rem(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_hold() {
        let long = b"hello world, I am a super long key lets see if it works";
        for (key, expected) in [
            (&[0][..], 0x202),
            (&[0, 1, 2, 3, 4, 5, 6, 7], 0x0aa),
            (b"hello", 0x210),
            (long, 0x3d4),
            (b"foo", 0x073),
        ] {
            assert_eq!(of_key(key, 1024), expected, "{key:02x?}");
        }
    }

    #[test]
    fn every_vbucket_is_below_the_count_and_the_hash_has_fifteen_bits() {
        for count in [1, 2, 64, 1000, 1024, u16::MAX] {
            let all = (0..2000_u32).map(|key| of_key(&key.to_be_bytes(), count));
            let greatest = all.max().unwrap();
            assert!(greatest < count.min(0x8000), "{greatest} of {count}");
        }
    }

    #[test]
    fn no_vbuckets_is_no_panic() {
        assert_eq!(of_key(b"foo", 0), 0);
    }
}
