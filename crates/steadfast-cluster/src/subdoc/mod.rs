//! Reading and changing parts of a document.
//!
//! A subdocument operation names paths inside a JSON document, or inside its
//! extended attributes (xattrs), and does something at each. The folder goes from
//! the small to the whole:
//!
//! - [`path`]: what a path is;
//! - [`tree`]: one operation at one path of one JSON value;
//! - [`attributes`]: the xattrs of a document, the virtual ones, and macros;
//! - [`lookup`] and [`mutate`]: whole requests against one document.
//!
//! Values are parsed, changed and written again, so white space inside a document
//! does not survive a mutation, and an integer beyond 64 bits becomes a float. No
//! SDK notices either.

pub(crate) mod attributes;
pub(crate) mod lookup;
pub(crate) mod mutate;
pub(crate) mod path;
pub(crate) mod tree;

use steadfast_wire::Status;

/// Why an operation at one path, or a whole subdocument request, was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubdocError {
    /// Nothing is at the path, or its parent does not exist.
    #[error("the path does not exist")]
    PathNotFound,
    /// The path goes through a value of the wrong type, or ends in one.
    #[error("the path leads through or to a value of another type")]
    PathMismatch,
    /// This is no path, or not one for this operation.
    #[error("this is no path for this operation")]
    PathInvalid,
    /// Too many bytes or components.
    #[error("the path is too long")]
    PathTooBig,
    /// The value to insert is no JSON, or not of a type that may go here.
    #[error("the value cannot be inserted here")]
    ValueCannotInsert,
    /// The document is not JSON.
    #[error("the document is not JSON")]
    DocumentNotJson,
    /// The number in the document is no 64-bit integer.
    #[error("the number in the document is out of range")]
    NumberRange,
    /// The delta is zero, no number, or beyond 64 bits.
    #[error("the delta is not usable")]
    DeltaInvalid,
    /// Something is at the path already.
    #[error("the path exists already")]
    PathExists,
    /// The value to insert is nested too deep.
    #[error("the value is nested too deep")]
    ValueTooDeep,
    /// The operations of the request do not go together.
    #[error("these operations or flags do not go together")]
    InvalidCombination,
    /// The flags of an xattr operation do not go together.
    #[error("these xattr flags do not go together")]
    XattrFlagCombination,
    /// The macro is not known.
    #[error("unknown macro")]
    UnknownMacro,
    /// The virtual attribute is not known.
    #[error("unknown virtual attribute")]
    UnknownVirtual,
    /// Virtual attributes are read-only.
    #[error("virtual attributes cannot be changed")]
    VirtualReadOnly,
    /// Operations on xattrs must come before those on the body.
    #[error("xattr operations come before body operations")]
    XattrOrder,
    /// Only a deleted document can be revived.
    #[error("only a deleted document can be revived")]
    ReviveNeedsTombstone,
    /// A deleted document has no body to change.
    #[error("a deleted document cannot have a value")]
    TombstoneHasNoValue,
    /// The request itself makes no sense: unknown flags or a missing part.
    #[error("the request is malformed")]
    Malformed,
}

impl From<SubdocError> for Status {
    fn from(error: SubdocError) -> Self {
        match error {
            SubdocError::PathNotFound => Self::SubdocPathNotFound,
            SubdocError::PathMismatch => Self::SubdocPathMismatch,
            SubdocError::PathInvalid => Self::SubdocPathInvalid,
            SubdocError::PathTooBig => Self::SubdocPathTooBig,
            SubdocError::ValueCannotInsert => Self::SubdocValueCannotInsert,
            SubdocError::DocumentNotJson => Self::SubdocDocNotJson,
            SubdocError::NumberRange => Self::SubdocNumberOutOfRange,
            SubdocError::DeltaInvalid => Self::SubdocDeltaInvalid,
            SubdocError::PathExists => Self::SubdocPathExists,
            SubdocError::ValueTooDeep => Self::SubdocValueTooDeep,
            SubdocError::InvalidCombination => Self::SubdocInvalidCombo,
            SubdocError::XattrFlagCombination => Self::SubdocXattrInvalidFlagCombo,
            SubdocError::UnknownMacro => Self::SubdocXattrUnknownMacro,
            SubdocError::UnknownVirtual => Self::SubdocXattrUnknownVattr,
            SubdocError::VirtualReadOnly => Self::SubdocXattrCannotModifyVattr,
            SubdocError::XattrOrder => Self::SubdocInvalidXattrOrder,
            SubdocError::ReviveNeedsTombstone => Self::SubdocCanOnlyReviveDeletedDocuments,
            SubdocError::TombstoneHasNoValue => Self::SubdocDeletedDocumentCannotHaveValue,
            SubdocError::Malformed => Self::InvalidArguments,
        }
    }
}
