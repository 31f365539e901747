//! Multi-path lookups.

use bytes::{BufMut, BytesMut};

use super::PathFlags;
use crate::decode::ByteReader;
use crate::{DecodeError, Encode, EncodeError, Opcode, ReadEntry, Status};

/// One lookup of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupSpec<'a> {
    /// The command: `SubdocGet`, `SubdocExists`, `SubdocGetCount`, or `Get` for the whole
    /// document.
    pub opcode: Opcode,
    /// Flags of the path.
    pub flags: PathFlags,
    /// Where; empty for the whole document.
    pub path: &'a [u8],
}

/// The result of one lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupResult<'a> {
    /// The status.
    pub status: Status,
    /// The value at the path, as JSON.
    pub value: &'a [u8],
}

impl Encode for LookupSpec<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(4 + EncodeError::check("a path", self.path.len(), u16::MAX.into())?)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u8(self.opcode.code());
        out.put_u8(self.flags.bits());
        out.put_u16(self.path.len() as u16);
        out.put_slice(self.path);
    }
}

impl<'a> ReadEntry<'a> for LookupSpec<'a> {
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "a lookup spec";
        let opcode = Opcode::from_code(reader.u8(WHAT)?);
        let flags = PathFlags::from_bits_retain(reader.u8(WHAT)?);
        let path_len = reader.u16(WHAT)?;
        Ok(Self {
            opcode,
            flags,
            path: reader.bytes("the path of a lookup", path_len.into())?,
        })
    }
}

impl Encode for LookupResult<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(6 + EncodeError::check("the value of a lookup", self.value.len(), u32::MAX as usize)?)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u16(self.status.code());
        out.put_u32(self.value.len() as u32);
        out.put_slice(self.value);
    }
}

impl<'a> ReadEntry<'a> for LookupResult<'a> {
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "the result of a lookup";
        let status = Status::from_code(reader.u16(WHAT)?);
        let len = reader.u32(WHAT)?;
        Ok(Self {
            status,
            value: reader.bytes("the value of a lookup", len as usize)?,
        })
    }
}
