//! Creating, dropping and looking at what is in the cluster.

use std::sync::Arc;

use steadfast_wire::leb128;

use super::{ClusterError, TestCluster};
use crate::bucket::{Bucket, BucketSettings};
use crate::store::document::StoredDocument;
use crate::topology::NodeId;

impl TestCluster {
    /// Creates a bucket on all member nodes.
    ///
    /// Dropping the future before it is done leaves the cluster without the bucket.
    pub async fn create_bucket(&self, settings: BucketSettings) -> Result<(), ClusterError> {
        settings.check().map_err(ClusterError::Invalid)?;
        let _change = self.begin_change().await?;
        let nodes: Vec<NodeId> = self
            .shared()
            .members()
            .iter()
            .map(|member| member.id)
            .collect();
        let name = settings.name.clone();
        if !self
            .shared()
            .add_bucket(Arc::new(Bucket::new(settings, &nodes)))
        {
            return Err(ClusterError::Invalid(format!(
                "bucket {name:?} exists already"
            )));
        }
        self.shared().publish();
        Ok(())
    }

    /// Drops a bucket; connections to it close.
    ///
    /// Dropping the future before it is done leaves the bucket in place.
    pub async fn drop_bucket(&self, name: &str) -> Result<(), ClusterError> {
        let _change = self.begin_change().await?;
        let bucket = self.shared().take_bucket(name);
        let bucket = bucket.ok_or_else(|| ClusterError::UnknownBucket(name.to_owned()))?;
        bucket.dropped.cancel();
        self.shared().publish();
        Ok(())
    }

    pub(crate) fn bucket(&self, name: &str) -> Result<Arc<Bucket>, ClusterError> {
        self.shared()
            .bucket(name)
            .ok_or_else(|| ClusterError::UnknownBucket(name.to_owned()))
    }

    /// Creates a scope.
    pub fn create_scope(&self, bucket: &str, scope: &str) -> Result<u64, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let uid = bucket.change_manifest(|manifest| {
            manifest.create_scope(scope).map(|next| {
                let uid = next.uid;
                (next, uid)
            })
        })?;
        self.shared().publish();
        Ok(uid)
    }

    /// Drops a scope with its collections and their documents.
    pub fn drop_scope(&self, bucket: &str, scope: &str) -> Result<u64, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let (uid, ids) = bucket.change_manifest(|manifest| {
            manifest.drop_scope(scope).map(|(next, ids)| {
                let uid = next.uid;
                (next, (uid, ids))
            })
        })?;
        bucket.purge_collections(&ids);
        self.shared().publish();
        Ok(uid)
    }

    /// Creates a collection whose documents live `max_ttl` seconds at most, if that is not zero.
    pub fn create_collection(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
        max_ttl: u32,
    ) -> Result<u64, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let uid = bucket.change_manifest(|manifest| {
            manifest
                .create_collection(scope, collection, max_ttl)
                .map(|next| {
                    let uid = next.uid;
                    (next, uid)
                })
        })?;
        self.shared().publish();
        Ok(uid)
    }

    /// Drops a collection with its documents.
    pub fn drop_collection(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
    ) -> Result<u64, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let (uid, id) = bucket.change_manifest(|manifest| {
            manifest
                .drop_collection(scope, collection)
                .map(|(next, id)| {
                    let uid = next.uid;
                    (next, (uid, id))
                })
        })?;
        bucket.purge_collections(&[id]);
        self.shared().publish();
        Ok(uid)
    }

    /// Returns the map of a bucket as the first node sends it to clients.
    pub fn bucket_config(&self, bucket: &str) -> Result<String, ClusterError> {
        let config = self.bucket(bucket)?.config();
        let body = self.nodes().first().and_then(|node| config.body(*node));
        let json = body.map_or(&[][..], |body| body.json());
        Ok(String::from_utf8_lossy(json).into_owned())
    }

    /// The node that serves a document of a bucket, if any does.
    pub fn active_node(&self, bucket: &str, key: &[u8]) -> Result<Option<NodeId>, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let id = steadfast_wire::vbucket::of_key(key, bucket.settings.vbuckets);
        let vbucket = bucket
            .vbucket(id)
            .expect("the hash is below the number of vbuckets");
        Ok(vbucket.active())
    }

    /// A document of a collection as the active node has it, tombstones included.
    pub fn document(
        &self,
        bucket: &str,
        collection: &str,
        key: &[u8],
    ) -> Result<Option<StoredDocument>, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let id = bucket
            .manifest()
            .collection_id(collection)
            .map_err(|_| ClusterError::Invalid(format!("there is no collection {collection:?}")))?;
        let full_key = [leb128::encode(id).as_ref(), key].concat();
        let vbucket_id = steadfast_wire::vbucket::of_key(key, bucket.settings.vbuckets);
        let vbucket = bucket
            .vbucket(vbucket_id)
            .expect("the hash is below the number of vbuckets");
        let Some(active) = vbucket.active() else {
            return Ok(None);
        };
        Ok(vbucket
            .copy_of(active)
            .and_then(|copy| copy.get(&full_key))
            .cloned())
    }
}
