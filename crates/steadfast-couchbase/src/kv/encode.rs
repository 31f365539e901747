//! Encodes requests as frames.

use std::time::Instant;

use bytes::BytesMut;
use steadfast_wire::frame_info::{
    Durability, DurabilityLevel, DurabilityTimeout, RequestFrameInfo,
};
use steadfast_wire::{CollectionId, Datatype, DocumentKey, EncodeError, Feature, FrameBuilder};

use super::connection::Connection;
use super::request::{KvRequest, MIN_DURABLE};

/// The share of an operation's time that the server gets for a durable write
/// (protocol: 90 %).
const DURABLE_SHARE: f64 = 0.9;

impl KvRequest<'_> {
    /// Appends the frame, as the connection accepts it. `compressed` is the
    /// compressed value, if there is one.
    // Inlined always: it has many arguments, and each caller knows some of them.
    #[inline(always)]
    pub(super) fn encode(
        &self,
        connection: &Connection,
        (vbucket, collection_id): (u16, u32),
        compressed: Option<&[u8]>,
        deadline: Option<Instant>,
        opaque: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        let id = self.id.as_bytes();
        let key = if connection.has(Feature::Collections) {
            DocumentKey::new(CollectionId(collection_id), id)
        } else {
            DocumentKey::without_collection(id)
        };
        let mut datatype = self.datatype;
        if !connection.has(Feature::Json) {
            datatype -= Datatype::JSON;
        }
        let value = match compressed {
            Some(compressed) if connection.has(Feature::Snappy) => {
                datatype |= Datatype::SNAPPY;
                compressed
            }
            _ => &*self.value,
        };
        let frame = FrameBuilder::request(self.operation.opcode())
            .vbucket(vbucket)
            .opaque(opaque)
            .cas(self.cas)
            .datatype(datatype)
            .extras(self.extras.as_bytes())
            .key(key)
            .value(value);
        if self.durability.is_none() && !self.preserve_expiry {
            frame.encode(out)
        } else {
            self.encode_framed(frame, deadline, out)
        }
    }

    /// Appends a frame with framing extras.
    #[inline(never)]
    fn encode_framed(
        &self,
        frame: FrameBuilder<(), &[u8], DocumentKey<'_>, &[u8]>,
        deadline: Option<Instant>,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        let durability = self.durability.map(|level| durable(level, deadline));
        let preserve = RequestFrameInfo::PreserveTtl;
        let preserve = self.preserve_expiry.then_some(preserve);
        frame.framing((durability, preserve)).encode(out)
    }
}

/// Asks for durability. The server gives up a little before the client does, so
/// that its response still arrives in time.
fn durable(level: DurabilityLevel, deadline: Option<Instant>) -> RequestFrameInfo<'static> {
    let timeout = deadline.map(|deadline| {
        let remaining = deadline.saturating_duration_since(crate::world::now());
        DurabilityTimeout::nearest(remaining.mul_f64(DURABLE_SHARE).max(MIN_DURABLE))
    });
    RequestFrameInfo::Durability(Durability { level, timeout })
}
