//! What an answer would mean, without a cluster to give it.
//!
//! Whoever asks "would this have been retried?" wants the answer of the code that
//! runs, not of a page that describes it. So these functions ask the very tables
//! that operations ask, and hand out what operations hand to the orchestrator: a
//! failure for [`steadfast::explain`] and [`steadfast::explain::plan`] to try out.
//!
//! ```
//! use steadfast::{Call, explain};
//! use steadfast_couchbase::explain::{Meaning, answered_kv};
//! use steadfast_couchbase::{KvOperation, fast_fail_on_terminal_errors};
//! use steadfast_wire::Status;
//!
//! let upsert = KvOperation::Upsert;
//! let Meaning::Failed(failure, _) = answered_kv(upsert, Status::TemporaryFailure, None) else {
//!     panic!("a temporary failure is no final answer");
//! };
//! let call = Call::new(upsert.name()).idempotent(upsert.is_idempotent());
//! let explanation = explain(&fast_fail_on_terminal_errors(), &call, &failure)?;
//! assert!(explanation.would_retry());
//! # Ok::<(), steadfast::explain::Unexplainable>(())
//! ```

mod about;
mod http;

use steadfast::{Failure, Reason};
use steadfast_wire::Status;
use steadfast_wire::error_map::ErrorMap;

pub use about::{About, about};
pub use http::{HttpService, answered_http};

use crate::error::ErrorKind;
use crate::kv::handshake::kind_of;
use crate::kv::meaning::{Asked, Disposition, meaning};
use crate::kv::operation::KvOperation;
use crate::reason::{COLLECTION_NOT_FOUND, SCOPE_NOT_FOUND, SOCKET_CLOSED_WHILE_IN_FLIGHT};
use crate::strategy::RetryDirective;

/// What an answer means to the operation that it answers.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// It was done.
    Done,
    /// It was not, and that is final: an error of this kind.
    Final(ErrorKind),
    /// It was not, and may be tried again as the strategy decides; an error of
    /// this kind if it is not.
    Failed(Failure, ErrorKind),
}

/// What a status means to a key-value operation that asks for no certain version of
/// the document, on a connection with this error map. The map is asked only about
/// statuses that the client does not know (D27).
pub fn answered_kv(operation: KvOperation, status: Status, map: Option<&ErrorMap>) -> Meaning {
    let asked = Asked {
        operation,
        with_cas: false,
    };
    let disposition = meaning(asked, status, map).disposition;
    match (disposition, disposition.retry()) {
        (Disposition::Done, _) => Meaning::Done,
        (Disposition::Final(kind), _) => Meaning::Final(kind),
        (Disposition::ObeyErrorMap, Some((reason, kind))) => {
            let failure = Failure::responded(reason);
            let definition = map.and_then(|map| map.get(status));
            match definition.and_then(|definition| RetryDirective::of(status, definition)) {
                Some(directive) => Meaning::Failed(directive.attach_to(failure), kind),
                None => Meaning::Failed(failure, kind),
            }
        }
        (_, Some((reason, kind))) => Meaning::Failed(Failure::responded(reason), kind),
        // The kind of the error is in the status of the failed path.
        (_, None) => Meaning::Final(ErrorKind::Couchbase),
    }
}

/// What it means that an operation could not be sent, for this reason.
pub fn not_sent(reason: &'static Reason) -> Meaning {
    let kind = if reason == &SCOPE_NOT_FOUND {
        ErrorKind::ScopeNotFound
    } else if reason == &COLLECTION_NOT_FOUND {
        ErrorKind::CollectionNotFound
    } else {
        kind_of(reason)
    };
    Meaning::Failed(Failure::not_sent(reason), kind)
}

/// What it means that the connection closed while an operation was under way.
pub fn in_flight() -> Meaning {
    let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    Meaning::Failed(failure, ErrorKind::RequestCanceled)
}

#[cfg(test)]
mod tests {
    use steadfast_wire::error_map::MapVersion;

    use super::*;
    use crate::reason::{KV_ERROR_MAP_RETRY_INDICATED, KV_LOCKED, KV_TEMPORARY_FAILURE};

    fn reason(meaning: Meaning) -> Option<&'static str> {
        match meaning {
            Meaning::Failed(failure, _) => Some(failure.reason.name()),
            Meaning::Done | Meaning::Final(_) => None,
        }
    }

    #[test]
    fn answers_mean_what_they_mean_to_operations() {
        let upsert = |status| answered_kv(KvOperation::Upsert, status, None);
        assert_eq!(
            reason(upsert(Status::TemporaryFailure)),
            Some(KV_TEMPORARY_FAILURE.name())
        );
        assert_eq!(reason(upsert(Status::Locked)), Some(KV_LOCKED.name()));
        assert!(matches!(upsert(Status::Success), Meaning::Done));
        assert!(matches!(
            upsert(Status::TooBig),
            Meaning::Final(ErrorKind::ValueTooLarge)
        ));
        let unlock = answered_kv(KvOperation::Unlock, Status::Locked, None);
        assert!(matches!(unlock, Meaning::Final(ErrorKind::CasMismatch)));
    }

    #[test]
    fn what_the_error_map_says_goes_along() {
        let mut map = ErrorMap::shipped(MapVersion::V2);
        let json = br#"{"version":2,"revision":1,"errors":{"ff0":{"name":"X","desc":"x",
            "attrs":["auto-retry"],"retry":{"strategy":"constant","interval":7,"after":3}}}}"#;
        let more = ErrorMap::parse(json).unwrap();
        map.errors.extend(more.errors);
        let status = Status::from_code(0xff0);
        let meaning = answered_kv(KvOperation::Get, status, Some(&map));
        let Meaning::Failed(failure, _) = meaning else {
            panic!("{meaning:?}");
        };
        assert_eq!(failure.reason, &KV_ERROR_MAP_RETRY_INDICATED);
        assert!(failure.attachment::<RetryDirective>().is_some());
        let without = answered_kv(KvOperation::Get, status, None);
        assert!(matches!(without, Meaning::Final(ErrorKind::Couchbase)));
    }
}
