//! Rejects malformed requests before anything is done, as strictly as a real server.

use steadfast_wire::frame_info::{RawFrameInfo, RequestFrameInfo};
use steadfast_wire::{Datatype, DecodeError, Entries, Feature, Frame, Status};

use super::opcodes::{CommandRules, Part};
use super::session::Session;
use crate::store::durability::DurabilityRequirement;

/// The framing extras of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Framing {
    pub durability: Option<DurabilityRequirement>,
    pub preserve_expiry: bool,
}

impl Session {
    /// Rejects a request with parts that its command does not have.
    pub(super) fn validate(&self, frame: &Frame, rules: &CommandRules) -> Result<(), Status> {
        let cas = frame.header().cas;
        let is_valid = (rules.extras.is_empty() || rules.extras.contains(&frame.extras().len()))
            && rules.key.allows(!frame.key().is_empty())
            && rules.value.allows(!frame.value().is_empty())
            && rules.cas.allows(cas != 0)
            && self.understands(frame.header().datatype, rules);
        if !is_valid {
            return Err(Status::InvalidArguments);
        }
        Framing::read(frame, rules).map(drop)
    }

    /// Returns whether a value may have a datatype: its command has to know it, and the client has
    /// to have asked for it.
    fn understands(&self, datatype: Datatype, rules: &CommandRules) -> bool {
        let asked = |part, feature| !datatype.contains(part) || self.features.contains(feature);
        (datatype - rules.datatypes).is_empty()
            && asked(Datatype::JSON, Feature::Json)
            && asked(Datatype::SNAPPY, Feature::Snappy)
    }
}

impl Part {
    fn allows(self, is_there: bool) -> bool {
        match self {
            Self::Absent => !is_there,
            Self::Optional => true,
            Self::Required => is_there,
        }
    }
}

impl Framing {
    /// Reads the framing extras, which the command must understand.
    pub(super) fn read(frame: &Frame, rules: &CommandRules) -> Result<Self, Status> {
        let mut framing = Self::default();
        for raw in Entries::<RawFrameInfo<'_>>::new(frame.framing_extras()) {
            let raw = raw.map_err(|_| Status::InvalidArguments)?;
            match RequestFrameInfo::interpret(raw).map_err(malformed)? {
                RequestFrameInfo::Durability(wanted) => {
                    framing.durability = Some(DurabilityRequirement::from_wire(wanted)?);
                    if !rules.durable {
                        return Err(Status::InvalidArguments);
                    }
                }
                RequestFrameInfo::PreserveTtl if !rules.preserves_expiry => {
                    return Err(Status::NotSupported);
                }
                RequestFrameInfo::PreserveTtl => framing.preserve_expiry = true,
                RequestFrameInfo::Barrier | RequestFrameInfo::DcpStreamId(_) => {}
                RequestFrameInfo::Impersonate(_) => return Err(Status::NotSupported),
                RequestFrameInfo::Unknown(_) => return Err(Status::UnknownFrameInfo),
            }
        }
        Ok(framing)
    }
}

fn malformed(error: DecodeError) -> Status {
    match error {
        // Of the length that it should have, and still no durability: a timeout that is none.
        DecodeError::Value { .. } => Status::DurabilityInvalidLevel,
        _ => Status::InvalidArguments,
    }
}
