//! Multi-path mutations.

use bytes::{BufMut, BytesMut};

use super::PathFlags;
use crate::decode::ByteReader;
use crate::{DecodeError, Encode, EncodeError, Entries, Opcode, ReadEntry, Status};

/// One mutation of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutationSpec<'a> {
    /// The command; `Set` and `Delete` concern the whole document.
    pub opcode: Opcode,
    /// Flags of the path.
    pub flags: PathFlags,
    /// The path; empty for the whole document.
    pub path: &'a [u8],
    /// The new value, as JSON.
    pub value: &'a [u8],
}

/// The result of one mutation, after all of them succeeded. Mutations that return no value are
/// left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMutationResult<'a> {
    /// The index of the spec, from zero.
    pub index: u8,
    /// The status: a success.
    pub status: Status,
    /// The returned JSON: a counter's new value.
    pub value: &'a [u8],
}

/// The answer to a multi-path mutation whose status says that its body is one.
#[derive(Clone, Debug)]
pub enum MutationOutcome<'a> {
    /// All were applied.
    Done(Entries<'a, PathMutationResult<'a>>),
    /// None was applied, because this one failed.
    Failed {
        /// The index of the spec, from zero.
        index: u8,
        /// The status of that part.
        status: Status,
    },
}

impl<'a> MutationOutcome<'a> {
    /// Reads the value of a response. `None` if its status is one after which there is no outcome
    /// of single paths: the whole command failed.
    ///
    /// # Errors
    /// If the body of a failure has not the three bytes that it should. The results of a success
    /// are read, and possibly refused, one by one.
    pub fn decode(status: Status, value: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        match status {
            Status::Success | Status::SubdocSuccessDeleted => {
                Ok(Some(Self::Done(Entries::new(value))))
            }
            Status::SubdocMultiPathFailure | Status::SubdocMultiPathFailureDeleted => {
                const WHAT: &str = "the failure of a mutation";
                let mut reader = ByteReader::new(value);
                let index = reader.u8(WHAT)?;
                let status = Status::from_code(reader.u16(WHAT)?);
                reader.finish(WHAT)?;
                Ok(Some(Self::Failed { index, status }))
            }
            _ => Ok(None),
        }
    }

    /// The body that says which mutation failed, for a response with the status
    /// `SubdocMultiPathFailure`. The body of a success is a slice of [`PathMutationResult`]s.
    pub fn failure_body(index: u8, status: Status) -> [u8; 3] {
        let [high, low] = status.code().to_be_bytes();
        [index, high, low]
    }
}

impl Encode for MutationSpec<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        let path = EncodeError::check("a path", self.path.len(), u16::MAX.into())?;
        let value = EncodeError::check(
            "the value of a mutation",
            self.value.len(),
            u32::MAX as usize,
        )?;
        Ok(8 + path + value)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u8(self.opcode.code());
        out.put_u8(self.flags.bits());
        out.put_u16(self.path.len() as u16);
        out.put_u32(self.value.len() as u32);
        out.put_slice(self.path);
        out.put_slice(self.value);
    }
}

impl<'a> ReadEntry<'a> for MutationSpec<'a> {
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "a mutation spec";
        let opcode = Opcode::from_code(reader.u8(WHAT)?);
        let flags = PathFlags::from_bits_retain(reader.u8(WHAT)?);
        let path_len = reader.u16(WHAT)?;
        let value_len = reader.u32(WHAT)?;
        Ok(Self {
            opcode,
            flags,
            path: reader.bytes("the path of a mutation", path_len.into())?,
            value: reader.bytes("the value of a mutation", value_len as usize)?,
        })
    }
}

impl Encode for PathMutationResult<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        let value = EncodeError::check(
            "the result of a mutation",
            self.value.len(),
            u32::MAX as usize,
        )?;
        Ok(7 + value)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u8(self.index);
        out.put_u16(self.status.code());
        out.put_u32(self.value.len() as u32);
        out.put_slice(self.value);
    }
}

impl<'a> ReadEntry<'a> for PathMutationResult<'a> {
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "the result of a mutation";
        let index = reader.u8(WHAT)?;
        let status = Status::from_code(reader.u16(WHAT)?);
        let len = reader.u32(WHAT)?;
        Ok(Self {
            index,
            status,
            value: reader.bytes(WHAT, len as usize)?,
        })
    }
}
