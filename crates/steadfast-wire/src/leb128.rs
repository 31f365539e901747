//! Unsigned LEB128, the encoding of the collection id in front of a document key.
//!
//! Seven bits a byte, the lowest first, the top bit set on all but the last. Only the shortest
//! form of a number is accepted: a key with a second spelling of its collection id would be a
//! second key to whoever compares bytes.

/// The most bytes that a 32-bit number takes.
pub const MAX_LEN: usize = 5;

/// A number in its encoded form, on the stack.
///
/// ```
/// assert_eq!(steadfast_wire::leb128::encode(0x555).as_ref(), [0xd5, 0x0a]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leb128 {
    bytes: [u8; MAX_LEN],
    len: u8,
}

impl AsRef<[u8]> for Leb128 {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Why bytes are not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Leb128Error {
    /// The bytes end before the number does.
    #[error("LEB128: the number goes on where the bytes end")]
    Truncated,
    /// The number has a shorter form, which is the only one allowed.
    #[error("LEB128: the number is not in its shortest form")]
    NotCanonical,
    /// The number needs more than 32 bits.
    #[error("LEB128: the number does not fit 32 bits")]
    TooLarge,
}

/// Encodes a number.
#[inline]
pub const fn encode(mut value: u32) -> Leb128 {
    let mut bytes = [0; MAX_LEN];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    Leb128 {
        bytes,
        len: len as u8 + 1,
    }
}

/// Returns the number of bytes of [`encode`].
#[inline]
pub const fn encoded_len(value: u32) -> usize {
    // Zero has no significant bit and still takes a byte.
    if value < 0x80 {
        return 1;
    }
    (32 - value.leading_zeros()).div_ceil(7) as usize
}

/// The number that `bytes` start with, and what follows it.
///
/// # Errors
/// If there is no whole number, it is not in its shortest form, or exceeds 32 bits.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<(u32, &[u8]), Leb128Error> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(MAX_LEN).enumerate() {
        // The fifth byte has room for the top four bits only, and nothing may follow it.
        if index == MAX_LEN - 1 && byte > 0x0f {
            return Err(Leb128Error::TooLarge);
        }
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return if byte == 0 && index > 0 {
                Err(Leb128Error::NotCanonical)
            } else {
                Ok((value, &bytes[index + 1..]))
            };
        }
    }
    Err(Leb128Error::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VECTORS: [(u32, &[u8]); 7] = [
        (0x00, &[0x00]),
        (0x7f, &[0x7f]),
        (0x80, &[0x80, 0x01]),
        (0x555, &[0xd5, 0x0a]),
        (0xffff, &[0xff, 0xff, 0x03]),
        (0xcafe_f00d, &[0x8d, 0xe0, 0xfb, 0xd7, 0x0c]),
        (0xffff_ffff, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
    ];

    #[test]
    fn the_published_vectors_hold_both_ways() {
        for (value, bytes) in VECTORS {
            assert_eq!(encode(value).as_ref(), bytes);
            assert_eq!(encoded_len(value), bytes.len());
            assert_eq!(decode(bytes), Ok((value, &[][..])));
        }
    }

    #[test]
    fn what_is_cut_off_too_long_or_too_large_is_rejected() {
        use Leb128Error::{NotCanonical, TooLarge, Truncated};
        for (bytes, error) in [
            (&[][..], Truncated),
            (&[0x80], Truncated),
            (&[0xff, 0xff, 0xff, 0xff], Truncated),
            (&[0x80, 0x00], NotCanonical),
            (&[0xff, 0x00], NotCanonical),
            (&[0x81, 0x80, 0x00], NotCanonical),
            (&[0x80, 0x80, 0x80, 0x80, 0x00], NotCanonical),
            (&[0xff, 0xff, 0xff, 0xff, 0x1f], TooLarge),
            (&[0x80, 0x80, 0x80, 0x80, 0x80], TooLarge),
        ] {
            assert_eq!(decode(bytes), Err(error), "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn any_number_round_trips_and_leaves_what_follows(value: u32, rest: Vec<u8>) {
            let mut bytes = encode(value).as_ref().to_vec();
            prop_assert_eq!(bytes.len(), encoded_len(value));
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(decode(&bytes), Ok((value, &rest[..])));
        }

        #[test]
        fn what_decodes_is_the_one_spelling_of_its_number(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
            if let Ok((value, rest)) = decode(&bytes) {
                let spelled = encode(value);
                prop_assert_eq!(spelled.as_ref(), &bytes[..bytes.len() - rest.len()]);
            }
        }
    }
}
