//! The table of key-value operations: name, opcode, idempotency, and whether it
//! writes.

use steadfast_wire::Opcode;

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $opcode:ident, $idempotence:ident, $effect:ident;)*) => {
        /// A key-value operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum KvOperation {
            $($(#[$doc])* $variant,)*
        }

        impl KvOperation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name, as it stands in errors, logs and metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The opcode on the wire.
            pub const fn opcode(self) -> Opcode {
                match self {
                    $(Self::$variant => Opcode::$opcode,)*
                }
            }

            /// Whether it is idempotent: it is on the list of RFC 0049, "Idempotent
            /// Operation List".
            pub const fn is_idempotent(self) -> bool {
                match self {
                    $(Self::$variant => operations!(@is $idempotence),)*
                }
            }

            /// Whether it changes a document, so that it may be durable.
            pub const fn is_mutation(self) -> bool {
                match self {
                    $(Self::$variant => operations!(@is $effect),)*
                }
            }
        }
    };
    (@is idempotent) => { true };
    (@is once) => { false };
    (@is writes) => { true };
    (@is reads) => { false };
}

operations! {
    /// Reads a document.
    Get = "get", Get, idempotent, reads;
    /// Reads a document and sets its expiry.
    GetAndTouch = "get_and_touch", GetAndTouch, once, reads;
    /// Reads a document and locks it.
    GetAndLock = "get_and_lock", GetLocked, once, reads;
    /// Reads a document and its expiry, by a lookup.
    GetWithExpiry = "get_with_expiry", SubdocMultiLookup, idempotent, reads;
    /// Reads a document from a replica.
    GetReplica = "get_replica", GetReplica, idempotent, reads;
    /// Unlocks a document.
    Unlock = "unlock", UnlockKey, once, reads;
    /// Sets a document's expiry.
    Touch = "touch", Touch, once, reads;
    /// Checks whether a document exists, by a lookup (decision D42 in docs/decisions.md).
    Exists = "exists", SubdocMultiLookup, idempotent, reads;
    /// Writes a document that must not exist.
    Insert = "insert", Add, once, writes;
    /// Writes a document.
    Upsert = "upsert", Set, once, writes;
    /// Writes a document that must exist.
    Replace = "replace", Replace, once, writes;
    /// Removes a document.
    Remove = "remove", Delete, once, writes;
    /// Appends bytes to a document.
    Append = "append", Append, once, writes;
    /// Prepends bytes to a document.
    Prepend = "prepend", Prepend, once, writes;
    /// Adds to a counter.
    Increment = "increment", Increment, once, writes;
    /// Subtracts from a counter.
    Decrement = "decrement", Decrement, once, writes;
    /// Reads parts of a document.
    LookupIn = "lookup_in", SubdocMultiLookup, idempotent, reads;
    /// Changes parts of a document.
    MutateIn = "mutate_in", SubdocMultiMutation, once, writes;
    /// Reads the sequence numbers of a vbucket.
    ObserveSeqno = "observe_seqno", ObserveSeqno, idempotent, reads;
    /// Reads the persistence state of a document.
    Observe = "observe", Observe, idempotent, reads;
    /// Does nothing; checks whether a node answers.
    Noop = "noop", Noop, idempotent, reads;
    /// Reads the id of a collection.
    GetCollectionId = "get_collection_id", GetCollectionId, idempotent, reads;
    /// Reads all scopes and collections.
    GetCollectionManifest = "get_collection_manifest", GetCollectionsManifest, idempotent, reads;
    /// Reads the config of a bucket or of the cluster.
    GetClusterConfig = "get_cluster_config", GetClusterConfig, idempotent, reads;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idempotent_operations_are_those_of_the_list() {
        let idempotent: Vec<_> = KvOperation::ALL
            .iter()
            .filter(|operation| operation.is_idempotent())
            .map(|operation| operation.name())
            .collect();
        let list = [
            "get",
            "get_with_expiry",
            "get_replica",
            "exists",
            "lookup_in",
            "observe_seqno",
            "observe",
            "noop",
            "get_collection_id",
            "get_collection_manifest",
            "get_cluster_config",
        ];
        assert_eq!(idempotent, list);
    }
}
