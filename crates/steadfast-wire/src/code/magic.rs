//! The magic: the first byte of a frame, which gives its sender and its format.

/// The sender of a frame, its direction, and the layout of its header.
///
/// The flexible formats give up half of the key length field to say how many bytes of *framing
/// extras* come first in the body. They exist in both directions of a client's request; requests
/// that the server makes, and the answers to those, have the classic format only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Magic {
    /// A client asks.
    Request = 0x80,
    /// A client asks, with framing extras. Allowed once HELLO granted `AltRequest`.
    FlexibleRequest = 0x08,
    /// The server answers.
    Response = 0x81,
    /// The server answers, with framing extras.
    FlexibleResponse = 0x18,
    /// The server asks. Only on connections where HELLO granted `Duplex`.
    ServerRequest = 0x82,
    /// A client answers what the server asked. Servers drop the answers to notifications unread.
    ClientResponse = 0x83,
}

impl Magic {
    /// The magic with this number, if there is one.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x80 => Self::Request,
            0x08 => Self::FlexibleRequest,
            0x81 => Self::Response,
            0x18 => Self::FlexibleResponse,
            0x82 => Self::ServerRequest,
            0x83 => Self::ClientResponse,
            _ => return None,
        })
    }

    /// The number on the wire.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns whether byte 2 of the header is the length of the framing extras, and byte 3 that of the
    /// key, instead of both being the key's.
    #[inline]
    pub const fn is_flexible(self) -> bool {
        matches!(self, Self::FlexibleRequest | Self::FlexibleResponse)
    }

    /// Returns whether bytes 6 and 7 of the header are a status; a vbucket id otherwise.
    #[inline]
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            Self::Response | Self::FlexibleResponse | Self::ClientResponse
        )
    }

    /// Returns whether a client sends such frames; otherwise a server does.
    #[inline]
    pub const fn is_from_client(self) -> bool {
        matches!(
            self,
            Self::Request | Self::FlexibleRequest | Self::ClientResponse
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_six_bytes_are_a_magic() {
        let known: Vec<u8> = (0..=u8::MAX)
            .filter(|b| Magic::from_code(*b).is_some())
            .collect();
        assert_eq!(known, [0x08, 0x18, 0x80, 0x81, 0x82, 0x83]);
        for byte in known {
            assert_eq!(Magic::from_code(byte).unwrap().code(), byte);
        }
    }
}
