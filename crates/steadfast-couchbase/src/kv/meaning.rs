//! The one table of what a response status means to an operation.
//!
//! RFC 0049, "Response Code Retry List": a complete, known response is final,
//! unless its status is on the list. The server's error map explains statuses that
//! the client does not know (RFC 0013; decision D27 in docs/decisions.md). A
//! status that the map does not explain either is final too.
//!
//! The client knows the statuses of the list and those for which SDK RFC 0058 has
//! an error kind. It does not consult the map about them, because the kind tells a
//! caller more than any attribute. A few more statuses mean the same as one of
//! those kinds (`EINVAL`, `NOT_STORED`, `DELTA_BADVAL`, `NO_BUCKET`, `NOT_LOCKED`,
//! `UNKNOWN_FRAME_INFO`) and count as known too. The map explains the rest, among
//! them `EWOULD_THROTTLE`, `ECONFIG_ONLY` and `CANCELLED`, for which the maps that
//! servers ship ask for a retry.

use steadfast::{Failure, Reason};
use steadfast_wire::error_map::{Attributes, ErrorDefinition, ErrorMap};
use steadfast_wire::subdoc::MutationOutcome;
use steadfast_wire::{Frame, Status};

use super::operation::KvOperation;
use crate::error::ErrorKind;
use crate::reason::{
    KV_COLLECTION_OUTDATED, KV_ERROR_MAP_RETRY_INDICATED, KV_LOCKED, KV_NOT_MY_VBUCKET,
    KV_SYNC_WRITE_IN_PROGRESS, KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS, KV_TEMPORARY_FAILURE,
};

/// What to do next with an operation that got a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Return the response: the operation succeeded.
    Done,
    /// Return an error of this kind: the operation failed, and that is final.
    Final(ErrorKind),
    /// Return the error of one path. The body says which path and why; see
    /// [`failed_path`].
    FailedAtPath,
    /// Send it to the node that has the vbucket now.
    Reroute,
    /// Forget the collection's id, then retry.
    DropCollectionId,
    /// Retry as the server's error map says.
    ObeyErrorMap,
    /// Retry later: the node is overloaded.
    Throttled,
    /// Retry for this reason; without a retry it is an error of this kind.
    Retry(&'static Reason, ErrorKind),
}

impl Disposition {
    /// Returns the failure of the attempt, and the kind of the error without a retry.
    /// `None` if the operation ends here.
    pub(crate) fn failure(self) -> Option<(Failure, ErrorKind)> {
        let (reason, kind) = match self {
            Self::Done | Self::Final(_) | Self::FailedAtPath => return None,
            Self::Reroute => (&KV_NOT_MY_VBUCKET, ErrorKind::Couchbase),
            Self::DropCollectionId => (&KV_COLLECTION_OUTDATED, ErrorKind::CollectionNotFound),
            Self::ObeyErrorMap => (&KV_ERROR_MAP_RETRY_INDICATED, ErrorKind::Couchbase),
            Self::Throttled => {
                let failure = Failure::responded(&KV_TEMPORARY_FAILURE).throttling();
                return Some((failure, ErrorKind::TemporaryFailure));
            }
            Self::Retry(reason, kind) => (reason, kind),
        };
        Some((Failure::responded(reason), kind))
    }
}

/// The meaning of a response, for the operation and for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) disposition: Disposition,
    /// The connection is unusable from now on.
    pub(crate) closes_connection: bool,
    /// There is probably a newer config.
    pub(crate) fetches_config: bool,
}

impl From<Disposition> for Meaning {
    fn from(disposition: Disposition) -> Self {
        Self {
            disposition,
            closes_connection: false,
            fetches_config: matches!(disposition, Disposition::Reroute),
        }
    }
}

/// Returns what a status means to an operation, on a connection with this error map.
/// `with_cas` says that the request named a version of the document.
pub(crate) fn meaning(
    operation: KvOperation,
    with_cas: bool,
    status: Status,
    map: Option<&ErrorMap>,
) -> Meaning {
    match known(operation, with_cas, status) {
        Some(meaning) => meaning,
        None => match map.and_then(|map| map.get(status)) {
            Some(definition) => explained(definition),
            None => Disposition::Final(ErrorKind::Couchbase).into(),
        },
    }
}

/// The meaning of a status that the client knows.
fn known(operation: KvOperation, with_cas: bool, status: Status) -> Option<Meaning> {
    use KvOperation as Op;
    let retry = |reason, kind| Some(Disposition::Retry(reason, kind).into());
    let is = |kind| Some(Disposition::Final(kind).into());
    let closes = |kind| {
        Some(Meaning {
            closes_connection: true,
            ..Disposition::Final(kind).into()
        })
    };
    match (status, operation) {
        (Status::Success, _) => Some(Disposition::Done.into()),

        // The list.
        (Status::NotMyVbucket, _) => Some(Disposition::Reroute.into()),
        // Here it means that the collection does not exist (D10).
        (Status::UnknownCollection, Op::GetCollectionId) => is(ErrorKind::CollectionNotFound),
        (Status::UnknownCollection, _) => Some(Disposition::DropCollectionId.into()),
        // Another client holds the lock: to the user, the CAS is wrong (D12).
        (Status::Locked, Op::Unlock) => is(ErrorKind::CasMismatch),
        // Only a document that exists is locked.
        (Status::Locked, Op::Exists) => Some(Disposition::Done.into()),
        (Status::Locked, _) => retry(&KV_LOCKED, ErrorKind::DocumentLocked),
        (Status::TemporaryFailure, _) => Some(Disposition::Throttled.into()),
        (Status::SyncWriteInProgress, _) => retry(
            &KV_SYNC_WRITE_IN_PROGRESS,
            ErrorKind::DurableWriteInProgress,
        ),
        (Status::SyncWriteReCommitInProgress, _) => retry(
            &KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS,
            ErrorKind::DurableWriteReCommitInProgress,
        ),

        // Known and final.
        (Status::KeyNotFound, Op::Exists) => Some(Disposition::Done.into()),
        (Status::KeyNotFound, _) => is(ErrorKind::DocumentNotFound),
        // With a CAS the version differs; without one the document was required
        // not to exist (RFC 0058, 9 and 105).
        (Status::KeyExists, _) if with_cas => is(ErrorKind::CasMismatch),
        (Status::KeyExists, _) => is(ErrorKind::DocumentExists),
        (Status::NotStored, Op::Insert) => is(ErrorKind::DocumentExists),
        (Status::NotStored, Op::Append | Op::Prepend | Op::Replace) => {
            is(ErrorKind::DocumentNotFound)
        }
        (Status::NotLocked, _) => is(ErrorKind::DocumentNotLocked),
        (Status::TooBig, _) => is(ErrorKind::ValueTooLarge),
        // An extended attribute, such as one whose key has more than 15 bytes.
        (Status::InvalidArguments | Status::XattrInvalid, _) => is(ErrorKind::InvalidArgument),
        (Status::DeltaBadValue, _) => is(ErrorKind::DeltaInvalid),
        (Status::AccessError | Status::AuthError, _) => is(ErrorKind::AuthenticationFailure),
        (Status::OutOfMemory | Status::Busy, _) => is(ErrorKind::TemporaryFailure),
        (Status::UnknownScope, _) => is(ErrorKind::ScopeNotFound),
        (
            Status::RateLimitedNetworkIngress
            | Status::RateLimitedNetworkEgress
            | Status::RateLimitedMaxConnections
            | Status::RateLimitedMaxCommands,
            _,
        ) => is(ErrorKind::RateLimited),
        (Status::ScopeSizeLimitExceeded, _) => is(ErrorKind::QuotaLimited),
        (Status::UnknownCommand | Status::NotSupported, _) => is(ErrorKind::UnsupportedOperation),
        (Status::UnknownFrameInfo, _) => is(ErrorKind::FeatureNotAvailable),
        (Status::DurabilityInvalidLevel, _) => is(ErrorKind::DurabilityLevelNotAvailable),
        (Status::DurabilityImpossible, _) => is(ErrorKind::DurabilityImpossible),
        (Status::SyncWriteAmbiguous, _) => is(ErrorKind::DurabilityAmbiguous),

        // Known and final, and the connection is unusable.
        (Status::InternalError, _) => closes(ErrorKind::InternalServerFailure),
        (Status::NotInitialized, _) => closes(ErrorKind::TemporaryFailure),
        (Status::NoBucket, _) => closes(ErrorKind::BucketNotFound),
        (Status::AuthStale, _) => closes(ErrorKind::AuthenticationFailure),

        // Subdocuments. A lookup has a status for each path and succeeds as a
        // whole; a mutation is applied completely or not at all.
        (
            Status::SubdocMultiPathFailure
            | Status::SubdocMultiPathFailureDeleted
            | Status::SubdocSuccessDeleted,
            Op::LookupIn | Op::GetWithExpiry | Op::Exists,
        )
        | (Status::SubdocSuccessDeleted, Op::MutateIn) => Some(Disposition::Done.into()),
        (Status::SubdocMultiPathFailure | Status::SubdocMultiPathFailureDeleted, Op::MutateIn) => {
            Some(Disposition::FailedAtPath.into())
        }
        (status, _) => subdocument(status).map(|kind| Disposition::Final(kind).into()),
    }
}

/// Returns whether a response with this status proves that the operation was not applied
/// (decision D65). These statuses are known one by one, from the protocol's documentation: the
/// server rejects the request before it does anything, or a subdocument mutation as a whole.
/// Attributes of the error map prove nothing.
pub(crate) fn proves_not_applied(status: Status) -> bool {
    use Status as S;
    match status {
        // The document, its lock or its version.
        S::KeyNotFound | S::KeyExists | S::NotStored | S::Locked | S::NotLocked | S::CasInvalid => {
            true
        }
        // The request.
        S::TooBig
        | S::InvalidArguments
        | S::DeltaBadValue
        | S::OutOfRange
        | S::ExpiryOverflow
        | S::LockExpiryOverflow
        | S::UnknownFrameInfo
        | S::UnknownCommand
        | S::NotSupported
        | S::XattrInvalid
        | S::DurabilityInvalidLevel => true,
        // The place.
        S::NotMyVbucket | S::NoBucket | S::UnknownCollection | S::UnknownScope | S::ConfigOnly => {
            true
        }
        // The user.
        S::AuthError | S::AuthStale | S::AccessError | S::NotInitialized => true,
        // The load, and limits.
        S::OutOfMemory
        | S::Busy
        | S::TemporaryFailure
        | S::WouldThrottle
        | S::RateLimitedNetworkIngress
        | S::RateLimitedNetworkEgress
        | S::RateLimitedMaxConnections
        | S::RateLimitedMaxCommands
        | S::ScopeSizeLimitExceeded
        | S::BucketSizeLimitExceeded
        | S::BucketResidentRatioTooLow
        | S::BucketDataSizeTooBig
        | S::BucketDiskSpaceTooLow
        | S::BucketPaused => true,
        // Durable writes that did not begin.
        S::DurabilityImpossible | S::SyncWriteInProgress | S::SyncWriteReCommitInProgress => true,
        // A path, or an extended attribute.
        S::SubdocPathNotFound
        | S::SubdocPathMismatch
        | S::SubdocPathInvalid
        | S::SubdocPathTooBig
        | S::SubdocPathTooDeep
        | S::SubdocValueCannotInsert
        | S::SubdocDocNotJson
        | S::SubdocNumberOutOfRange
        | S::SubdocDeltaInvalid
        | S::SubdocPathExists
        | S::SubdocValueTooDeep
        | S::SubdocInvalidCombo
        | S::SubdocMultiPathFailure
        | S::SubdocMultiPathFailureDeleted
        | S::SubdocXattrInvalidFlagCombo
        | S::SubdocXattrInvalidKeyCombo
        | S::SubdocXattrUnknownMacro
        | S::SubdocXattrUnknownVattr
        | S::SubdocXattrCannotModifyVattr
        | S::SubdocInvalidXattrOrder
        | S::SubdocXattrUnknownVattrMacro
        | S::SubdocCanOnlyReviveDeletedDocuments
        | S::SubdocDeletedDocumentCannotHaveValue
        | S::SubdocFieldNotBinaryValue => true,
        // Everything else may come after the operation, or is not known.
        _ => false,
    }
}

/// The error kinds that only paths have (RFC 0058, 113 to 128, and 3).
fn subdocument(status: Status) -> Option<ErrorKind> {
    Some(match status {
        Status::SubdocPathNotFound => ErrorKind::PathNotFound,
        Status::SubdocPathMismatch => ErrorKind::PathMismatch,
        Status::SubdocPathInvalid => ErrorKind::PathInvalid,
        Status::SubdocPathTooBig => ErrorKind::PathTooBig,
        Status::SubdocPathTooDeep => ErrorKind::PathTooDeep,
        Status::SubdocValueCannotInsert => ErrorKind::ValueInvalid,
        Status::SubdocDocNotJson => ErrorKind::DocumentNotJson,
        Status::SubdocNumberOutOfRange => ErrorKind::NumberTooBig,
        Status::SubdocDeltaInvalid => ErrorKind::DeltaInvalid,
        Status::SubdocPathExists => ErrorKind::PathExists,
        Status::SubdocValueTooDeep => ErrorKind::ValueTooDeep,
        Status::SubdocInvalidCombo => ErrorKind::InvalidArgument,
        Status::SubdocXattrInvalidKeyCombo => ErrorKind::XattrInvalidKeyCombo,
        Status::SubdocXattrUnknownMacro => ErrorKind::XattrUnknownMacro,
        Status::SubdocXattrUnknownVattr => ErrorKind::XattrUnknownVirtualAttribute,
        Status::SubdocXattrCannotModifyVattr => ErrorKind::XattrCannotModifyVirtualAttribute,
        _ => return None,
    })
}

/// The error kind for the status of one path.
pub(crate) fn path_error(status: Status) -> ErrorKind {
    match status {
        // For a document it concerns the user; for a path, an attribute that this
        // user must not access (RFC 0058, 130).
        Status::AccessError => ErrorKind::XattrNoAccess,
        Status::InvalidArguments => ErrorKind::InvalidArgument,
        Status::TooBig => ErrorKind::ValueTooLarge,
        status => subdocument(status).unwrap_or(ErrorKind::Couchbase),
    }
}

/// The path at which a mutation failed, as an index into those sent, and its
/// status. `None` if the response does not say.
pub(crate) fn failed_path(response: &Frame) -> Option<(u8, Status)> {
    // Three bytes, which servers do not compress but may.
    let value = response.plain_value(64).ok()?;
    match MutationOutcome::decode(response.status(), &value).ok()?? {
        MutationOutcome::Failed { index, status } => Some((index, status)),
        MutationOutcome::Done(_) => None,
    }
}

/// The meaning of a status that only the error map explains (D27).
fn explained(definition: &ErrorDefinition) -> Meaning {
    let has = |attribute| definition.attributes.contains(attribute);
    Meaning {
        disposition: if definition.indicates_retry() {
            Disposition::ObeyErrorMap
        } else if has(Attributes::SUCCESS) {
            Disposition::Done
        } else {
            Disposition::Final(ErrorKind::Couchbase)
        },
        closes_connection: has(Attributes::CONN_STATE_INVALIDATED)
            || has(Attributes::SPECIAL_HANDLING),
        fetches_config: has(Attributes::FETCH_CONFIG),
    }
}
