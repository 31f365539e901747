//! Features that HELLO can grant.

use steadfast_wire::Feature;

/// Every feature that this server has.
pub(crate) const OFFERED: &[Feature] = &[
    Feature::TcpNodelay,
    Feature::MutationSeqno,
    Feature::Xattr,
    Feature::Xerror,
    Feature::SelectBucket,
    Feature::Snappy,
    Feature::Json,
    Feature::Duplex,
    Feature::ClustermapChangeNotification,
    Feature::UnorderedExecution,
    Feature::Tracing,
    Feature::AltRequest,
    Feature::SyncReplication,
    Feature::Collections,
    Feature::SnappyEverywhere,
    Feature::PreserveTtl,
    Feature::Vattr,
    Feature::SubdocCreateAsDeleted,
    Feature::SubdocDocumentMacroSupport,
    Feature::SubdocReplicaRead,
    Feature::GetClusterConfigWithKnownVersion,
    Feature::DedupeNotMyVbucketClustermap,
    Feature::ClustermapChangeNotificationBrief,
    Feature::SubdocAllowsAccessOnMultipleXattrKeys,
    Feature::SubdocBinaryXattr,
];
