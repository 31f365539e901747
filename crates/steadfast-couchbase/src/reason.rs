//! The retry reasons of RFC 0049, and those that it lacks, one row for each.
//!
//! A row has the reason's name, its flags, what happened, the rule that governs it
//! and what to do about it. The statics, [`ALL`] and [`about`] are generated from
//! the rows, and a test compares them with docs/couchbase-reasons.md. `engine` rows
//! are reasons that any protocol can have; the engine declares them.
//!
//! The RFC's revision 16 has `todo` for the flags of the last five. They are raised
//! before anything was sent, so they allow a retry of any operation. They are not
//! always retried, or failing fast would be impossible (decision [D2](steadfast::decisions#d2),
//! docs/decisions.md).

use steadfast::Reason;

/// An explanation of a reason.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct About {
    /// What happened, in a few words.
    pub meaning: &'static str,
    /// The rule by which the reason is raised and retried.
    pub rule: &'static str,
    /// What to do if operations keep failing for this reason.
    pub advice: &'static str,
}

macro_rules! reasons {
    ($(#[doc = $doc:literal])+ $list:ident; $explanations:ident; $(
        $origin:ident $name:ident [$($flag:ident)*]
        $meaning:literal,
        $rule:expr,
        $advice:literal;
    )*) => {
        $( reason! { $origin $name [$($flag)*] $meaning } )*

        $(#[doc = $doc])+
        pub static $list: [&Reason; [$(stringify!($name)),*].len()] = [$(&$name),*];

        static $explanations: [About; [$(stringify!($name)),*].len()] = [$(About {
            meaning: $meaning,
            rule: $rule,
            advice: $advice,
        }),*];
    };
}

macro_rules! reason {
    (engine $name:ident [] $meaning:literal) => {
        pub use steadfast::reason::$name;
    };
    (client $name:ident [$($flag:ident)*] $meaning:literal) => {
        #[doc = concat!("Raised when ", $meaning, ".")]
        pub static $name: Reason = Reason::new(stringify!($name))$(.$flag())*;
    };
}

const LIST: &str = "RFC 0049, Response Code Retry List";
const NOT_SENT: &str = "RFC 0049, Different Stage Retry Semantics; D18";

reasons! {
    /// All reasons of RFC 0049, in the order of its table.
    ALL; EXPLANATIONS;
    engine UNKNOWN []
        "something failed that no other reason describes",
        "RFC 0049, RetryReason; D5",
        "read the error's note; this reason is never retried";
    client SOCKET_NOT_AVAILABLE [allowing_non_idempotent_retry]
        "there is no connection to write the operation into",
        NOT_SENT,
        "check that the node is up and reachable from here, for example with `steadfast doctor`";
    client SERVICE_NOT_AVAILABLE [allowing_non_idempotent_retry]
        "no node of the cluster has the service",
        NOT_SENT,
        "add the service to a node, or use another cluster";
    client NODE_NOT_AVAILABLE [allowing_non_idempotent_retry]
        "no node is known to have the document now, or the node is gone",
        NOT_SENT,
        "wait for the failover or the rebalance to end; check the nodes' health";
    client KV_NOT_MY_VBUCKET [allowing_non_idempotent_retry always_retried]
        "the node reported that the document's vbucket is not its own",
        "RFC 0005; RFC 0049, always retried; D21 to D25",
        "nothing: the client follows the new map; if it lasts, a rebalance is stuck";
    client KV_COLLECTION_OUTDATED [allowing_non_idempotent_retry always_retried]
        "the server does not know the id of the collection any more, or not yet",
        "RFC 0049, always retried; D10, D11",
        "nothing: the client looks the id up again, and finds out if the collection is gone";
    client KV_ERROR_MAP_RETRY_INDICATED [allowing_non_idempotent_retry]
        "the client does not know the status, and the server's error map says to retry",
        "RFC 0013; RFC 0049, Response Code Retry List; D27, D28",
        "read the error map's description of the status; it is on the error";
    client KV_LOCKED [allowing_non_idempotent_retry]
        "another client holds a lock on the document; the server did not apply the operation",
        LIST,
        "hold locks for a shorter time, or use a longer timeout";
    client KV_TEMPORARY_FAILURE [allowing_non_idempotent_retry]
        "the server is temporarily unable to apply the operation, and did not apply it",
        LIST,
        "wait if the node has just started: it is warming up; otherwise it is out of memory or behind on its disk: send fewer requests, or add memory";
    client KV_SYNC_WRITE_IN_PROGRESS [allowing_non_idempotent_retry]
        "a durable write to the document is not finished; the server did not apply the operation",
        LIST,
        "spread the writes over more documents, or use a longer timeout";
    client KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS [allowing_non_idempotent_retry]
        "a durable write is being committed again after a failover; the server did not apply the operation",
        LIST,
        "wait until the failover is over";
    client SERVICE_RESPONSE_CODE_INDICATED [allowing_non_idempotent_retry]
        "the service's response says to retry",
        LIST,
        "read the service's message on the error";
    engine SOCKET_CLOSED_WHILE_IN_FLIGHT []
        "the connection closed before a response came; the operation may have been applied",
        "RFC 0049, Different Stage Retry Semantics; D14",
        "reads are retried; after a failed write, read the document before writing it again";
    engine CIRCUIT_BREAKER_OPEN []
        "the endpoint failed so often that its circuit breaker is open",
        "RFC 0049, RetryReason; off unless asked for",
        "find out why the endpoint fails; the breaker tries the endpoint again by itself";
    client QUERY_PREPARED_STATEMENT_FAILURE [allowing_non_idempotent_retry]
        "the service does not know the prepared plan, or cannot use it any more",
        "RFC 0049, Response Code Retry List; D17",
        "nothing: the retry prepares the statement again";
    client QUERY_INDEX_NOT_FOUND [allowing_non_idempotent_retry]
        "the index vanished while the query was running",
        LIST,
        "wait until the index is built, or create it";
    client ANALYTICS_TEMPORARY_FAILURE [allowing_non_idempotent_retry]
        "analytics is temporarily unavailable, or has too many jobs",
        LIST,
        "run fewer analytics statements at a time";
    client SEARCH_TOO_MANY_REQUESTS [allowing_non_idempotent_retry]
        "search has too many requests",
        "RFC 0049, Response Code Retry List; D16",
        "run fewer searches at a time; the error names the limit, if there is one";
    client VIEWS_TEMPORARY_FAILURE [allowing_non_idempotent_retry]
        "views are temporarily unavailable",
        LIST,
        "wait for the rebalance or the node; check the view if it lasts";
    client VIEWS_NO_ACTIVE_PARTITION [allowing_non_idempotent_retry always_retried]
        "the node has no active part of the view",
        "RFC 0049, always retried; D15",
        "nothing: the client asks another node";
    engine AUTHENTICATION_ERROR []
        "the server rejected the credentials",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D3, D19, D20",
        "check user and password; a running client accepts new ones";
    engine TLS_ERROR []
        "no secure connection could be made",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D19, D20",
        "trust the authority that issued the server's certificate; check the host name";
    client BUCKET_ACCESS_ERROR [allowing_non_idempotent_retry]
        "the server does not open the bucket",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D4, D19",
        "check that the bucket exists, that the user has rights on it, and that it is no memcached bucket";
    client SCOPE_NOT_FOUND [allowing_non_idempotent_retry]
        "the bucket has no such scope",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D10, D11, D19",
        "create the scope, or check its spelling";
    client COLLECTION_NOT_FOUND [allowing_non_idempotent_retry]
        "the scope has no such collection",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D1, D2, D19",
        "create the collection, or check its spelling";
}

reasons! {
    /// Reasons that RFC 0049 does not have.
    BEYOND_RFC; MORE_EXPLANATIONS;
    engine TIMEOUT []
        "no response came before the deadline; the operation may have been applied",
        "RFC 0049, Different Stage Retry Semantics; D14",
        "use a longer timeout, or find out why the node is slow; after a failed write, read before writing again";
    client APPLICATION_INDICATED [allowing_non_idempotent_retry]
        "the response is final, and the application's `retry_if` asked for a retry",
        "RFC 0049, Response Received: retryable with application context",
        "check that `retry_if` returns true only if a retry can help";
    client SERVER_NOT_PROVEN [allowing_non_idempotent_retry]
        "the server accepted the credentials and did not prove that it knows the password (SCRAM), so it may be an impostor",
        "D60; terminal, like those of RFC 0049 rev. 16",
        "do not use this server: find out which server has that address, and use TLS";
    client KV_CONNECTION_FULL [allowing_non_idempotent_retry always_retried]
        "as many operations are in flight on the connection as `max_in_flight` allows, or its socket does not keep up, or the connection for durable writes is being dialled",
        "D45, always retried: the operation waits in order for its turn",
        "use more connections (`kv_connections`), or send fewer operations at a time";
}

/// Explains a reason; `None` if it is not one of [`ALL`] or [`BEYOND_RFC`].
pub fn about(reason: &Reason) -> Option<&'static About> {
    let known = ALL.iter().zip(&EXPLANATIONS);
    let more = BEYOND_RFC.iter().zip(&MORE_EXPLANATIONS);
    let mut each = known.chain(more);
    each.find(|(known, _)| **known == reason)
        .map(|(_, about)| about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_flags_are_those_of_the_rfc() {
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

    #[test]
    fn every_reason_has_an_explanation_of_its_own() {
        let mut seen = Vec::new();
        for known in ALL.into_iter().chain(BEYOND_RFC) {
            let about = about(known).unwrap();
            assert!(!seen.contains(&about.meaning), "{known}");
            seen.push(about.meaning);
        }
        assert!(about(&steadfast::reason::THROTTLED).is_none());
    }

    #[test]
    fn the_explanation_is_about_its_reason() {
        for (known, word) in [
            (&UNKNOWN, "no other reason"),
            (&KV_LOCKED, "lock"),
            (&SOCKET_CLOSED_WHILE_IN_FLIGHT, "closed"),
            (&CIRCUIT_BREAKER_OPEN, "breaker"),
            (&QUERY_INDEX_NOT_FOUND, "index"),
            (&SEARCH_TOO_MANY_REQUESTS, "search"),
            (&VIEWS_NO_ACTIVE_PARTITION, "view"),
            (&AUTHENTICATION_ERROR, "credentials"),
            (&BUCKET_ACCESS_ERROR, "bucket"),
            (&COLLECTION_NOT_FOUND, "collection"),
        ] {
            let about = about(known).unwrap();
            assert!(about.meaning.contains(word), "{known}: {about:?}");
            assert_eq!(known.always_retry(), about.rule.contains("always"));
        }
        for known in ALL {
            let rule = about(known).unwrap().rule;
            assert_eq!(known.always_retry(), rule.contains("always retried"));
        }
    }
}
