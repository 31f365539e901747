//! Compressed values, in Snappy's raw format.
//!
//! A compressed value starts with the length that it will have, so what a peer claims is judged
//! before any memory is made for it.

use bytes::Bytes;

use crate::{Datatype, Frame};

/// Why a value cannot be decompressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnappyError {
    /// It would be larger than allowed.
    #[error("a compressed value claims {len} bytes, more than the {max} that are allowed")]
    TooLong {
        /// The length that it claims.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// It is not compressed data.
    #[error("a compressed value is corrupt: {0}")]
    Corrupt(#[from] snap::Error),
}

/// Decompresses a value of at most `max` bytes.
///
/// # Errors
/// If it claims to be longer, or is corrupt.
pub fn decompress(compressed: &[u8], max: usize) -> Result<Vec<u8>, SnappyError> {
    let len = snap::raw::decompress_len(compressed)?;
    if len > max {
        return Err(SnappyError::TooLong { len, max });
    }
    Ok(snap::raw::Decoder::new().decompress_vec(compressed)?)
}

impl Frame {
    /// The value as it was before it was compressed, if it was. Shares the receive buffer if not.
    ///
    /// # Errors
    /// If it is compressed, and longer than `max` or corrupt.
    pub fn plain_value(&self, max: usize) -> Result<Bytes, SnappyError> {
        if self.header().datatype.contains(Datatype::SNAPPY) {
            decompress(self.value(), max).map(Bytes::from)
        } else {
            Ok(self.value_bytes())
        }
    }
}

/// Compresses values that become small enough. Keeps its working memory between values.
#[derive(Debug)]
pub struct Compressor {
    encoder: snap::raw::Encoder,
    min_len: usize,
    max_ratio: f64,
}

impl Compressor {
    /// Values shorter than `min_len` are left alone, and so are those of which more than
    /// `max_ratio` would remain.
    pub fn new(min_len: usize, max_ratio: f64) -> Self {
        Self {
            encoder: snap::raw::Encoder::new(),
            min_len,
            max_ratio,
        }
    }

    /// Returns the compressed value, or `None` if it does not become small enough or is too long.
    pub fn compress(&mut self, value: &[u8]) -> Option<Vec<u8>> {
        if value.len() < self.min_len {
            return None;
        }
        let compressed = self.encoder.compress_vec(value).ok()?;
        (compressed.len() as f64 <= value.len() as f64 * self.max_ratio).then_some(compressed)
    }
}

/// Compresses as the Couchbase clients do: from 32 bytes, if at most 83 % remain.
impl Default for Compressor {
    fn default() -> Self {
        Self::new(32, 0.83)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;
    use crate::{Decoded, FrameBuilder, FrameDecoder, Opcode};

    #[test]
    fn a_length_beyond_the_limit_is_rejected_before_memory_is_allocated() {
        // A length of 4 GiB less one, and nothing else.
        let bomb = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(
            decompress(&bomb, 1000),
            Err(SnappyError::TooLong {
                len: 0xffff_ffff,
                max: 1000
            })
        );
        assert!(matches!(
            decompress(&bomb[..2], 1000),
            Err(SnappyError::Corrupt(_))
        ));
    }

    #[test]
    fn small_values_and_noise_are_left_alone() {
        let mut compressor = Compressor::default();
        assert_eq!(compressor.compress(&[b'a'; 31]), None);
        assert!(compressor.compress(&[b'a'; 32]).is_some());
        let noise: Vec<u8> = (0..200_u32)
            .flat_map(|i| crc32fast::hash(&i.to_be_bytes()).to_be_bytes())
            .collect();
        assert_eq!(compressor.compress(&noise), None);
    }

    #[test]
    fn a_frame_gives_its_plain_value_whether_compressed_or_not() {
        let plain = [b'a'; 100];
        let compressed = Compressor::default().compress(&plain).unwrap();
        for (datatype, value) in [(Datatype::RAW, &plain[..]), (Datatype::SNAPPY, &compressed)] {
            let mut buffer = BytesMut::new();
            let frame = FrameBuilder::request(Opcode::Set)
                .datatype(datatype)
                .value(value);
            frame.encode(&mut buffer).unwrap();
            let Ok(Decoded::Frame(frame)) = FrameDecoder::from_client().decode(&mut buffer) else {
                panic!("a whole frame was written");
            };
            assert_eq!(frame.plain_value(100).unwrap(), &plain[..]);
            assert_eq!(frame.plain_value(99).is_err(), datatype == Datatype::SNAPPY);
        }
    }

    proptest! {
        #[test]
        fn any_value_round_trips(value in prop::collection::vec(any::<u8>(), 1..200)) {
            let compressed = Compressor::new(0, 10.0).compress(&value).unwrap();
            prop_assert_eq!(decompress(&compressed, value.len()), Ok(value));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = decompress(&bytes, 1 << 16);
        }
    }
}
