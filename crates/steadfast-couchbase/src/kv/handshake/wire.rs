//! Requests and responses of a handshake, on a socket that it owns alone.

use bytes::{Buf, Bytes, BytesMut};
use steadfast_wire::{
    Decoded, Encode, Frame, FrameBuilder, FrameDecoder, FrameError, HEADER_LEN, Header, Magic,
    Opcode,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Reached, Rejected};
use crate::kv::connection::{Io, at_end};

/// The largest frame of a handshake.
const MAX_FRAME: u32 = super::MAX_BODY as u32;

/// The buffer size of one read.
const READ: usize = 64 << 10;

pub(super) struct Wire<'a> {
    io: &'a mut Io,
    out: BytesMut,
    received: BytesMut,
    /// Responses that arrived before they were awaited.
    early: Vec<Frame>,
    next_opaque: u32,
    pub(super) reached: Reached,
}

impl<'a> Wire<'a> {
    pub(super) fn new(io: &'a mut Io) -> Self {
        Self {
            io,
            out: BytesMut::new(),
            received: BytesMut::new(),
            early: Vec::new(),
            next_opaque: 1,
            reached: Reached::Nothing,
        }
    }

    /// Adds a request to the batch that goes out with the next wait for an
    /// answer. Returns its opaque.
    pub(super) fn queue<F: Encode, E: Encode, K: Encode, V: Encode>(
        &mut self,
        request: FrameBuilder<F, E, K, V>,
    ) -> Result<u32, Rejected> {
        let opaque = self.next_opaque;
        self.next_opaque += 1;
        request
            .opaque(opaque)
            .encode(&mut self.out)
            .map_err(|error| Rejected::lost(format!("the bootstrap cannot be encoded: {error}")))?;
        Ok(opaque)
    }

    /// Sends the batch, and waits for the response to this opaque.
    ///
    /// Not cancel-safe: a part of the batch may have been sent.
    pub(super) async fn answer(&mut self, opaque: u32) -> Result<Frame, Rejected> {
        if !self.out.is_empty() {
            let out: Bytes = self.out.split().freeze();
            self.io.write_all(&out).await.map_err(broken_off)?;
            self.io.flush().await.map_err(broken_off)?;
        }
        loop {
            if let Some(place) = self.early.iter().position(|frame| frame.opaque() == opaque) {
                return Ok(self.early.swap_remove(place));
            }
            let frame = self.read().await?;
            match frame.header().magic {
                Magic::Response | Magic::FlexibleResponse => {
                    if frame.opaque() == 0 || frame.opaque() >= self.next_opaque {
                        return Err(Rejected::lost("a response to an unknown opaque".to_owned()));
                    }
                    // Duplicates could fill the memory.
                    let twice = |early: &Frame| early.opaque() == frame.opaque();
                    if self.early.iter().any(twice) {
                        return Err(Rejected::lost("a duplicate response".to_owned()));
                    }
                    self.early.push(frame);
                }
                // The config at the end of the handshake is newer than any
                // notification.
                _ => {}
            }
        }
    }

    async fn read(&mut self) -> Result<Frame, Rejected> {
        let decoder = FrameDecoder::from_server().with_max_body(MAX_FRAME);
        loop {
            match decoder.decode(&mut self.received) {
                Ok(Decoded::Frame(frame)) => {
                    self.reached = self.reached.max(Reached::Answers);
                    return Ok(frame);
                }
                Ok(Decoded::NeedMore(_)) => {}
                // The only response that a connection can do without (D29).
                Err(FrameError::BodyTooLong { opcode, .. })
                    if opcode == Opcode::GetErrorMap.code() =>
                {
                    return self.skip().await;
                }
                Err(error) => return Err(Rejected::lost(format!("invalid frame: {error}"))),
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), Rejected> {
        self.received.reserve(READ);
        let read = self.io.read_buf(&mut self.received).await;
        match at_end(read).map_err(broken_off)? {
            0 => Err(Rejected::lost(
                "the server closed the connection during the bootstrap".to_owned(),
            )
            .costly()),
            _ => Ok(()),
        }
    }

    /// Reads a frame that is too large without keeping it. Returns one with the same
    /// opaque and an empty body.
    async fn skip(&mut self) -> Result<Frame, Rejected> {
        let invalid = |error: FrameError| Rejected::lost(format!("invalid frame: {error}"));
        let mut header: [u8; HEADER_LEN] = match self.received.first_chunk() {
            Some(header) => *header,
            None => return Err(Rejected::lost("a frame without a header".to_owned())),
        };
        let mut left = HEADER_LEN + Header::decode(&header).map_err(invalid)?.body_len as usize;
        while left > 0 {
            if self.received.is_empty() {
                self.fill().await?;
            }
            let here = left.min(self.received.len());
            self.received.advance(here);
            left -= here;
        }
        // Lengths of framing and key, of extras, and of the body.
        for place in [2, 3, 4, 8, 9, 10, 11] {
            header[place] = 0;
        }
        self.reached = self.reached.max(Reached::Answers);
        match FrameDecoder::from_server().decode(&mut BytesMut::from(&header[..])) {
            Ok(Decoded::Frame(frame)) => Ok(frame),
            Ok(Decoded::NeedMore(_)) => Err(Rejected::lost("an incomplete header".to_owned())),
            Err(error) => Err(invalid(error)),
        }
    }

    pub(super) fn into_received(self) -> BytesMut {
        self.received
    }
}

/// The connection ended in the middle of the handshake.
fn broken_off(error: std::io::Error) -> Rejected {
    Rejected::io(error).costly()
}
