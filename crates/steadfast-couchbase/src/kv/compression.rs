//! Compresses a value once for all attempts.
//!
//! The connection of an attempt decides whether the value is sent compressed. The
//! compressed bytes are the same for every connection, so retries reuse them.

use steadfast_wire::snappy::Compressor;

use crate::options::Compression;

/// The compressed form of a value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum CompressedValue {
    /// The operation does not allow compression.
    #[default]
    NotAllowed,
    /// No connection has asked for it yet.
    NotTried,
    /// Compression saved too little.
    NotWorthIt,
    /// The compressed bytes.
    Compressed(Vec<u8>),
}

impl CompressedValue {
    #[inline]
    pub(super) fn new(allowed: bool) -> Self {
        match allowed {
            true => Self::NotTried,
            false => Self::NotAllowed,
        }
    }

    /// Compresses the value, unless that was tried before.
    #[inline]
    pub(super) fn compress(&mut self, value: &[u8], compression: Compression) {
        if *self == Self::NotTried {
            *self = try_compress(value, compression);
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Compressed(bytes) => Some(bytes),
            Self::NotAllowed | Self::NotTried | Self::NotWorthIt => None,
        }
    }
}

fn try_compress(value: &[u8], compression: Compression) -> CompressedValue {
    let compressed = match compression {
        Compression::Off => None,
        // Making a compressor costs more than looking at the length.
        Compression::Snappy { min_size, .. } if value.len() < min_size => None,
        Compression::Snappy {
            min_size,
            max_ratio,
        } => Compressor::new(min_size, max_ratio.into()).compress(value),
    };
    compressed.map_or(CompressedValue::NotWorthIt, CompressedValue::Compressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_compressed_if_allowed_and_worth_it() {
        let dull = vec![b'a'; 4096];
        let mut value = CompressedValue::NotAllowed;
        value.compress(&dull, Compression::default());
        assert_eq!(value, CompressedValue::NotAllowed);

        let mut value = CompressedValue::NotTried;
        value.compress(&dull, Compression::default());
        let compressed = value.bytes().expect("it shrinks").to_vec();
        assert!(compressed.len() < 400);
        assert_eq!(
            steadfast_wire::snappy::decompress(&compressed, 4096),
            Ok(dull.clone())
        );

        for (bytes, compression) in [
            (&dull[..31], Compression::default()),
            (&dull[..], Compression::Off),
            (
                b"abcdefghijklmnopqrstuvwxyz0123456789",
                Compression::default(),
            ),
        ] {
            let mut value = CompressedValue::NotTried;
            value.compress(bytes, compression);
            assert_eq!(value, CompressedValue::NotWorthIt);
        }
    }

    #[test]
    fn compression_is_tried_once() {
        let mut value = CompressedValue::NotWorthIt;
        value.compress(&[b'a'; 4096], Compression::default());
        assert_eq!(value, CompressedValue::NotWorthIt);
        let mut value = CompressedValue::Compressed(b"as it was".to_vec());
        value.compress(&[b'a'; 4096], Compression::default());
        assert_eq!(value.bytes(), Some(&b"as it was"[..]));
    }
}
