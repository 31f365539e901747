//! A macro for sections that are a row of big-endian numbers.

/// Defines a struct of numbers with its one encoding.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident called $what:literal {
            $( $(#[$field_meta:meta])* pub $field:ident: $type:ident, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl $name {
            /// The length on the wire.
            pub const LEN: usize = 0 $( + size_of::<$type>() )*;

            /// Reads all of `bytes`.
            ///
            /// # Errors
            /// If there are more or fewer bytes than [`LEN`](Self::LEN).
            #[inline]
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::DecodeError> {
                let Ok(bytes) = <&[u8; Self::LEN]>::try_from(bytes) else {
                    return Err($crate::DecodeError::Length {
                        what: $what,
                        len: bytes.len(),
                        expected: $crate::decode::Expected(&[Self::LEN]),
                    });
                };
                let mut reader = $crate::decode::ByteReader::new(bytes);
                $( let $field = $type::from_be_bytes(reader.array($what)?); )*
                Ok(Self { $($field),* })
            }

            /// The bytes on the wire.
            #[inline]
            pub fn to_bytes(&self) -> [u8; Self::LEN] {
                let mut bytes = [0; Self::LEN];
                let mut rest = &mut bytes[..];
                $( bytes::BufMut::put_slice(&mut rest, &self.$field.to_be_bytes()); )*
                debug_assert!(rest.is_empty());
                bytes
            }
        }

        impl $crate::Encode for $name {
            #[inline]
            fn measure(&self) -> Result<usize, $crate::EncodeError> {
                Ok(Self::LEN)
            }

            #[inline]
            fn write(&self, out: &mut bytes::BytesMut) {
                out.extend_from_slice(&self.to_bytes());
            }
        }
    };
}

pub(crate) use layout;
