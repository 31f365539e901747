//! Features of a connection, negotiated with HELLO.

use super::open_enum::open_enum;

open_enum! {
    /// A feature that a client asks for and a server grants.
    pub enum Feature: u16, unknown UnknownFeature {
        /// TLS on the same port. No server offers it any more.
        Tls = 0x02 "TLS",
        /// Turn Nagle's algorithm off on the server's side.
        TcpNodelay = 0x03 "TCP nodelay",
        /// Mutation responses carry the vbucket's uuid and the sequence number.
        MutationSeqno = 0x04 "Mutation seqno",
        /// Leave Nagle's algorithm on.
        TcpDelay = 0x05 "TCP delay",
        /// Extended attributes.
        Xattr = 0x06 "XATTR",
        /// Extended error codes: the client has, or will fetch, an error map (RFC 0013).
        Xerror = 0x07 "XERROR",
        /// The client will select a bucket with SELECT_BUCKET.
        SelectBucket = 0x08 "Select bucket",
        /// Values may be compressed.
        Snappy = 0x0a "Snappy",
        /// Values may be marked as JSON.
        Json = 0x0b "JSON",
        /// The server may send requests to the client.
        Duplex = 0x0c "Duplex",
        /// The server pushes new cluster configs, whole.
        ClustermapChangeNotification = 0x0d "Clustermap change notification",
        /// Responses may come in another order than their requests.
        UnorderedExecution = 0x0e "Unordered execution",
        /// Responses say how long the server took.
        Tracing = 0x0f "Tracing",
        /// The client may use the flexible request format.
        AltRequest = 0x10 "AltRequest",
        /// Durability requirements may be put on mutations.
        SyncReplication = 0x11 "SyncReplication",
        /// Document keys start with a collection id.
        Collections = 0x12 "Collections",
        /// Any response may be compressed, not just documents.
        SnappyEverywhere = 0x13 "SnappyEverywhere",
        /// The preserve-expiry frame info is understood.
        PreserveTtl = 0x14 "PreserveTtl",
        /// Virtual attributes such as `$document` can be read.
        Vattr = 0x15 "VAttr",
        /// Point-in-time recovery.
        PointInTimeRecovery = 0x16 "PointInTimeRecovery",
        /// Subdocument mutations may create a document in its deleted state.
        SubdocCreateAsDeleted = 0x17 "SubdocCreateAsDeleted",
        /// Document macros can be used in subdocument values.
        SubdocDocumentMacroSupport = 0x18 "SubdocDocumentMacroSupport",
        /// The subdocument command that replaces a body with an attribute.
        SubdocReplaceBodyWithXattr = 0x19 "SubdocReplaceBodyWithXattr",
        /// Responses report the read and write units they cost.
        ReportUnitUsage = 0x1a "ReportUnitUsage",
        /// A throttled request is answered with a status instead of being delayed.
        NonBlockingThrottling = 0x1b "NonBlockingThrottlingMode",
        /// Subdocument lookups may be sent to replicas.
        SubdocReplicaRead = 0x1c "SubdocReplicaRead",
        /// GET_CLUSTER_CONFIG may say which version the client already has.
        GetClusterConfigWithKnownVersion = 0x1d "GetClusterConfigWithKnownVersion",
        /// A not-my-vbucket answer carries a config only if the client has not been sent it.
        DedupeNotMyVbucketClustermap = 0x1e "DedupeNotMyVbucketClustermap",
        /// The server announces new configs by version alone.
        ClustermapChangeNotificationBrief = 0x1f "ClustermapChangeNotificationBrief",
        /// One subdocument command may name several extended attributes.
        SubdocAllowsAccessOnMultipleXattrKeys = 0x20 "SubdocAllowsAccessOnMultipleXattrKeys",
        /// Extended attributes may hold binary values.
        SubdocBinaryXattr = 0x21 "SubdocBinaryXattr",
    }
}
