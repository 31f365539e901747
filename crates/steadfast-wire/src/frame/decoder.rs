//! Decodes frames from a stream of bytes.

use bytes::{Buf, BytesMut};

use super::{Frame, FrameError, HEADER_LEN, Header};
use crate::Magic;

/// The greatest body accepted unless told otherwise: a document of 20 MiB, a mebibyte of extended
/// attributes, and some room for key, extras and framing.
pub const DEFAULT_MAX_BODY: u32 = 21 * 1024 * 1024 + 1024;

/// Takes frames off a receive buffer.
///
/// It has no state but its limits: everything that is known about a frame under way is in the
/// buffer. The length of a body is judged as soon as its header is there, before anybody makes
/// room for it.
///
/// ```
/// use bytes::BytesMut;
/// use steadfast_wire::{Decoded, FrameBuilder, FrameDecoder, Opcode};
///
/// let mut sent = BytesMut::new();
/// FrameBuilder::request(Opcode::Noop).opaque(1).encode(&mut sent)?;
///
/// let decoder = FrameDecoder::from_client().with_max_body(1024);
/// let mut received = BytesMut::new();
/// received.extend_from_slice(&sent[..10]);
/// assert_eq!(decoder.decode(&mut received)?, Decoded::NeedMore(14));
/// received.extend_from_slice(&sent[10..]);
/// assert!(matches!(decoder.decode(&mut received)?, Decoded::Frame(noop) if noop.opaque() == 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FrameDecoder {
    from_client: bool,
    max_body: u32,
}

/// The result of decoding a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A frame, now taken off the buffer.
    Frame(Frame),
    /// No whole frame yet. At least this many bytes are missing, never zero; until the header is
    /// complete nothing more is known. It is safe to reserve: at most a header and the greatest body.
    NeedMore(usize),
}

impl FrameDecoder {
    /// For a server, which reads what clients send.
    pub fn from_client() -> Self {
        Self {
            from_client: true,
            max_body: DEFAULT_MAX_BODY,
        }
    }

    /// For a client, which reads what the server sends.
    pub fn from_server() -> Self {
        Self {
            from_client: false,
            max_body: DEFAULT_MAX_BODY,
        }
    }

    /// Sets the greatest body that is accepted.
    #[must_use]
    pub fn with_max_body(self, max_body: u32) -> Self {
        Self { max_body, ..self }
    }

    /// Takes the first frame off `buffer`, if it is all there.
    ///
    /// # Errors
    /// If the buffer does not start with a frame that the peer may send. The buffer is left as it
    /// is; the connection should be closed, because the stream has lost its frame boundaries.
    #[inline]
    pub fn decode(&self, buffer: &mut BytesMut) -> Result<Decoded, FrameError> {
        let Some(bytes) = buffer.first_chunk() else {
            return self.await_header(buffer);
        };
        let header = Header::decode(bytes)?;
        self.check_direction(header.magic)?;
        if header.body_len > self.max_body {
            return Err(FrameError::BodyTooLong {
                opcode: header.opcode,
                body_len: header.body_len,
                max: self.max_body,
            });
        }
        let len = HEADER_LEN + header.body_len as usize;
        if buffer.len() < len {
            return Ok(Decoded::NeedMore(len - buffer.len()));
        }
        let mut body = buffer.split_to(len).freeze();
        body.advance(HEADER_LEN);
        Ok(Decoded::Frame(Frame::new(header, body)))
    }

    /// Judges the magic although the header is incomplete: a peer that speaks another protocol may
    /// have sent less than a header and be waiting for an answer.
    #[cold]
    fn await_header(&self, buffer: &BytesMut) -> Result<Decoded, FrameError> {
        if let Some(&first) = buffer.first() {
            self.check_direction(Magic::from_code(first).ok_or(FrameError::UnknownMagic(first))?)?;
        }
        Ok(Decoded::NeedMore(HEADER_LEN - buffer.len()))
    }

    #[inline]
    fn check_direction(&self, magic: Magic) -> Result<(), FrameError> {
        if magic.is_from_client() == self.from_client {
            Ok(())
        } else {
            Err(FrameError::WrongDirection(magic))
        }
    }
}
