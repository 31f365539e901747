//! What requests and responses do alike with their frame infos.

/// Writes one kind of frame info, or a row of them, and goes through the framing extras that such
/// a row is. The type needs `interpret` and `with_raw`.
macro_rules! frame_infos {
    ($info:ident, $(#[$meta:meta])* $iterator:ident) => {
        impl $crate::Encode for $info<'_> {
            #[inline]
            fn measure(&self) -> Result<usize, $crate::EncodeError> {
                self.with_raw(|raw| raw.measure())
            }

            #[inline]
            fn write(&self, out: &mut bytes::BytesMut) {
                self.with_raw(|raw| raw.write(out));
            }
        }

        /// A row of them is what the framing extras are.
        impl $crate::Encode for [$info<'_>] {
            fn measure(&self) -> Result<usize, $crate::EncodeError> {
                self.iter().map($crate::Encode::measure).sum()
            }

            fn write(&self, out: &mut bytes::BytesMut) {
                self.iter().for_each(|info| info.write(out));
            }
        }

        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $iterator<'a>(RawFrameInfos<'a>);

        impl<'a> $iterator<'a> {
            /// Starts at the first one.
            #[inline]
            pub fn new(framing_extras: &'a [u8]) -> Self {
                Self(RawFrameInfos::new(framing_extras))
            }
        }

        impl<'a> Iterator for $iterator<'a> {
            type Item = Result<$info<'a>, DecodeError>;

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                Some(self.0.next()?.and_then($info::interpret))
            }
        }
    };
}

pub(super) use frame_infos;
