//! Statuses of responses.

use super::open_enum::open_enum;

open_enum! {
    /// The status of a response.
    ///
    /// Names are those of the server's own error map, so that logs on both sides agree. A status
    /// that is [`Status::Unknown`] means that the operation was not performed; what to do about
    /// it, the error map of the connection says (RFC 0013).
    pub enum Status: u16, unknown UnknownStatus {
        /// Done.
        Success = 0x00 "SUCCESS",
        /// There is no such document.
        KeyNotFound = 0x01 "KEY_ENOENT",
        /// The document exists already, or has another CAS.
        KeyExists = 0x02 "KEY_EEXISTS",
        /// The value is larger than the server allows.
        TooBig = 0x03 "E2BIG",
        /// The request is invalid.
        InvalidArguments = 0x04 "EINVAL",
        /// The document could not be stored, for example appended to when missing.
        NotStored = 0x05 "NOT_STORED",
        /// A counter operation met a document that is no number.
        DeltaBadValue = 0x06 "DELTA_BADVAL",
        /// This node does not own the vbucket; the body may be a config.
        NotMyVbucket = 0x07 "NOT_MY_VBUCKET",
        /// No bucket is selected on this connection.
        NoBucket = 0x08 "NO_BUCKET",
        /// The document is locked.
        Locked = 0x09 "LOCKED",
        /// There is no such DCP stream.
        StreamNotFound = 0x0a "STREAM_NOT_FOUND",
        /// The opaque is not the one of the DCP stream.
        OpaqueNoMatch = 0x0b "OPAQUE_NO_MATCH",
        /// The request would have been throttled.
        WouldThrottle = 0x0c "EWOULD_THROTTLE",
        /// The node has the bucket's config and not its data.
        ConfigOnly = 0x0d "ECONFIG_ONLY",
        /// The document is not locked.
        NotLocked = 0x0e "NOT_LOCKED",
        /// The CAS given cannot be one.
        CasInvalid = 0x0f "CAS_VALUE_INVALID",
        /// The credentials expired; authenticate again.
        AuthStale = 0x1f "AUTH_STALE",
        /// The credentials are wrong.
        AuthError = 0x20 "AUTH_ERROR",
        /// Authentication needs another step.
        AuthContinue = 0x21 "AUTH_CONTINUE",
        /// A number is out of its range.
        OutOfRange = 0x22 "ERANGE",
        /// A DCP consumer has to roll back.
        Rollback = 0x23 "ROLLBACK",
        /// The user may not do this.
        AccessError = 0x24 "EACCESS",
        /// The server is still starting.
        NotInitialized = 0x25 "NOT_INITIALIZED",
        /// The key that the data is encrypted with is missing.
        EncryptionKeyNotAvailable = 0x26 "ENCRYPTION_KEY_NOT_AVAILABLE",
        /// The data's checksum is wrong.
        ChecksumMismatch = 0x27 "CHECKSUM_MISMATCH",
        /// The expiry does not fit the 32 bits it has.
        ExpiryOverflow = 0x28 "EXPIRY_OVERFLOW",
        /// The lock time does not fit the 32 bits it has.
        LockExpiryOverflow = 0x29 "LOCK_EXPIRY_OVERFLOW",
        /// Too many bytes received.
        RateLimitedNetworkIngress = 0x30 "RATE_LIMITED_NETWORK_INGRESS",
        /// Too many bytes sent.
        RateLimitedNetworkEgress = 0x31 "RATE_LIMITED_NETWORK_EGRESS",
        /// Too many connections.
        RateLimitedMaxConnections = 0x32 "RATE_LIMITED_MAX_CONNECTIONS",
        /// Too many commands.
        RateLimitedMaxCommands = 0x33 "RATE_LIMITED_MAX_COMMANDS",
        /// The scope is full. Old servers only; no error map has it.
        ScopeSizeLimitExceeded = 0x34 "SCOPE_SIZE_LIMIT_EXCEEDED",
        /// The bucket is full.
        BucketSizeLimitExceeded = 0x35 "BUCKET_SIZE_LIMIT_EXCEEDED",
        /// Too little of the bucket is in memory.
        BucketResidentRatioTooLow = 0x36 "BUCKET_RESIDENT_RATIO_TOO_LOW",
        /// The bucket holds more data than allowed.
        BucketDataSizeTooBig = 0x37 "BUCKET_DATA_SIZE_TOO_BIG",
        /// The disk is too full.
        BucketDiskSpaceTooLow = 0x38 "BUCKET_DISK_SPACE_TOO_LOW",
        /// The bucket is paused.
        BucketPaused = 0x50 "BUCKET_PAUSED",
        /// The request was cancelled and had no effect.
        Cancelled = 0x51 "CANCELLED",
        /// The server does not know a frame info.
        UnknownFrameInfo = 0x80 "UNKNOWN_FRAME_INFO",
        /// The server does not know the opcode.
        UnknownCommand = 0x81 "UNKNOWN_COMMAND",
        /// There is no memory for this now.
        OutOfMemory = 0x82 "ENOMEM",
        /// This bucket or server cannot do that.
        NotSupported = 0x83 "NOT_SUPPORTED",
        /// Something broke inside the server.
        InternalError = 0x84 "EINTERNAL",
        /// The server is busy.
        Busy = 0x85 "EBUSY",
        /// It failed, and may work shortly.
        TemporaryFailure = 0x86 "ETMPFAIL",
        /// The extended attributes are malformed.
        XattrInvalid = 0x87 "XATTR_EINVAL",
        /// There is no such collection.
        UnknownCollection = 0x88 "UNKNOWN_COLLECTION",
        /// The manifest does not follow from the one in force.
        CannotApplyCollectionsManifest = 0x8a "CANNOT_APPLY_COLLECTIONS_MANIFEST",
        /// There is no such scope.
        UnknownScope = 0x8c "UNKNOWN_SCOPE",
        /// A DCP stream id is missing, or not wanted.
        DcpStreamIdInvalid = 0x8d "DCP stream-ID invalid",
        /// There is no such durability level.
        DurabilityInvalidLevel = 0xa0 "DurabilityInvalidLevel",
        /// There are too few replicas for the level.
        DurabilityImpossible = 0xa1 "DurabilityImpossible",
        /// Another durable write of this document is under way.
        SyncWriteInProgress = 0xa2 "SyncWriteInProgress",
        /// The durable write may have succeeded, or not.
        SyncWriteAmbiguous = 0xa3 "SyncWriteAmbiguous",
        /// A durable write is being committed again after a failover.
        SyncWriteReCommitInProgress = 0xa4 "SyncWriteReCommitInProgress",
        /// The range scan was cancelled.
        RangeScanCancelled = 0xa5 "RangeScanCancelled",
        /// The range scan has more to give.
        RangeScanMore = 0xa6 "RangeScanMore",
        /// The range scan is done.
        RangeScanComplete = 0xa7 "RangeScanComplete",
        /// The vbucket has another history than the client believes.
        VbucketUuidNotEqual = 0xa8 "VbUuidNotEqual",
        /// The path is not in the document.
        SubdocPathNotFound = 0xc0 "SUBDOC_PATH_ENOENT",
        /// The path goes through something of another type.
        SubdocPathMismatch = 0xc1 "SUBDOC_PATH_MISMATCH",
        /// The path is malformed.
        SubdocPathInvalid = 0xc2 "SUBDOC_PATH_EINVAL",
        /// The path is too long.
        SubdocPathTooBig = 0xc3 "SUBDOC_PATH_E2BIG",
        /// The path has too many components.
        SubdocPathTooDeep = 0xc4 "SUBDOC_PATH_E2DEEP",
        /// The value cannot stand there.
        SubdocValueCannotInsert = 0xc5 "SUBDOC_VALUE_CANTINSERT",
        /// The document is not JSON.
        SubdocDocNotJson = 0xc6 "SUBDOC_DOC_NOTJSON",
        /// The number at the path is out of range.
        SubdocNumberOutOfRange = 0xc7 "SUBDOC_NUM_ERANGE",
        /// The delta is zero, no number, or out of range.
        SubdocDeltaInvalid = 0xc8 "SUBDOC_DELTA_EINVAL",
        /// The path exists already.
        SubdocPathExists = 0xc9 "SUBDOC_PATH_EEXISTS",
        /// The value would nest too deep.
        SubdocValueTooDeep = 0xca "SUBDOC_VALUE_ETOODEEP",
        /// These commands cannot stand in one body.
        SubdocInvalidCombo = 0xcb "SUBDOC_INVALID_COMBO",
        /// Some path failed; the body says which.
        SubdocMultiPathFailure = 0xcc "SUBDOC_MULTI_PATH_FAILURE",
        /// Done, on a deleted document.
        SubdocSuccessDeleted = 0xcd "SUBDOC_SUCCESS_DELETED",
        /// These flags do not go together.
        SubdocXattrInvalidFlagCombo = 0xce "SUBDOC_XATTR_INVALID_FLAG_COMBO",
        /// These attributes cannot be used in one request.
        SubdocXattrInvalidKeyCombo = 0xcf "SUBDOC_XATTR_INVALID_KEY_COMBO",
        /// There is no such macro.
        SubdocXattrUnknownMacro = 0xd0 "SUBDOC_XATTR_UNKNOWN_MACRO",
        /// There is no such virtual attribute.
        SubdocXattrUnknownVattr = 0xd1 "SUBDOC_XATTR_UNKNOWN_VATTR",
        /// Virtual attributes are read-only.
        SubdocXattrCannotModifyVattr = 0xd2 "SUBDOC_XATTR_CANT_MODIFY_VATTR",
        /// Some path failed, on a deleted document; the body says which.
        SubdocMultiPathFailureDeleted = 0xd3 "SUBDOC_MULTI_PATH_FAILURE_DELETED",
        /// Attributes must come before the document's own paths.
        SubdocInvalidXattrOrder = 0xd4 "SUBDOC_INVALID_XATTR_ORDER",
        /// There is no such virtual macro.
        SubdocXattrUnknownVattrMacro = 0xd5 "SUBDOC_XATTR_UNKNOWN_VATTR_MACRO",
        /// The document to revive is alive.
        SubdocCanOnlyReviveDeletedDocuments = 0xd6 "SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS",
        /// A deleted document has no body to change.
        SubdocDeletedDocumentCannotHaveValue = 0xd7 "SUBDOC_DELETED_DOCUMENT_CANT_HAVE_VALUE",
        /// The attribute is not binary.
        SubdocFieldNotBinaryValue = 0xd8 "SUBDOC_FIELD_NOT_BINARY_VALUE",
    }
}

impl Status {
    /// Returns whether the request succeeded, which a few statuses besides
    /// [`Status::Success`] say as well: those the error map marks with `success`.
    pub const fn is_success(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::SubdocSuccessDeleted
                | Self::RangeScanCancelled
                | Self::RangeScanMore
                | Self::RangeScanComplete
        )
    }
}
