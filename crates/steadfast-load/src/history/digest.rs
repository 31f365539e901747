//! Digest of bytes that can be concatenated.
//!
//! A model of a text that is appended to would keep the text. This digest of a concatenation is
//! computed from the digests of its parts: a polynomial over a prime field, with the length. Two
//! different texts of a few kilobytes have the same digest with a probability of about 2⁻⁵⁰.

use std::fmt;

/// The field: integers modulo 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;
/// The point at which the polynomial is evaluated: any large number.
const BASE: u64 = 0x0b9c_3f1d_7a52_e86b;

/// The digest of some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Digest {
    hash: u64,
    length: u64,
}

impl Digest {
    /// Computes the digest of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let hash = bytes.iter().fold(0, |hash, byte| {
            // Plus one, so that leading zero bytes count.
            add(multiply(hash, BASE), u64::from(*byte) + 1)
        });
        Self {
            hash,
            length: bytes.len() as u64,
        }
    }

    /// Returns the digest of both texts together.
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            hash: add(multiply(self.hash, power(next.length)), next.hash),
            length: self.length + next.length,
        }
    }

    /// Returns the hash without the length.
    pub(crate) fn hash(self) -> u64 {
        self.hash
    }
}

/// Some digits of the hash, and the length.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:06x} ({} bytes)", self.hash & 0xff_ffff, self.length)
    }
}

fn add(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= PRIME { sum - PRIME } else { sum }
}

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    // Each half is below the prime, or equal to it.
    let (low, high) = ((product as u64) & PRIME, (product >> 61) as u64);
    add(low % PRIME, high % PRIME)
}

fn power(mut exponent: u64) -> u64 {
    let (mut result, mut base) = (1, BASE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_concatenation_comes_from_its_parts() {
        let parts = ["", "a", "\"\"", "0001-000000000001;", "\0", "\0\0"];
        for first in parts {
            for second in parts {
                let both = Digest::of(format!("{first}{second}").as_bytes());
                let parts = Digest::of(first.as_bytes()).then(Digest::of(second.as_bytes()));
                assert_eq!(both, parts, "{first:?} {second:?}");
            }
        }
    }

    #[test]
    fn order_and_length_count() {
        assert_ne!(Digest::of(b"ab"), Digest::of(b"ba"));
        assert_ne!(Digest::of(b"\0"), Digest::of(b"\0\0"));
        assert_ne!(Digest::of(b"abc"), Digest::of(b"ab"));
    }
}
