//! The header: the first 24 bytes of every frame.

use super::FrameError;
use crate::{Datatype, Magic};

/// The length of a header.
pub const HEADER_LEN: usize = 24;

/// The fixed part of a frame, in its own units instead of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender and the format.
    pub magic: Magic,
    /// The command. Its meaning depends on who initiated the exchange, see
    /// [`Frame::opcode`](super::Frame::opcode) and
    /// [`Frame::server_opcode`](super::Frame::server_opcode).
    pub opcode: u8,
    /// The length of the framing extras; zero in the classic formats.
    pub framing_len: u8,
    /// The length of the extras.
    pub extras_len: u8,
    /// The length of the key; at most 255 in the flexible formats.
    pub key_len: u16,
    /// The datatype of the value.
    pub datatype: Datatype,
    /// The vbucket of a request, the status of a response.
    pub vbucket_or_status: u16,
    /// The length of everything after the header.
    pub body_len: u32,
    /// A number that the sender of a request chooses and the response repeats.
    pub opaque: u32,
    /// The document's version, or zero.
    pub cas: u64,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// If the first byte is not a magic, or the sections do not fit the body. The length of the body
    /// is not judged here: that limit is the [`FrameDecoder`](super::FrameDecoder)'s.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, FrameError> {
        let [
            b0,
            b1,
            b2,
            b3,
            b4,
            b5,
            b6,
            b7,
            b8,
            b9,
            b10,
            b11,
            b12,
            b13,
            b14,
            b15,
            cas @ ..,
        ] = *bytes;
        let magic = Magic::from_code(b0).ok_or(FrameError::UnknownMagic(b0))?;
        let (framing_len, key_len) = if magic.is_flexible() {
            (b2, u16::from(b3))
        } else {
            (0, u16::from_be_bytes([b2, b3]))
        };
        let header = Self {
            magic,
            opcode: b1,
            framing_len,
            extras_len: b4,
            key_len,
            datatype: Datatype::from_bits_retain(b5),
            vbucket_or_status: u16::from_be_bytes([b6, b7]),
            body_len: u32::from_be_bytes([b8, b9, b10, b11]),
            opaque: u32::from_be_bytes([b12, b13, b14, b15]),
            cas: u64::from_be_bytes(cas),
        };
        if header.sections_len() > header.body_len as usize {
            return Err(FrameError::SectionsExceedBody {
                opcode: header.opcode,
                framing_len,
                extras_len: header.extras_len,
                key_len,
                body_len: header.body_len,
            });
        }
        Ok(header)
    }

    /// Writes the header. In a flexible format only the low byte of the key length has a place;
    /// in a classic format the length of the framing extras has none.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let lengths = if self.magic.is_flexible() {
            u16::from(self.framing_len) << 8 | self.key_len & 0xff
        } else {
            self.key_len
        };
        // Three words take fewer instructions than ten fields.
        let first = u64::from(self.magic.code()) << 56
            | u64::from(self.opcode) << 48
            | u64::from(lengths) << 32
            | u64::from(self.extras_len) << 24
            | u64::from(self.datatype.bits()) << 16
            | u64::from(self.vbucket_or_status);
        let second = u64::from(self.body_len) << 32 | u64::from(self.opaque);
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes[8..16].copy_from_slice(&second.to_be_bytes());
        bytes[16..].copy_from_slice(&self.cas.to_be_bytes());
        bytes
    }

    /// The length of all sections before the value.
    #[inline]
    pub fn sections_len(&self) -> usize {
        usize::from(self.framing_len) + usize::from(self.extras_len) + usize::from(self.key_len)
    }
}

impl AsRef<Self> for Header {
    fn as_ref(&self) -> &Self {
        self
    }
}
