//! Explains what a response would mean, without a cluster.
//!
//! "Would this have been retried?" should be answered by the code that runs, not by
//! a page that describes it. So these functions use the tables that operations use.
//! They return what operations give to the orchestrator: a failure for [`steadfast::explain()`] and [`steadfast::explain::plan`] to try out.
//!
//! ```
//! use steadfast::{Call, explain};
//! use steadfast_couchbase::explain::{AttemptMeaning, answered_kv};
//! use steadfast_couchbase::{KvOperation, fast_fail_on_terminal_errors};
//! use steadfast_wire::Status;
//!
//! let upsert = KvOperation::Upsert;
//! let AttemptMeaning::Failed(failure, _) = answered_kv(upsert, Status::TemporaryFailure, None) else {
//!     panic!("a temporary failure is not final");
//! };
//! let call = Call::new(upsert.name()).idempotent(upsert.is_idempotent());
//! let explanation = explain(&fast_fail_on_terminal_errors(), &call, &failure)?;
//! assert!(explanation.would_retry());
//! # Ok::<(), steadfast::explain::Unexplainable>(())
//! ```

mod http;

use steadfast::{Failure, Reason};
use steadfast_wire::Status;
use steadfast_wire::error_map::ErrorMap;

pub use http::{answered_http, known_codes, known_statuses};

pub use crate::reason::{About, about};

use crate::error::ErrorKind;
use crate::kv::handshake::kind_of;
use crate::kv::meaning::{Disposition, meaning, proves_not_applied};
use crate::kv::operation::KvOperation;
use crate::reason::{COLLECTION_NOT_FOUND, SCOPE_NOT_FOUND, SOCKET_CLOSED_WHILE_IN_FLIGHT};
use crate::strategy::RetryDirective;

/// What a response, or the lack of one, means to an operation.
#[derive(Clone, Debug)]
pub enum AttemptMeaning {
    /// Success.
    Done,
    /// Permanent failure: an error of this kind.
    Final(ErrorKind),
    /// Failure that is retried if the strategy decides so; otherwise an error of this
    /// kind.
    Failed(Failure, ErrorKind),
}

/// Returns what a status means to a key-value operation without a CAS, on a
/// connection with this error map. The map decides only about statuses that the
/// client does not know (decision [D27](steadfast::decisions#d27)).
pub fn answered_kv(
    operation: KvOperation,
    status: Status,
    map: Option<&ErrorMap>,
) -> AttemptMeaning {
    let disposition = meaning(operation, false, status, map).disposition;
    match (disposition, disposition.failure()) {
        (Disposition::Done, _) => AttemptMeaning::Done,
        (Disposition::Final(kind), _) => AttemptMeaning::Final(kind),
        (Disposition::ObeyErrorMap, Some((failure, kind))) => {
            let definition = map.and_then(|map| map.get(status));
            match definition
                .and_then(|definition| RetryDirective::from_definition(status, definition))
            {
                Some(directive) => AttemptMeaning::Failed(directive.attach_to(failure), kind),
                None => AttemptMeaning::Failed(failure, kind),
            }
        }
        (_, Some((failure, kind))) => AttemptMeaning::Failed(failure, kind),
        // The kind of the error is in the status of the failed path.
        (_, None) => AttemptMeaning::Final(ErrorKind::Couchbase),
    }
}

/// Returns whether a key-value operation that ended with this status may have been applied, as
/// its error says with [`Error::is_ambiguous`](crate::Error::is_ambiguous). A read never was. For
/// a write, the statuses that prove a rejection are known one by one
/// ([D65](steadfast::decisions#d65)), and one for which the map asks for a retry is a rejection.
pub fn may_have_been_applied(
    operation: KvOperation,
    status: Status,
    map: Option<&ErrorMap>,
) -> bool {
    match meaning(operation, false, status, map).disposition {
        // The kind says so itself.
        Disposition::Final(ErrorKind::DurabilityAmbiguous) => true,
        Disposition::Final(_) | Disposition::FailedAtPath => {
            !operation.is_idempotent() && !proves_not_applied(status)
        }
        Disposition::Done
        | Disposition::Reroute
        | Disposition::DropCollectionId
        | Disposition::ObeyErrorMap
        | Disposition::Throttled
        | Disposition::Retry(..) => false,
    }
}

/// Returns the likeliest cause of a status that has several. Errors name it in the history of
/// their attempts.
pub fn likely_cause(operation: KvOperation, status: Status) -> Option<&'static str> {
    likely_note(operation, status)?.strip_prefix(ANSWERED_ETMPFAIL)
}

const ANSWERED_ETMPFAIL: &str = "answered ETMPFAIL (0x86): ";

/// Returns the note of an attempt with a likely cause. It is static, because thousands of
/// operations may wait with it.
pub(crate) fn likely_note(operation: KvOperation, status: Status) -> Option<&'static str> {
    match (operation, status) {
        // Since 7.6, servers answer 0x0e (D58).
        (KvOperation::Unlock, Status::TemporaryFailure) => Some(
            "answered ETMPFAIL (0x86): the document is probably not locked; servers before 7.6 \
             answer so",
        ),
        (_, Status::TemporaryFailure) => Some(
            "answered ETMPFAIL (0x86): the node is probably warming up after a restart; or it is \
             out of memory, or behind on its disk",
        ),
        _ => None,
    }
}

/// Returns what it means that an operation could not be sent for this reason.
pub fn not_sent(reason: &'static Reason) -> AttemptMeaning {
    let kind = if reason == &SCOPE_NOT_FOUND {
        ErrorKind::ScopeNotFound
    } else if reason == &COLLECTION_NOT_FOUND {
        ErrorKind::CollectionNotFound
    } else {
        kind_of(reason)
    };
    AttemptMeaning::Failed(Failure::not_sent(reason), kind)
}

/// Returns what it means that the connection closed before a response came.
pub fn in_flight() -> AttemptMeaning {
    let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    AttemptMeaning::Failed(failure, ErrorKind::RequestCanceled)
}

#[cfg(test)]
mod tests {
    use steadfast_wire::error_map::MapVersion;

    use super::*;
    use crate::reason::{KV_ERROR_MAP_RETRY_INDICATED, KV_LOCKED, KV_TEMPORARY_FAILURE};

    fn reason(meaning: AttemptMeaning) -> Option<&'static str> {
        match meaning {
            AttemptMeaning::Failed(failure, _) => Some(failure.reason.name()),
            AttemptMeaning::Done | AttemptMeaning::Final(_) => None,
        }
    }

    #[test]
    fn responses_mean_the_same_as_to_operations() {
        let upsert = |status| answered_kv(KvOperation::Upsert, status, None);
        assert_eq!(
            reason(upsert(Status::TemporaryFailure)),
            Some(KV_TEMPORARY_FAILURE.name())
        );
        assert_eq!(reason(upsert(Status::Locked)), Some(KV_LOCKED.name()));
        assert!(matches!(upsert(Status::Success), AttemptMeaning::Done));
        assert!(matches!(
            upsert(Status::TooBig),
            AttemptMeaning::Final(ErrorKind::ValueTooLarge)
        ));
        let unlock = answered_kv(KvOperation::Unlock, Status::Locked, None);
        assert!(matches!(
            unlock,
            AttemptMeaning::Final(ErrorKind::CasMismatch)
        ));
    }

    #[test]
    fn the_error_map_s_directive_is_attached() {
        let mut map = ErrorMap::shipped(MapVersion::V2);
        let json = br#"{"version":2,"revision":1,"errors":{"ff0":{"name":"X","desc":"x",
            "attrs":["auto-retry"],"retry":{"strategy":"constant","interval":7,"after":3}}}}"#;
        let more = ErrorMap::parse(json).unwrap();
        map.errors.extend(more.errors);
        let status = Status::from_code(0xff0);
        let meaning = answered_kv(KvOperation::Get, status, Some(&map));
        let AttemptMeaning::Failed(failure, _) = meaning else {
            panic!("{meaning:?}");
        };
        assert_eq!(failure.reason, &KV_ERROR_MAP_RETRY_INDICATED);
        assert!(failure.attachment::<RetryDirective>().is_some());
        let without = answered_kv(KvOperation::Get, status, None);
        assert!(matches!(
            without,
            AttemptMeaning::Final(ErrorKind::Couchbase)
        ));
    }
}
