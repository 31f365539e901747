//! A value that is compressed once.
//!
//! Whether a value goes out compressed depends on the connection of the attempt;
//! what it looks like compressed does not. So it is compressed for the first
//! connection that takes it so, and kept for the retries.

use steadfast_wire::snappy::Compressor;

use crate::options::Compression;

/// Whether a value may be compressed, and whether it was.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Packing {
    /// It goes as it is: it is short, or the server would not take it otherwise.
    #[default]
    Never,
    /// It may be.
    Possible,
    /// It was tried, and saved too little.
    NotWorthIt,
    /// It was.
    Packed(Vec<u8>),
}

impl Packing {
    /// Compresses the value, unless that was tried before.
    #[inline]
    pub(super) fn pack(&mut self, value: &[u8], compression: Compression) {
        if *self == Self::Possible {
            *self = tried(value, compression);
        }
    }

    #[inline]
    pub(super) fn packed(&self) -> Option<&[u8]> {
        match self {
            Self::Packed(packed) => Some(packed),
            Self::Never | Self::Possible | Self::NotWorthIt => None,
        }
    }
}

fn tried(value: &[u8], compression: Compression) -> Packing {
    let packed = match compression {
        Compression::Off => None,
        // Making a compressor costs more than looking at the length.
        Compression::Snappy { min_size, .. } if value.len() < min_size => None,
        Compression::Snappy {
            min_size,
            max_ratio,
        } => Compressor::new(min_size, max_ratio.into()).compress(value),
    };
    packed.map_or(Packing::NotWorthIt, Packing::Packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_compressed_if_it_may_be_and_if_it_is_worth_it() {
        let dull = vec![b'a'; 4096];
        let mut packing = Packing::default();
        packing.pack(&dull, Compression::default());
        assert_eq!(packing, Packing::Never);

        let mut packing = Packing::Possible;
        packing.pack(&dull, Compression::default());
        let packed = packing.packed().expect("it shrinks").to_vec();
        assert!(packed.len() < 400);
        assert_eq!(
            steadfast_wire::snappy::decompress(&packed, 4096),
            Ok(dull.clone())
        );

        for (value, compression) in [
            (&dull[..31], Compression::default()),
            (&dull[..], Compression::Off),
            (
                b"abcdefghijklmnopqrstuvwxyz0123456789",
                Compression::default(),
            ),
        ] {
            let mut packing = Packing::Possible;
            packing.pack(value, compression);
            assert_eq!(packing, Packing::NotWorthIt);
        }
    }

    #[test]
    fn it_is_tried_once() {
        let mut packing = Packing::NotWorthIt;
        packing.pack(&[b'a'; 4096], Compression::default());
        assert_eq!(packing, Packing::NotWorthIt);
        let mut packing = Packing::Packed(b"as it was".to_vec());
        packing.pack(&[b'a'; 4096], Compression::default());
        assert_eq!(packing.packed(), Some(&b"as it was"[..]));
    }
}
