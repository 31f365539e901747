//! Decisions that the documents prescribe.

/// The operations, and whether RFC 0049, "Idempotent Operation List", has them.
pub(super) const OPERATIONS: &[(&str, bool)] = &[
    ("get", true),             // Get Request
    ("get_and_touch", false),  // "NOT get and touch"
    ("get_and_lock", false),   // "NOT get and lock"
    ("get_with_expiry", true), // Subdoc Lookup
    ("get_replica", true),     // Replica Get Request
    ("unlock", false),
    ("touch", false),
    ("exists", true), // Subdoc Lookup (D42)
    ("insert", false),
    ("upsert", false),
    ("replace", false),
    ("remove", false),
    ("append", false),
    ("prepend", false),
    ("increment", false),
    ("decrement", false),
    ("lookup_in", true), // Subdoc Lookup
    ("mutate_in", false),
    ("observe_seqno", true),           // Observe via Sequence Number
    ("observe", true),                 // Observe Via CAS
    ("noop", true),                    // Noop Request
    ("get_collection_id", true),       // Get Collection ID
    ("get_collection_manifest", true), // Get Collection Manifest
    ("get_cluster_config", true),      // Carrier Config & Global Config Requests
];

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Retried by best effort's backoff: 1, 2, 4 ms (D6).
    Backoff,
    /// Retried by the controlled backoff: 1, 10, 50 ms (D7).
    Controlled,
    /// Not retried; the error is of this kind, by its name.
    Fails(&'static str),
}

use Fate::{Backoff, Controlled, Fails};

/// Under best effort, the default strategy and strict fail-fast.
pub(super) type Fates = [Fate; 3];

/// RFC 0049, "Response Code Retry List", KV: on all messages.
pub(super) const RETRY_LIST: &[(u16, &str, Fates)] = &[
    (
        0x07,
        "KV_NOT_MY_VBUCKET",
        [Controlled, Controlled, Controlled],
    ),
    (
        0x88,
        "KV_COLLECTION_OUTDATED",
        [Controlled, Controlled, Controlled],
    ),
    (
        0x09,
        "KV_LOCKED",
        [Backoff, Backoff, Fails("DocumentLocked")],
    ),
    (
        0x86,
        "KV_TEMPORARY_FAILURE",
        [Backoff, Backoff, Fails("TemporaryFailure")],
    ),
    (
        0xa2,
        "KV_SYNC_WRITE_IN_PROGRESS",
        [Backoff, Backoff, Fails("DurableWriteInProgress")],
    ),
    (
        0xa4,
        "KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS",
        [Backoff, Backoff, Fails("DurableWriteReCommitInProgress")],
    ),
];

/// The list's two exclusions: the orchestrator does not see these.
pub(super) const EXCLUDED: &[(&str, u16, &str)] = &[
    // "Explicitly excluded here is the GetCollectionID KV command."
    ("get_collection_id", 0x88, "CollectionNotFound"),
    // "Do NOT retry on KV_LOCKED for the Unlock command": a CAS mismatch (D12).
    ("unlock", 0x09, "CasMismatch"),
    // Only a document that exists is locked (D42).
    ("exists", 0x09, "Done"),
];

/// Statuses that the client knows and that are not on the list, with their kinds
/// of RFC 0058: "once a complete, known response is received it should not be
/// retried".
pub(super) const KNOWN: &[(u16, &str)] = &[
    (0x01, "DocumentNotFound"),
    (0x02, "DocumentExists"),
    (0x03, "ValueTooLarge"),
    (0x04, "InvalidArgument"),
    (0x87, "InvalidArgument"),
    (0x06, "DeltaInvalid"),
    (0x08, "BucketNotFound"),
    (0x0e, "DocumentNotLocked"),
    (0x1f, "AuthenticationFailure"),
    (0x20, "AuthenticationFailure"),
    (0x24, "AuthenticationFailure"),
    (0x25, "TemporaryFailure"),
    (0x30, "RateLimited"),
    (0x31, "RateLimited"),
    (0x32, "RateLimited"),
    (0x33, "RateLimited"),
    (0x34, "QuotaLimited"),
    (0x80, "FeatureNotAvailable"),
    (0x81, "UnsupportedOperation"),
    (0x82, "TemporaryFailure"),
    (0x83, "UnsupportedOperation"),
    (0x84, "InternalServerFailure"),
    (0x85, "TemporaryFailure"),
    (0x8c, "ScopeNotFound"),
    (0xa0, "DurabilityLevelNotAvailable"),
    (0xa1, "DurabilityImpossible"),
    (0xa3, "DurabilityAmbiguous"),
    (0xc0, "PathNotFound"),
    (0xc1, "PathMismatch"),
    (0xc2, "PathInvalid"),
    (0xc3, "PathTooBig"),
    (0xc4, "PathTooDeep"),
    (0xc5, "ValueInvalid"),
    (0xc6, "DocumentNotJson"),
    (0xc7, "NumberTooBig"),
    (0xc8, "DeltaInvalid"),
    (0xc9, "PathExists"),
    (0xca, "ValueTooDeep"),
    (0xcb, "InvalidArgument"),
    (0xcf, "XattrInvalidKeyCombo"),
    (0xd0, "XattrUnknownMacro"),
    (0xd1, "XattrUnknownVirtualAttribute"),
    (0xd2, "XattrCannotModifyVirtualAttribute"),
];

/// Statuses that some operations know. `Done` is not an error, and `AtPath` one that
/// the body explains.
pub(super) const KNOWN_TO_SOME: &[(u16, &[&str], &str)] = &[
    // No metadata: it does not exist.
    (0x01, &["exists"], "Done"),
    // Appending to nothing, and the older word for what 0x01 and 0x02 say.
    (0x05, &["append", "prepend", "replace"], "DocumentNotFound"),
    (0x05, &["insert"], "DocumentExists"),
    // A lookup has an outcome for each path, a mutation one for all.
    (0xcc, &["lookup_in", "get_with_expiry", "exists"], "Done"),
    (0xd3, &["lookup_in", "get_with_expiry", "exists"], "Done"),
    (
        0xcd,
        &["lookup_in", "get_with_expiry", "exists", "mutate_in"],
        "Done",
    ),
    (0xcc, &["mutate_in"], "AtPath"),
    (0xd3, &["mutate_in"], "AtPath"),
];

/// What the map that servers ship wants retried of what the client does not know:
/// EWOULD_THROTTLE, ECONFIG_ONLY, CANCELLED.
pub(super) const RETRIED_BY_SHIPPED_MAP: &[u16] = &[0x0c, 0x0d, 0x51];

/// What that map calls a success: range scans, and a subdocument operation on a
/// deleted document.
pub(super) const SUCCESS_BY_SHIPPED_MAP: &[u16] = &[0xa5, 0xa6, 0xa7, 0xcd];

/// A status that the client does not know, by what the map says of it (RFC 0049,
/// "KV Error Map Handling"; D27).
pub(super) const BY_ATTRIBUTES: &[(&[&str], bool)] = &[
    (&["retry-now"], true),
    (&["retry-later"], true),
    // It refers to a retry specification, and there is none (D61).
    (&["auto-retry"], false),
    (&["temp", "item-only", "retry-later"], true),
    (&["retry-now", "no-retry"], false),
    (&["retry-later", "no-retry"], false),
    (&["auto-retry", "no-retry"], false),
    (&["no-retry"], false),
    // "This error is transient. Note that this does not mean the error is retriable."
    (&["temp"], false),
    (
        &["item-only", "invalid-input", "support", "internal"],
        false,
    ),
    (&[], false),
];

/// What the error map's word is worth.
pub(super) const MAP_SAYS_RETRY: Fates = [Backoff, Backoff, Fails("Couchbase")];

/// Nothing was sent: "in this stage both idempotent and non-idempotent can be
/// retried". The five terminal ones as revision 16 maps them.
pub(super) const NOT_SENT: &[(&str, Fates)] = &[
    (
        "SOCKET_NOT_AVAILABLE",
        [Backoff, Backoff, Fails("ServiceNotAvailable")],
    ),
    (
        "SERVICE_NOT_AVAILABLE",
        [Backoff, Backoff, Fails("ServiceNotAvailable")],
    ),
    (
        "NODE_NOT_AVAILABLE",
        [Backoff, Backoff, Fails("ServiceNotAvailable")],
    ),
    (
        "CIRCUIT_BREAKER_OPEN",
        [Backoff, Backoff, Fails("ServiceNotAvailable")],
    ),
    (
        "KV_COLLECTION_OUTDATED",
        [Controlled, Controlled, Controlled],
    ),
    (
        "AUTHENTICATION_ERROR",
        [
            Backoff,
            Fails("AuthenticationFailure"),
            Fails("ServiceNotAvailable"),
        ],
    ),
    (
        "TLS_ERROR",
        [Backoff, Fails("Couchbase"), Fails("ServiceNotAvailable")],
    ),
    (
        "BUCKET_ACCESS_ERROR",
        [Backoff, Fails("Couchbase"), Fails("ServiceNotAvailable")],
    ),
    (
        "SCOPE_NOT_FOUND",
        [
            Backoff,
            Fails("ScopeNotFound"),
            Fails("ServiceNotAvailable"),
        ],
    ),
    (
        "COLLECTION_NOT_FOUND",
        [
            Backoff,
            Fails("CollectionNotFound"),
            Fails("ServiceNotAvailable"),
        ],
    ),
    // "All unexpected/unknown retry errors must not be retried" (D5).
    ("UNKNOWN", [Fails("ServiceNotAvailable"); 3]),
];

/// In flight without an answer: "only idempotent operations can be retried at this
/// stage. All non-idempotent operations must be failed".
pub(super) const IN_FLIGHT_IDEMPOTENT: Fates = [Backoff, Backoff, Fails("RequestCanceled")];
pub(super) const IN_FLIGHT_ONCE: Fates = [Fails("RequestCanceled"); 3];
