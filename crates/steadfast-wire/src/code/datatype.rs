//! Datatypes: flags for the format of a value.

use bitflags::bitflags;

bitflags! {
    /// The datatype byte. Bits that this version has no name for are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Datatype: u8 {
        /// The value is JSON. On a response with an error status this bit says that the body is an
        /// extended error body; without it the body must be ignored (RFC 0028).
        const JSON = 0x01;
        /// The value is compressed with Snappy, the raw format without its framing.
        const SNAPPY = 0x02;
        /// Extended attributes come before the value.
        const XATTR = 0x04;
    }
}

impl Datatype {
    /// No bits: the value is just bytes.
    pub const RAW: Self = Self::empty();
}
