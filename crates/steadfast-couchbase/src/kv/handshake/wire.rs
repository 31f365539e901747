//! Question and answer on a socket that nobody else uses yet.

use bytes::{Bytes, BytesMut};
use steadfast_wire::{Decoded, Encode, Frame, FrameBuilder, FrameDecoder, Magic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Reached, Rejected};
use crate::kv::connection::Io;

/// No answer of a bootstrap is larger than a large config.
const MAX_FRAME: u32 = super::MAX_BODY as u32;

pub(super) struct Wire<'a> {
    io: &'a mut Io,
    out: BytesMut,
    received: BytesMut,
    /// Answers that came before somebody asked for them.
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
                        return Err(Rejected::lost(
                            "an answer to something that nobody asked".to_owned(),
                        ));
                    }
                    // Nor is there an end to answers that come twice.
                    let twice = |early: &Frame| early.opaque() == frame.opaque();
                    if self.early.iter().any(twice) {
                        return Err(Rejected::lost("the same answer twice".to_owned()));
                    }
                    self.early.push(frame);
                }
                // Whatever the server has to say by itself, the config that
                // ends the bootstrap says as well.
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
                Err(error) => return Err(Rejected::lost(format!("a bad frame: {error}"))),
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
