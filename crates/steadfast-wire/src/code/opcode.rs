//! Opcodes: the commands of the protocol.

use super::open_enum::open_enum;

open_enum! {
    /// A client's command. Inside a multi-path body it also names what to do at one path, where
    /// [`Opcode::Get`], [`Opcode::Set`] and [`Opcode::Delete`] mean the whole document.
    pub enum Opcode: u8, unknown UnknownOpcode {
        /// Fetch a document.
        Get = 0x00 "GET",
        /// Store a document, whether or not it exists.
        Set = 0x01 "SET",
        /// Store a document that must not exist.
        Add = 0x02 "ADD",
        /// Store a document that must exist.
        Replace = 0x03 "REPLACE",
        /// Remove a document.
        Delete = 0x04 "DELETE",
        /// Add to a counter.
        Increment = 0x05 "INCREMENT",
        /// Subtract from a counter; it stops at zero.
        Decrement = 0x06 "DECREMENT",
        /// Close the connection after the answer.
        Quit = 0x07 "QUIT",
        /// Nothing; a ping.
        Noop = 0x0a "NOOP",
        /// The server's version, as text.
        Version = 0x0b "VERSION",
        /// Add bytes after a document's value.
        Append = 0x0e "APPEND",
        /// Add bytes before a document's value.
        Prepend = 0x0f "PREPEND",
        /// Statistics; answered by several frames, the last one with an empty key.
        Stat = 0x10 "STAT",
        /// Set a document's expiry.
        Touch = 0x1c "TOUCH",
        /// Fetch a document and set its expiry.
        GetAndTouch = 0x1d "GAT",
        /// Agree on features.
        Hello = 0x1f "HELLO",
        /// Which mechanisms the server offers.
        SaslListMechs = 0x20 "SASL_LIST_MECHS",
        /// Start to authenticate.
        SaslAuth = 0x21 "SASL_AUTH",
        /// Go on with it.
        SaslStep = 0x22 "SASL_STEP",
        /// Fetch a document with its extended attributes.
        GetEx = 0x49 "GETEX",
        /// The same, from a replica.
        GetExReplica = 0x4a "GETEX_REPLICA",
        /// Fetch a document from a replica.
        GetReplica = 0x83 "GET_REPLICA",
        /// Bind the connection to a bucket.
        SelectBucket = 0x89 "SELECT_BUCKET",
        /// How far a vbucket was persisted and received.
        ObserveSeqno = 0x91 "OBSERVE_SEQNO",
        /// Whether documents are persisted on a node.
        Observe = 0x92 "OBSERVE",
        /// Fetch a document and lock it.
        GetLocked = 0x94 "GET_LOCKED",
        /// Unlock a document.
        UnlockKey = 0x95 "UNLOCK_KEY",
        /// A document's metadata, deleted or not.
        GetMeta = 0xa0 "GET_META",
        /// The config of the bucket, or of the cluster without one.
        GetClusterConfig = 0xb5 "GET_CLUSTER_CONFIG",
        /// Any document.
        GetRandomKey = 0xb6 "GET_RANDOM_KEY",
        /// All scopes and collections of the bucket.
        GetCollectionsManifest = 0xba "COLLECTIONS_GET_MANIFEST",
        /// The id of a collection.
        GetCollectionId = 0xbb "COLLECTIONS_GET_ID",
        /// The id of a scope.
        GetScopeId = 0xbc "COLLECTIONS_GET_SCOPE_ID",
        /// The value at a path.
        SubdocGet = 0xc5 "SUBDOC_GET",
        /// Whether a path exists.
        SubdocExists = 0xc6 "SUBDOC_EXISTS",
        /// Add a member that must not exist.
        SubdocDictAdd = 0xc7 "SUBDOC_DICT_ADD",
        /// Add or replace a member.
        SubdocDictUpsert = 0xc8 "SUBDOC_DICT_UPSERT",
        /// Remove what is at a path.
        SubdocDelete = 0xc9 "SUBDOC_DELETE",
        /// Replace what is at a path.
        SubdocReplace = 0xca "SUBDOC_REPLACE",
        /// Append to an array.
        SubdocArrayPushLast = 0xcb "SUBDOC_ARRAY_PUSH_LAST",
        /// Prepend to an array.
        SubdocArrayPushFirst = 0xcc "SUBDOC_ARRAY_PUSH_FIRST",
        /// Insert into an array.
        SubdocArrayInsert = 0xcd "SUBDOC_ARRAY_INSERT",
        /// Append to an array unless it is there.
        SubdocArrayAddUnique = 0xce "SUBDOC_ARRAY_ADD_UNIQUE",
        /// Add to a number at a path.
        SubdocCounter = 0xcf "SUBDOC_COUNTER",
        /// Several lookups in one document.
        SubdocMultiLookup = 0xd0 "SUBDOC_MULTI_LOOKUP",
        /// Several mutations of one document, all or none.
        SubdocMultiMutation = 0xd1 "SUBDOC_MULTI_MUTATION",
        /// The number of elements or members at a path.
        SubdocGetCount = 0xd2 "SUBDOC_GET_COUNT",
        /// Replace the body by an attribute's value.
        SubdocReplaceBodyWithXattr = 0xd3 "SUBDOC_REPLACE_BODY_WITH_XATTR",
        /// Open a range scan.
        RangeScanCreate = 0xda "RANGE_SCAN_CREATE",
        /// The next batch of a range scan.
        RangeScanContinue = 0xdb "RANGE_SCAN_CONTINUE",
        /// Close a range scan.
        RangeScanCancel = 0xdc "RANGE_SCAN_CANCEL",
        /// The error map (RFC 0013).
        GetErrorMap = 0xfe "GET_ERROR_MAP",
    }
}

open_enum! {
    /// A server's command. Its numbers overlap with those of [`Opcode`]; the magic tells which of
    /// the two a frame speaks.
    pub enum ServerOpcode: u8, unknown UnknownServerOpcode {
        /// There is a new cluster config.
        ClustermapChangeNotification = 0x01 "CLUSTERMAP_CHANGE_NOTIFICATION",
    }
}
