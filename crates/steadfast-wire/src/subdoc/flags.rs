//! Flags of subdocument commands.

use bitflags::bitflags;

bitflags! {
    /// Flags of one path. Bits without a name are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PathFlags: u8 {
        /// Create the objects that the path goes through.
        const CREATE_PARENTS = 0x01;
        /// The path is one of an extended attribute.
        const XATTR = 0x04;
        /// Expand macros such as `${Mutation.CAS}` in the value. Needs [`PathFlags::XATTR`].
        const EXPAND_MACROS = 0x10;
        /// The value is binary, and stored in base64. Needs [`PathFlags::XATTR`].
        const BINARY = 0x20;
    }

    /// Flags of the whole document. Bits without a name are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct DocFlags: u8 {
        /// Create the document if it is missing. Implies [`PathFlags::CREATE_PARENTS`].
        const UPSERT = 0x01;
        /// Create the document, which must be missing. Excludes [`DocFlags::UPSERT`].
        const INSERT = 0x02;
        /// See deleted documents, which may still have extended attributes.
        const ACCESS_DELETED = 0x04;
        /// Create the document in its deleted state.
        const CREATE_AS_DELETED = 0x08;
        /// Bring a deleted document back.
        const REVIVE = 0x10;
        /// Read from a replica.
        const REPLICA_READ = 0x20;
    }
}
