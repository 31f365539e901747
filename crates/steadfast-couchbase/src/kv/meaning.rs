//! What an answer means.
//!
//! RFC 0049, "Response Code Retry List": a complete, known answer is final,
//! unless it is on the list. What the client does not know itself, the server's
//! error map explains (RFC 0013; D27), and what the map does not explain either
//! is final too.
//!
//! Known are the statuses of the list and those for which SDK RFC 0058 has a kind
//! of error: the kind says more to a caller than any attribute, so the map is not
//! asked about them. A few more mean the same as one of those kinds
//! (`EINVAL`, `NOT_STORED`, `DELTA_BADVAL`, `NO_BUCKET`, `NOT_LOCKED`,
//! `UNKNOWN_FRAME_INFO`) and count as known too. The rest, named by the protocol
//! or not, is the map's to explain: among them `EWOULD_THROTTLE`, `ECONFIG_ONLY`
//! and `CANCELLED`, which the maps that servers ship want retried.

use steadfast::Reason;
use steadfast_wire::error_map::{Attributes, ErrorDefinition, ErrorMap};
use steadfast_wire::subdoc::MutationOutcome;
use steadfast_wire::{Frame, Status};

use super::operation::KvOperation;
use crate::error::ErrorKind;
use crate::reason::{
    KV_COLLECTION_OUTDATED, KV_ERROR_MAP_RETRY_INDICATED, KV_LOCKED, KV_NOT_MY_VBUCKET,
    KV_SYNC_WRITE_IN_PROGRESS, KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS, KV_TEMPORARY_FAILURE,
};

/// What was asked, as far as the meaning of an answer depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) operation: KvOperation,
    /// Whether the document had to have a certain version.
    pub(crate) with_cas: bool,
}

/// What an answer means to the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was done.
    Done,
    /// It was not, and that is final.
    Final(ErrorKind),
    /// It was not, because of one of its paths, and that is final. The body says
    /// which path, and why: see [`failed_path`].
    FailedAtPath,
    /// It was not, and may be tried again; an error of this kind if it is not.
    Retry(&'static Reason, ErrorKind),
}

/// What an answer means altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) verdict: Verdict,
    /// Whether the connection is of no use any more.
    pub(crate) closes_connection: bool,
    /// Whether there is probably a newer config.
    pub(crate) asks_for_config: bool,
}

impl Meaning {
    const fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            closes_connection: false,
            asks_for_config: false,
        }
    }

    const fn closing(mut self) -> Self {
        self.closes_connection = true;
        self
    }

    const fn asking_for_config(mut self) -> Self {
        self.asks_for_config = true;
        self
    }
}

/// What a status means to an operation, on a connection with this error map.
pub(crate) fn meaning(asked: Asked, status: Status, map: Option<&ErrorMap>) -> Meaning {
    match known(asked, status) {
        Some(meaning) => meaning,
        None => match map.and_then(|map| map.get(status)) {
            Some(definition) => explained(definition),
            None => Meaning::of(Verdict::Final(ErrorKind::Couchbase)),
        },
    }
}

/// What the client knows itself.
fn known(asked: Asked, status: Status) -> Option<Meaning> {
    use KvOperation as Op;
    let retry = |reason, kind| Some(Meaning::of(Verdict::Retry(reason, kind)));
    let is = |kind| Some(Meaning::of(Verdict::Final(kind)));
    match (status, asked.operation) {
        (Status::Success, _) => Some(Meaning::of(Verdict::Done)),

        // The list.
        (Status::NotMyVbucket, _) => {
            let verdict = Verdict::Retry(&KV_NOT_MY_VBUCKET, ErrorKind::Couchbase);
            Some(Meaning::of(verdict).asking_for_config())
        }
        // It says there that the collection does not exist (D10).
        (Status::UnknownCollection, Op::GetCollectionId) => is(ErrorKind::CollectionNotFound),
        (Status::UnknownCollection, _) => {
            retry(&KV_COLLECTION_OUTDATED, ErrorKind::CollectionNotFound)
        }
        // Somebody else holds the lock: for the user the CAS is not right (D12).
        (Status::Locked, Op::Unlock) => is(ErrorKind::CasMismatch),
        (Status::Locked, _) => retry(&KV_LOCKED, ErrorKind::DocumentLocked),
        (Status::TemporaryFailure, _) => retry(&KV_TEMPORARY_FAILURE, ErrorKind::TemporaryFailure),
        (Status::SyncWriteInProgress, _) => retry(
            &KV_SYNC_WRITE_IN_PROGRESS,
            ErrorKind::DurableWriteInProgress,
        ),
        (Status::SyncWriteReCommitInProgress, _) => retry(
            &KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS,
            ErrorKind::DurableWriteReCommitInProgress,
        ),

        // Known and final.
        (Status::KeyNotFound, _) => is(ErrorKind::DocumentNotFound),
        // "When replace or remove with CAS", and the same of all that take one;
        // else the document was not to exist (RFC 0058, 9 and 105).
        (Status::KeyExists, _) if asked.with_cas => is(ErrorKind::CasMismatch),
        (Status::KeyExists, _) => is(ErrorKind::DocumentExists),
        (Status::NotStored, Op::Insert) => is(ErrorKind::DocumentExists),
        (Status::NotStored, Op::Append | Op::Prepend | Op::Replace) => {
            is(ErrorKind::DocumentNotFound)
        }
        (Status::NotLocked, _) => is(ErrorKind::DocumentNotLocked),
        (Status::TooBig, _) => is(ErrorKind::ValueTooLarge),
        (Status::InvalidArguments, _) => is(ErrorKind::InvalidArgument),
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

        // Known, final for the operation, and the end of the connection.
        (Status::InternalError, _) => {
            Some(Meaning::of(Verdict::Final(ErrorKind::InternalServerFailure)).closing())
        }
        (Status::NotInitialized, _) => {
            Some(Meaning::of(Verdict::Final(ErrorKind::TemporaryFailure)).closing())
        }
        (Status::NoBucket, _) => {
            Some(Meaning::of(Verdict::Final(ErrorKind::BucketNotFound)).closing())
        }
        (Status::AuthStale, _) => {
            Some(Meaning::of(Verdict::Final(ErrorKind::AuthenticationFailure)).closing())
        }

        // Subdocuments. A lookup has an outcome for each path, and fails for
        // none of them; a mutation is done as a whole or not at all.
        (
            Status::SubdocMultiPathFailure
            | Status::SubdocMultiPathFailureDeleted
            | Status::SubdocSuccessDeleted,
            Op::LookupIn | Op::GetWithExpiry,
        )
        | (Status::SubdocSuccessDeleted, Op::MutateIn) => Some(Meaning::of(Verdict::Done)),
        (Status::SubdocMultiPathFailure | Status::SubdocMultiPathFailureDeleted, Op::MutateIn) => {
            Some(Meaning::of(Verdict::FailedAtPath))
        }
        (status, _) => subdocument(status).map(|kind| Meaning::of(Verdict::Final(kind))),
    }
}

/// The kinds that only paths have (RFC 0058, 113 to 128, and 3).
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

/// The kind of error that the status of one path is.
pub(crate) fn path_error(status: Status) -> ErrorKind {
    match status {
        // Of a document it is a matter of who the user is; of a path, of an
        // attribute that is not for this user (RFC 0058, 130).
        Status::AccessError => ErrorKind::XattrNoAccess,
        Status::InvalidArguments => ErrorKind::InvalidArgument,
        Status::TooBig => ErrorKind::ValueTooLarge,
        status => subdocument(status).unwrap_or(ErrorKind::Couchbase),
    }
}

/// The path at which a mutation failed, by its place among those that were sent,
/// and its status. `None` if the answer does not say.
pub(crate) fn failed_path(answer: &Frame) -> Option<(u8, Status)> {
    // Three bytes, which no server compresses; but nothing keeps one from it.
    let value = answer.plain_value(64).ok()?;
    match MutationOutcome::decode(answer.status(), &value).ok()?? {
        MutationOutcome::Failed { index, status } => Some((index, status)),
        MutationOutcome::Done(_) => None,
    }
}

/// What the error map says of a status that the client does not know (D27).
fn explained(definition: &ErrorDefinition) -> Meaning {
    let has = |attribute| definition.attributes.contains(attribute);
    let verdict = if definition.indicates_retry() {
        Verdict::Retry(&KV_ERROR_MAP_RETRY_INDICATED, ErrorKind::Couchbase)
    } else if has(Attributes::SUCCESS) {
        Verdict::Done
    } else {
        Verdict::Final(ErrorKind::Couchbase)
    };
    let mut meaning = Meaning::of(verdict);
    meaning.closes_connection =
        has(Attributes::CONN_STATE_INVALIDATED) || has(Attributes::SPECIAL_HANDLING);
    meaning.asks_for_config = has(Attributes::FETCH_CONFIG);
    meaning
}
