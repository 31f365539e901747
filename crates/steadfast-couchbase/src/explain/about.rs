//! The 25 reasons in words: when each is raised, by which rule, and what helps.

use steadfast::Reason;

use crate::reason;

/// A reason, in words.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct About {
    /// What happened, in a few words.
    pub meaning: &'static str,
    /// Where it is written that it is raised and how it is retried.
    pub rule: &'static str,
    /// What to do about it when it keeps operations from succeeding.
    pub advice: &'static str,
}

/// What there is to say about a reason; nothing if it is not one of the
/// [25](crate::reason::ALL).
pub fn about(reason: &Reason) -> Option<&'static About> {
    let position = reason::ALL.iter().position(|known| *known == reason)?;
    TABLE.get(position)
}

const LIST: &str = "RFC 0049, Response Code Retry List";
const TERMINAL: &str = "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D1, D2, D19";
const NOT_SENT: &str = "RFC 0049, Different Stage Retry Semantics; D18";

const fn say(meaning: &'static str, rule: &'static str, advice: &'static str) -> About {
    About {
        meaning,
        rule,
        advice,
    }
}

/// In the order of [`reason::ALL`].
static TABLE: [About; 25] = [
    say(
        "something failed that the client has no word for",
        "RFC 0049, RetryReason; D5",
        "read the error's note; it is never retried",
    ),
    say(
        "there is no connection to write the operation into",
        NOT_SENT,
        "is the node up, and reachable from here? `steadfast doctor` looks",
    ),
    say(
        "no node of the cluster has the service",
        NOT_SENT,
        "add the service to a node, or ask another cluster",
    ),
    say(
        "no node is known to have the document now, or it is not there",
        NOT_SENT,
        "wait for the failover or the rebalance to end; check the nodes' health",
    ),
    say(
        "the node answered that the document's vbucket is not its own",
        "RFC 0005; RFC 0049, always retried; D21 to D25",
        "nothing: the client follows the new map; if it lasts, a rebalance is stuck",
    ),
    say(
        "the id of the collection is no longer, or not yet, right",
        "RFC 0049, always retried; D10, D11",
        "nothing: the client looks it up again, and learns if the collection is gone",
    ),
    say(
        "the client does not know the status, and the server's error map says to retry",
        "RFC 0013; RFC 0049, Response Code Retry List; D27, D28",
        "read what the map says of the status; it is on the error",
    ),
    say(
        "somebody holds a lock on the document; the server did not apply it",
        LIST,
        "shorten the time that locks are held, or lengthen the timeout",
    ),
    say(
        "the server cannot do it now; it did not apply it",
        LIST,
        "the node is out of memory or behind on its disk: fewer requests, or more memory",
    ),
    say(
        "a durable write to the document is not finished; the server did not apply it",
        LIST,
        "spread the writes over more documents, or lengthen the timeout",
    ),
    say(
        "a durable write is being committed again after a failover; nothing was applied",
        LIST,
        "wait: it ends with the failover",
    ),
    say(
        "the service's answer says to retry",
        LIST,
        "read the service's message on the error",
    ),
    say(
        "the connection closed before an answer came; it may have been applied",
        "RFC 0049, Different Stage Retry Semantics; D14",
        "reads are retried; of a write, read the document before writing it again",
    ),
    say(
        "the endpoint failed so often that the breaker lets nothing through",
        "RFC 0049, RetryReason; off unless asked for",
        "find out why the endpoint fails; the breaker tries it again by itself",
    ),
    say(
        "the prepared plan is unknown to the service, or of no use any longer",
        "RFC 0049, Response Code Retry List; D17",
        "nothing: the statement is prepared again with the retry",
    ),
    say(
        "the index vanished while the query was under way",
        LIST,
        "wait for the index to be built, or create it",
    ),
    say(
        "analytics cannot do it now, or has too many jobs",
        LIST,
        "fewer queries at a time",
    ),
    say(
        "search has too much to do",
        "RFC 0049, Response Code Retry List; D16",
        "fewer searches at a time; the error names the limit, if it is one",
    ),
    say(
        "views cannot do it now",
        LIST,
        "wait for the rebalance or the node; check the view if it lasts",
    ),
    say(
        "the node that was asked has no active part of the view",
        "RFC 0049, always retried; D15",
        "nothing: another node is asked",
    ),
    say(
        "the server refused the credentials",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D3, D19, D20",
        "check user and password; a client that runs can be given new ones",
    ),
    say(
        "no secure connection could be made",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D19, D20",
        "trust the authority that issued the server's certificate; check the host name",
    ),
    say(
        "the server does not open the bucket",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D4, D19",
        "does it exist, and has the user rights on it?",
    ),
    say(
        "the bucket has no such scope",
        "RFC 0049 rev. 16, Fail Fast (Terminal Errors); D2, D10, D11, D19",
        "create the scope, or mind its spelling",
    ),
    say(
        "the scope has no such collection",
        TERMINAL,
        "create the collection, or mind its spelling",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_words_of_its_own() {
        let mut seen = Vec::new();
        for known in reason::ALL {
            let about = about(known).unwrap();
            assert!(!seen.contains(&about.meaning), "{known}");
            seen.push(about.meaning);
        }
        assert!(about(&steadfast::reason::THROTTLED).is_none());
    }

    #[test]
    fn words_stand_beside_the_reason_that_they_are_about() {
        for (known, word) in [
            (&reason::UNKNOWN, "no word"),
            (&reason::KV_LOCKED, "lock"),
            (&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT, "closed"),
            (&reason::CIRCUIT_BREAKER_OPEN, "breaker"),
            (&reason::QUERY_INDEX_NOT_FOUND, "index"),
            (&reason::SEARCH_TOO_MANY_REQUESTS, "search"),
            (&reason::VIEWS_NO_ACTIVE_PARTITION, "view"),
            (&reason::AUTHENTICATION_ERROR, "credentials"),
            (&reason::BUCKET_ACCESS_ERROR, "bucket"),
            (&reason::COLLECTION_NOT_FOUND, "collection"),
        ] {
            let about = about(known).unwrap();
            assert!(about.meaning.contains(word), "{known}: {about:?}");
            assert_eq!(known.always_retry(), about.rule.contains("always"));
        }
        for known in reason::ALL {
            let rule = about(known).unwrap().rule;
            assert_eq!(known.always_retry(), rule.contains("always retried"));
        }
    }
}
