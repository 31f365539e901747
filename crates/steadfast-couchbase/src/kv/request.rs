//! One key-value operation of a user, ready to be encoded as often as it takes.

use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use steadfast::Call;
use steadfast_wire::frame_info::{Durability, DurabilityTimeout, RequestFrameInfo};
use steadfast_wire::{
    CollectionId, Datatype, DocumentKey, Encode, EncodeError, Feature, FrameBuilder,
};

use super::connection::Connection;
use super::operation::KvOperation;
use super::packing::Packing;
pub(crate) use crate::drive::RequestOptions as Common;
use crate::options::Compression;

/// How long the server has for a durable write, of what the operation has
/// (protocol: 90 %), and the least that it needs.
const DURABLE_SHARE: f64 = 0.9;
const LEAST_DURABLE: Duration = Duration::from_millis(1500);

/// What an operation says, apart from where it goes.
pub(crate) struct Body<'a> {
    pub(crate) extras: Extras,
    pub(crate) value: &'a [u8],
    pub(crate) datatype: Datatype,
    pub(crate) cas: u64,
    pub(crate) durability: Option<DurabilityLevel>,
    pub(crate) preserve_expiry: bool,
    pub(crate) key: KeyPlace,
    /// Whether the value may be compressed, and whether it was.
    pub(crate) packing: Packing,
    /// Of paths, the place that each had where the user named it; empty if they
    /// are sent as they were named.
    pub(crate) paths: &'a [u8],
}

/// Where the key stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// In the frame.
    #[default]
    InFrame,
    /// Within the value, as observes have it.
    InValue,
    /// Nowhere: it is not about a document.
    Nowhere,
}

pub use steadfast_wire::frame_info::DurabilityLevel;

/// Extras of at most 24 bytes, which all are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    bytes: [u8; 24],
    len: u8,
}

impl Extras {
    /// Extras whose parts are there or not.
    pub(crate) fn new(extras: &impl Encode) -> Self {
        let mut out = BytesMut::with_capacity(24);
        // Numbers always fit their fields.
        let _ = extras.append_to(&mut out);
        Self::of(&out)
    }

    /// These bytes, of which there are never more.
    pub(crate) fn of(extras: &[u8]) -> Self {
        let mut bytes = [0; 24];
        bytes[..extras.len()].copy_from_slice(extras);
        let len = extras.len() as u8;
        Self { bytes, len }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Default for Body<'_> {
    fn default() -> Self {
        Self {
            extras: Extras::default(),
            value: &[],
            datatype: Datatype::RAW,
            cas: 0,
            durability: None,
            preserve_expiry: false,
            key: KeyPlace::default(),
            packing: Packing::default(),
            paths: &[],
        }
    }
}

/// Where a frame goes on one attempt.
pub(crate) struct Target<'a> {
    pub(crate) vbucket: u16,
    pub(crate) collection: u32,
    pub(crate) id: &'a [u8],
    pub(crate) remaining: Option<Duration>,
    pub(crate) accepts: Accepts,
}

/// What the connection of an attempt takes, as far as frames differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) collections: bool,
    pub(crate) json: bool,
    pub(crate) snappy: bool,
}

impl Accepts {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            collections: connection.has(Feature::Collections),
            json: connection.has(Feature::Json),
            snappy: connection.has(Feature::Snappy),
        }
    }
}

impl Body<'_> {
    /// Whether the connection can carry it; if not, what is missing.
    pub(crate) fn fits(
        &self,
        connection: &Connection,
        collection: u32,
    ) -> Result<(), &'static str> {
        let lacks = |needed, feature| needed && !connection.has(feature);
        if lacks(self.durability.is_some(), Feature::SyncReplication)
            || lacks(self.durability.is_some(), Feature::AltRequest)
        {
            Err("the server has no durable writes")
        } else if lacks(self.preserve_expiry, Feature::PreserveTtl)
            || lacks(self.preserve_expiry, Feature::AltRequest)
        {
            Err("the server cannot keep an expiry")
        } else if lacks(collection != 0, Feature::Collections) {
            Err("the server has no collections")
        } else {
            Ok(())
        }
    }

    /// Compresses the value for a connection that takes it so, if that is worth
    /// it. Does so once, however many attempts there are; to be done before
    /// anybody waits for this frame to be written.
    pub(crate) fn pack(&mut self, accepts: Accepts, compression: Compression) {
        if accepts.snappy {
            self.packing.pack(self.value, compression);
        }
    }

    /// Appends the frame.
    pub(crate) fn encode(
        &self,
        operation: KvOperation,
        target: &Target<'_>,
        opaque: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        let key = if target.accepts.collections {
            DocumentKey::new(CollectionId(target.collection), target.id)
        } else {
            DocumentKey::without_collection(target.id)
        };
        let mut datatype = self.datatype;
        if !target.accepts.json {
            datatype -= Datatype::JSON;
        }
        let value = match self.packing.packed() {
            Some(packed) if target.accepts.snappy => {
                datatype |= Datatype::SNAPPY;
                packed
            }
            _ => self.value,
        };
        let frame = FrameBuilder::request(operation.opcode())
            .vbucket(target.vbucket)
            .opaque(opaque)
            .cas(self.cas)
            .datatype(datatype)
            .extras(self.extras.as_slice());
        if self.key == KeyPlace::Nowhere {
            return frame.value(value).encode(out);
        }
        if self.key == KeyPlace::InValue {
            let mut observed = BytesMut::with_capacity(target.id.len() + 16);
            observed.put_u16(target.vbucket);
            let len = key.measure()?;
            // A key has at most 250 bytes, and its collection at most five.
            observed.put_u16(len as u16);
            key.write(&mut observed);
            return frame.value(&observed[..]).encode(out);
        }
        let frame = frame.key(key).value(value);
        match (self.durability, self.preserve_expiry) {
            (None, false) => frame.encode(out),
            (Some(level), false) => frame.framing(durable(level, target)).encode(out),
            (None, true) => frame.framing(RequestFrameInfo::PreserveTtl).encode(out),
            (Some(level), true) => frame
                .framing(&[durable(level, target), RequestFrameInfo::PreserveTtl][..])
                .encode(out),
        }
    }
}

/// The server gives up a little before the client does, so that its answer still
/// gets here.
fn durable(level: DurabilityLevel, target: &Target<'_>) -> RequestFrameInfo<'static> {
    let timeout = target.remaining.map(|remaining| {
        let share = remaining.mul_f64(DURABLE_SHARE).max(LEAST_DURABLE);
        DurabilityTimeout::nearest(share)
    });
    RequestFrameInfo::Durability(Durability { level, timeout })
}

/// The time that an operation has: the user's, or the default of its kind. A
/// durable one has at least what the server needs.
pub(crate) fn timeout(
    common: &Common,
    options: &crate::ClusterOptions,
    durability: Option<DurabilityLevel>,
) -> Duration {
    match durability {
        None => common.timeout.unwrap_or(options.kv_timeout),
        Some(_) => common
            .timeout
            .unwrap_or(options.kv_durable_timeout)
            .max(LEAST_DURABLE),
    }
}

/// Describes an operation to the engine.
pub(crate) fn call(operation: KvOperation, common: &Common, timeout: Duration) -> Call {
    let idempotent = operation.is_idempotent();
    common.call(operation.name(), "kv", idempotent, timeout)
}

/// What is left until then.
pub(crate) fn remaining(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(crate::world::now()))
}
