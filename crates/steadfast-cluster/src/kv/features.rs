//! The features that a connection has agreed on, in one word.

use steadfast_wire::Feature;

/// Everything this server can grant.
pub const OFFERED: &[Feature] = &[
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
];

/// A set of features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// Whether a feature is in it.
    #[inline]
    pub fn has(self, feature: Feature) -> bool {
        self.0 & bit(feature) != 0
    }

    /// Puts a feature in.
    pub fn insert(&mut self, feature: Feature) {
        self.0 |= bit(feature);
    }

    /// Takes a feature out.
    pub fn remove(&mut self, feature: Feature) {
        self.0 &= !bit(feature);
    }

    /// The set as a word.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The set of a word.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

fn bit(feature: Feature) -> u64 {
    // Codes from 64 on are none that this server knows.
    1u64.checked_shl(feature.code().into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offered_feature_fits_and_can_be_told_apart() {
        let mut set = FeatureSet::default();
        for feature in OFFERED {
            assert!(!set.has(*feature));
            set.insert(*feature);
            assert!(set.has(*feature));
        }
        set.remove(Feature::Json);
        assert!(!set.has(Feature::Json) && set.has(Feature::Snappy));
        assert!(!set.has(Feature::from_code(0x1234)));
    }
}
