//! One key-value operation of a user, ready to be encoded as often as it takes.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use steadfast::{Call, RetryStrategy};
use steadfast_wire::frame_info::{Durability, DurabilityTimeout, RequestFrameInfo};
use steadfast_wire::{
    CollectionId, Datatype, DocumentKey, Encode, EncodeError, Feature, FrameBuilder,
};

use super::connection::Connection;
use super::operation::KvOperation;
use crate::error::{Error, ErrorKind, Result};

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
    /// The place of the key: in the frame, or within the value, as observes have it.
    pub(crate) key_in_value: bool,
}

pub use steadfast_wire::frame_info::DurabilityLevel;

/// Extras of at most 24 bytes, which all are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    bytes: [u8; 24],
    len: u8,
}

impl Extras {
    pub(crate) fn new(extras: impl Encode) -> Result<Self, EncodeError> {
        let mut out = BytesMut::with_capacity(24);
        extras.append_to(&mut out)?;
        Self::from_bytes(&out)
    }

    pub(crate) fn from_bytes(from: &[u8]) -> Result<Self, EncodeError> {
        let mut bytes = [0; 24];
        let Some(place) = bytes.get_mut(..from.len()) else {
            let (what, len, max) = ("extras", from.len(), 24);
            return Err(EncodeError::TooLong { what, len, max });
        };
        place.copy_from_slice(from);
        let len = from.len() as u8;
        Ok(Self { bytes, len })
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
            key_in_value: false,
        }
    }
}

/// What every operation can be told.
#[derive(Clone, Default)]
pub(crate) struct Common {
    pub(crate) timeout: Option<Duration>,
    pub(crate) strategy: Option<Arc<dyn RetryStrategy>>,
    pub(crate) context: Option<Arc<dyn Any + Send + Sync>>,
}

/// Where a frame goes on one attempt.
pub(crate) struct Target<'a> {
    pub(crate) vbucket: u16,
    pub(crate) collection: u32,
    pub(crate) id: &'a [u8],
    pub(crate) remaining: Option<Duration>,
}

impl Body<'_> {
    /// Whether the connection can carry it.
    pub(crate) fn fits(&self, connection: &Connection, collection: u32) -> Result<(), ErrorKind> {
        let lacks = |needed, feature| needed && !connection.has(feature);
        if lacks(self.durability.is_some(), Feature::SyncReplication)
            || lacks(self.durability.is_some(), Feature::AltRequest)
            || lacks(self.preserve_expiry, Feature::PreserveTtl)
            || lacks(collection != 0, Feature::Collections)
        {
            return Err(ErrorKind::FeatureNotAvailable);
        }
        Ok(())
    }

    /// Appends the frame.
    pub(crate) fn encode(
        &self,
        operation: KvOperation,
        target: &Target<'_>,
        collections: bool,
        opaque: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        let key = if collections {
            DocumentKey::new(CollectionId(target.collection), target.id)
        } else {
            DocumentKey::without_collection(target.id)
        };
        let mut datatype = self.datatype;
        // A connection without the feature takes no datatype at all; whoever
        // made the body compressed it only for connections that have it.
        if !collections && datatype == Datatype::JSON {
            datatype = Datatype::RAW;
        }
        let frame = FrameBuilder::request(operation.opcode())
            .vbucket(target.vbucket)
            .opaque(opaque)
            .cas(self.cas)
            .datatype(datatype)
            .extras(self.extras.as_slice());
        if self.key_in_value {
            let mut observed = BytesMut::with_capacity(target.id.len() + 16);
            observed.put_u16(target.vbucket);
            let len = key.measure()?;
            // A key has at most 250 bytes, and its collection at most five.
            observed.put_u16(len as u16);
            key.write(&mut observed);
            return frame.value(&observed[..]).encode(out);
        }
        let frame = frame.key(key).value(self.value);
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
    let call = Call::new(operation.name())
        .service("kv")
        .idempotent(operation.is_idempotent())
        .timeout(timeout);
    match &common.context {
        Some(context) => call.shared_context(context.clone()),
        None => call,
    }
}

/// What is left until then.
pub(crate) fn remaining(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(crate::world::now()))
}

/// Refuses keys that no server takes, before anything is sent.
pub(crate) fn check_key(operation: KvOperation, id: &[u8]) -> Result<()> {
    let problem = match id.len() {
        0 => "the key is empty",
        len if len > DocumentKey::MAX_ID_LEN - 4 => "the key is longer than 246 bytes",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidArgument, operation.name()).because(problem))
}
