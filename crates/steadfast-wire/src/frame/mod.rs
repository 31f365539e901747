//! Frames: the envelope of every message, in both formats and both directions.
//!
//! ```text
//!          0         1         2           3          4        5         6-7
//!      +-------+--------+-----------------------+--------+----------+------------------+
//!      | magic | opcode | key length            | extras | datatype | vbucket (asking) |
//!      |       |        | or framing |    key   | length |          | status (answer)  |
//!      +-------+--------+-----------------------+--------+----------+------------------+
//!         8-11: length of the body       12-15: opaque          16-23: CAS
//!
//!      body:  framing extras | extras | key | value
//! ```
//!
//! All numbers are big-endian. The lengths of the first three sections are in the header, and the
//! value is the rest. A frame whose sections exceed its body is invalid.

mod builder;
mod decoder;
mod error;
mod header;

use bytes::{Buf, Bytes};

pub use builder::FrameBuilder;
pub use decoder::{DEFAULT_MAX_BODY, Decoded, FrameDecoder};
pub use error::FrameError;
pub use header::{HEADER_LEN, Header};

use crate::frame_info::{RequestFrameInfo, ResponseFrameInfo};
use crate::{Entries, Opcode, ServerOpcode, Status};

/// One message, taken off the wire.
///
/// Cloning a frame or taking a section as [`Bytes`] shares the receive buffer and copies nothing.
/// A section that is kept keeps its whole buffer alive, so copy values that are stored for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    header: Header,
    body: Bytes,
}

impl Frame {
    /// Joins a header with its body; the header's lengths must describe it.
    pub(crate) fn new(header: Header, body: Bytes) -> Self {
        debug_assert_eq!(header.body_len as usize, body.len());
        debug_assert!(header.sections_len() <= body.len());
        Self { header, body }
    }

    /// The fixed part.
    #[inline]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The command, on frames that a client initiated: its requests and the answers to them.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        Opcode::from_code(self.header.opcode)
    }

    /// The command, on frames that the server initiated: its requests and the answers to them.
    #[inline]
    pub fn server_opcode(&self) -> ServerOpcode {
        ServerOpcode::from_code(self.header.opcode)
    }

    /// The status of a response.
    #[inline]
    pub fn status(&self) -> Status {
        Status::from_code(self.header.vbucket_or_status)
    }

    /// Returns whether a response means success.
    #[inline]
    pub fn is_success(&self) -> bool {
        self.header.vbucket_or_status == Status::Success.code()
    }

    /// The vbucket of a request.
    #[inline]
    pub fn vbucket(&self) -> u16 {
        self.header.vbucket_or_status
    }

    /// The number that ties a response to its request.
    #[inline]
    pub fn opaque(&self) -> u32 {
        self.header.opaque
    }

    /// The section that only the flexible formats have: frame infos.
    #[inline]
    pub fn framing_extras(&self) -> &[u8] {
        &self.body[..usize::from(self.header.framing_len)]
    }

    /// The frame infos of a client's request.
    #[inline]
    pub fn request_frame_infos(&self) -> Entries<'_, RequestFrameInfo<'_>> {
        Entries::new(self.framing_extras())
    }

    /// The frame infos of the answer to a client's request.
    #[inline]
    pub fn response_frame_infos(&self) -> Entries<'_, ResponseFrameInfo<'_>> {
        Entries::new(self.framing_extras())
    }

    /// The command's fixed fields.
    #[inline]
    pub fn extras(&self) -> &[u8] {
        let start = usize::from(self.header.framing_len);
        &self.body[start..start + usize::from(self.header.extras_len)]
    }

    /// The key; of a document with its collection prefix, see [`DocumentKey`](crate::DocumentKey).
    #[inline]
    pub fn key(&self) -> &[u8] {
        let end = self.header.sections_len();
        &self.body[end - usize::from(self.header.key_len)..end]
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.body[self.header.sections_len()..]
    }

    /// The value, sharing the receive buffer.
    #[inline]
    pub fn value_bytes(&self) -> Bytes {
        self.body.slice(self.header.sections_len()..)
    }

    /// The value, sharing the receive buffer; cheaper than [`value_bytes`](Self::value_bytes)
    /// where the rest of the frame is not needed any more.
    #[inline]
    pub fn into_value(mut self) -> Bytes {
        self.body.advance(self.header.sections_len());
        self.body
    }

    /// A part of this frame (a path, a document id) as bytes that share the receive buffer.
    ///
    /// # Panics
    /// If `part` was not borrowed from this frame.
    #[inline]
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.body.slice_ref(part)
    }

    /// The body: all four sections.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl AsRef<Header> for Frame {
    fn as_ref(&self) -> &Header {
        &self.header
    }
}
