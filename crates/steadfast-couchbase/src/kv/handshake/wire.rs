//! Requests and responses of a handshake, on a socket that it owns alone.

use bytes::{Bytes, BytesMut};
use steadfast_wire::{Decoded, Encode, Frame, FrameBuilder, FrameDecoder, Magic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Reached, Rejected};
use crate::kv::connection::Io;

/// The largest frame of a handshake.
const MAX_FRAME: u32 = super::MAX_BODY as u32;

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
            self.io.write_all(&out).await.map_err(Rejected::io)?;
            self.io.flush().await.map_err(Rejected::io)?;
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
                Err(error) => return Err(Rejected::lost(format!("invalid frame: {error}"))),
            }
            let read = self.io.read_buf(&mut self.received).await;
            if read.map_err(Rejected::io)? == 0 {
                return Err(Rejected::lost(
                    "the server closed the connection during the bootstrap".to_owned(),
                ));
            }
        }
    }

    pub(super) fn into_received(self) -> BytesMut {
        self.received
    }
}
