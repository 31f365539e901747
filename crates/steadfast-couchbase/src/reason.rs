//! The 25 reasons of RFC 0049, "RetryReason".
//!
//! Those that any protocol can have are the engine's own, under the same
//! names; the others are declared here. [`ALL`] is the RFC's table, in its order.
//! The five that revision 16 added stand in it with `todo` for both flags; they
//! are raised before anything was sent, so they allow a retry of anything, and
//! they are not always retried, or failing fast would be impossible (D2).

use steadfast::Reason;
pub use steadfast::reason::{
    AUTHENTICATION_ERROR, CIRCUIT_BREAKER_OPEN, SOCKET_CLOSED_WHILE_IN_FLIGHT, TLS_ERROR, UNKNOWN,
};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $(: $flag:ident $($more:ident)*)?;)*) => {
        $(
            $(#[$doc])*
            pub static $name: Reason = Reason::new(stringify!($name))
                $(.$flag() $(.$more())*)?;
        )*
    };
}

reasons! {
    /// There is no socket to write the operation into.
    SOCKET_NOT_AVAILABLE: allowing_non_idempotent_retry;
    /// No node has the service.
    SERVICE_NOT_AVAILABLE: allowing_non_idempotent_retry;
    /// The node that the operation is for is not known or not there.
    NODE_NOT_AVAILABLE: allowing_non_idempotent_retry;
    /// The node answered that the document's vbucket is not its own.
    KV_NOT_MY_VBUCKET: allowing_non_idempotent_retry always_retried;
    /// The id of the collection is no longer, or not yet, right.
    KV_COLLECTION_OUTDATED: allowing_non_idempotent_retry always_retried;
    /// The client does not know the status; the server's error map says to retry.
    KV_ERROR_MAP_RETRY_INDICATED: allowing_non_idempotent_retry;
    /// Somebody holds a lock on the document.
    KV_LOCKED: allowing_non_idempotent_retry;
    /// The server cannot do it now, and did not.
    KV_TEMPORARY_FAILURE: allowing_non_idempotent_retry;
    /// A durable write to the document is not finished.
    KV_SYNC_WRITE_IN_PROGRESS: allowing_non_idempotent_retry;
    /// A durable write to the document is being committed again after a failover.
    KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS: allowing_non_idempotent_retry;
    /// A service's answer says to retry.
    SERVICE_RESPONSE_CODE_INDICATED: allowing_non_idempotent_retry;
    /// The prepared plan is unknown, or cannot be used any longer.
    QUERY_PREPARED_STATEMENT_FAILURE: allowing_non_idempotent_retry;
    /// The index vanished while the query was under way.
    QUERY_INDEX_NOT_FOUND: allowing_non_idempotent_retry;
    /// Analytics cannot do it now.
    ANALYTICS_TEMPORARY_FAILURE: allowing_non_idempotent_retry;
    /// Search has too much to do.
    SEARCH_TOO_MANY_REQUESTS: allowing_non_idempotent_retry;
    /// Views cannot do it now.
    VIEWS_TEMPORARY_FAILURE: allowing_non_idempotent_retry;
    /// The node that was asked for a view has no active vbucket.
    VIEWS_NO_ACTIVE_PARTITION: allowing_non_idempotent_retry always_retried;
    /// The server refuses to open the bucket: it does not exist, or the user has
    /// no rights on it.
    BUCKET_ACCESS_ERROR: allowing_non_idempotent_retry;
    /// The bucket has no such scope.
    SCOPE_NOT_FOUND: allowing_non_idempotent_retry;
    /// The scope has no such collection.
    COLLECTION_NOT_FOUND: allowing_non_idempotent_retry;
}

/// The RFC's table, in its order.
pub static ALL: [&Reason; 25] = [
    &UNKNOWN,
    &SOCKET_NOT_AVAILABLE,
    &SERVICE_NOT_AVAILABLE,
    &NODE_NOT_AVAILABLE,
    &KV_NOT_MY_VBUCKET,
    &KV_COLLECTION_OUTDATED,
    &KV_ERROR_MAP_RETRY_INDICATED,
    &KV_LOCKED,
    &KV_TEMPORARY_FAILURE,
    &KV_SYNC_WRITE_IN_PROGRESS,
    &KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS,
    &SERVICE_RESPONSE_CODE_INDICATED,
    &SOCKET_CLOSED_WHILE_IN_FLIGHT,
    &CIRCUIT_BREAKER_OPEN,
    &QUERY_PREPARED_STATEMENT_FAILURE,
    &QUERY_INDEX_NOT_FOUND,
    &ANALYTICS_TEMPORARY_FAILURE,
    &SEARCH_TOO_MANY_REQUESTS,
    &VIEWS_TEMPORARY_FAILURE,
    &VIEWS_NO_ACTIVE_PARTITION,
    &AUTHENTICATION_ERROR,
    &TLS_ERROR,
    &BUCKET_ACCESS_ERROR,
    &SCOPE_NOT_FOUND,
    &COLLECTION_NOT_FOUND,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_are_those_of_the_rfc_with_its_flags() {
        // Name, non-idempotent retry, always retry: the RFC's table, with D2 for
        // the last five.
        let table = "\
            UNKNOWN 0 0\nSOCKET_NOT_AVAILABLE 1 0\nSERVICE_NOT_AVAILABLE 1 0\n\
            NODE_NOT_AVAILABLE 1 0\nKV_NOT_MY_VBUCKET 1 1\nKV_COLLECTION_OUTDATED 1 1\n\
            KV_ERROR_MAP_RETRY_INDICATED 1 0\nKV_LOCKED 1 0\nKV_TEMPORARY_FAILURE 1 0\n\
            KV_SYNC_WRITE_IN_PROGRESS 1 0\nKV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS 1 0\n\
            SERVICE_RESPONSE_CODE_INDICATED 1 0\nSOCKET_CLOSED_WHILE_IN_FLIGHT 0 0\n\
            CIRCUIT_BREAKER_OPEN 1 0\nQUERY_PREPARED_STATEMENT_FAILURE 1 0\n\
            QUERY_INDEX_NOT_FOUND 1 0\nANALYTICS_TEMPORARY_FAILURE 1 0\n\
            SEARCH_TOO_MANY_REQUESTS 1 0\nVIEWS_TEMPORARY_FAILURE 1 0\n\
            VIEWS_NO_ACTIVE_PARTITION 1 1\nAUTHENTICATION_ERROR 1 0\nTLS_ERROR 1 0\n\
            BUCKET_ACCESS_ERROR 1 0\nSCOPE_NOT_FOUND 1 0\nCOLLECTION_NOT_FOUND 1 0";
        let ours = ALL.map(|reason| {
            format!(
                "{reason} {} {}",
                u8::from(reason.allows_non_idempotent_retry()),
                u8::from(reason.always_retry())
            )
        });
        assert_eq!(ours.join("\n"), table);
    }
}
