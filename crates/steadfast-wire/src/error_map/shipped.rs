//! The error map that servers ship.

use super::{Attributes, ErrorDefinition, ErrorMap, MapVersion};
use crate::Status;

/// The attributes that a client of version 1 could not know, and would not ignore.
const NEW_IN_V2: Attributes = Attributes::RATE_LIMIT
    .union(Attributes::SYSTEM_CONSTRAINT)
    .union(Attributes::NO_RETRY);

pub(super) fn map(version: MapVersion) -> ErrorMap {
    // The revisions are those of the server. That of version 1 is the greater one for historical
    // reasons.
    let (revision, left_out) = match version {
        MapVersion::V1 => (13, NEW_IN_V2),
        MapVersion::V2 => (9, Attributes::empty()),
    };
    let define = |status: Status| {
        let attributes = attributes(status)?.difference(left_out);
        let definition = ErrorDefinition {
            name: status.name()?.to_owned(),
            description: status.description()?.to_owned(),
            attributes,
            retry: None,
        };
        Some((status.code(), definition))
    };
    ErrorMap {
        version,
        revision,
        errors: Status::KNOWN.iter().copied().filter_map(define).collect(),
    }
}

/// The attributes of a status; `None` if the map does not have it. Without a wildcard, so that a
/// new status cannot be forgotten here.
fn attributes(status: Status) -> Option<Attributes> {
    use Attributes as A;
    use Status as S;
    Some(match status {
        S::Success | S::RangeScanCancelled | S::RangeScanMore | S::RangeScanComplete => A::SUCCESS,
        S::SubdocSuccessDeleted => A::ITEM_DELETED | A::SUBDOC | A::SUCCESS,

        S::KeyNotFound | S::KeyExists | S::NotLocked | S::CasInvalid | S::SyncWriteAmbiguous => {
            A::ITEM_ONLY
        }
        S::TooBig | S::DeltaBadValue | S::DurabilityImpossible => A::ITEM_ONLY | A::INVALID_INPUT,
        S::InvalidArguments => A::INTERNAL | A::INVALID_INPUT,
        S::NotStored => A::INTERNAL | A::ITEM_ONLY,
        S::OutOfRange
        | S::XattrInvalid
        | S::UnknownCollection
        | S::CannotApplyCollectionsManifest
        | S::UnknownScope
        | S::DcpStreamIdInvalid
        | S::DurabilityInvalidLevel
        | S::VbucketUuidNotEqual => A::INVALID_INPUT,

        S::NotMyVbucket => A::FETCH_CONFIG | A::INVALID_INPUT,
        S::ConfigOnly => A::FETCH_CONFIG | A::RETRY_NOW,
        S::Locked => A::ITEM_LOCKED | A::ITEM_ONLY | A::RETRY_NOW,
        S::Cancelled => A::ITEM_ONLY | A::RETRY_NOW,
        S::Busy | S::TemporaryFailure => A::TEMP | A::RETRY_NOW,
        S::OutOfMemory => A::TEMP | A::RETRY_LATER,
        S::SyncWriteInProgress | S::SyncWriteReCommitInProgress => A::ITEM_ONLY | A::RETRY_LATER,
        S::WouldThrottle
        | S::RateLimitedNetworkIngress
        | S::RateLimitedNetworkEgress
        | S::RateLimitedMaxCommands => A::TEMP | A::RETRY_LATER | A::RATE_LIMIT,
        S::ExpiryOverflow
        | S::LockExpiryOverflow
        | S::BucketSizeLimitExceeded
        | S::BucketResidentRatioTooLow
        | S::BucketDataSizeTooBig
        | S::BucketDiskSpaceTooLow => A::ITEM_ONLY | A::SYSTEM_CONSTRAINT | A::NO_RETRY,

        S::NoBucket | S::StreamNotFound | S::OpaqueNoMatch | S::NotInitialized => {
            A::CONN_STATE_INVALIDATED
        }
        S::AuthStale | S::AuthError => A::CONN_STATE_INVALIDATED | A::AUTH,
        S::RateLimitedMaxConnections => A::CONN_STATE_INVALIDATED | A::RATE_LIMIT,
        S::InternalError => A::CONN_STATE_INVALIDATED | A::INTERNAL,

        S::AuthContinue | S::EncryptionKeyNotAvailable | S::ChecksumMismatch => A::SPECIAL_HANDLING,
        S::Rollback => A::DCP | A::SPECIAL_HANDLING,
        S::AccessError
        | S::BucketPaused
        | S::UnknownFrameInfo
        | S::UnknownCommand
        | S::NotSupported => A::SUPPORT,

        S::SubdocPathNotFound
        | S::SubdocPathMismatch
        | S::SubdocDocNotJson
        | S::SubdocNumberOutOfRange
        | S::SubdocDeltaInvalid
        | S::SubdocPathExists
        | S::SubdocCanOnlyReviveDeletedDocuments
        | S::SubdocDeletedDocumentCannotHaveValue
        | S::SubdocFieldNotBinaryValue => A::SUBDOC | A::ITEM_ONLY,
        S::SubdocPathInvalid
        | S::SubdocPathTooBig
        | S::SubdocPathTooDeep
        | S::SubdocValueCannotInsert
        | S::SubdocInvalidCombo
        | S::SubdocXattrInvalidFlagCombo
        | S::SubdocXattrInvalidKeyCombo
        | S::SubdocXattrUnknownMacro
        | S::SubdocXattrUnknownVattr
        | S::SubdocXattrCannotModifyVattr
        | S::SubdocInvalidXattrOrder
        | S::SubdocXattrUnknownVattrMacro => A::SUBDOC | A::INVALID_INPUT,
        S::SubdocValueTooDeep => A::SUBDOC | A::INVALID_INPUT | A::ITEM_ONLY,
        S::SubdocMultiPathFailure => A::SUBDOC | A::SPECIAL_HANDLING,
        S::SubdocMultiPathFailureDeleted => A::ITEM_DELETED | A::SUBDOC | A::SPECIAL_HANDLING,

        S::ScopeSizeLimitExceeded | S::Unknown(_) => return None,
    })
}
