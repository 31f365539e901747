//! Documents, read and written without a client.

use serde_json::Value;
use steadfast_wire::{DocumentKey, Opcode, Status, leb128, vbucket};

use super::{ClusterError, TestCluster};
use crate::bucket::Bucket;
use crate::journal::{Origin, split_key};
use crate::store::document::{DocumentBody, JSON_FLAGS, StoredDocument};
use crate::store::operations::{StoreMode, WriteRequest};
use crate::topology::NodeId;

impl TestCluster {
    /// Stores a JSON document in a collection, named `scope.collection`, as a client would: the
    /// journal has the write, and the replicas get it.
    ///
    /// # Errors
    /// If there is no such bucket or collection, if the key or the document is too long, or if no
    /// node serves the document.
    pub fn put_document(
        &self,
        bucket: &str,
        collection: &str,
        key: &str,
        value: &Value,
    ) -> Result<(), ClusterError> {
        let bucket = self.bucket(bucket)?;
        let collection = collection_id(&bucket, collection)?;
        let stored = self.store(&bucket, collection, key, value);
        stored.map_err(|status| {
            ClusterError::Invalid(format!("cannot store the document {key:?}: {status}"))
        })
    }

    fn store(
        &self,
        bucket: &Bucket,
        collection: u32,
        key: &str,
        value: &Value,
    ) -> Result<(), Status> {
        if key.is_empty() || key.len() > DocumentKey::MAX_ID_LEN {
            return Err(Status::InvalidArguments);
        }
        let body = DocumentBody::plain(value.to_string().into_bytes())?;
        let now = self.shared().clock.now();
        if bucket.is_full(now) {
            return Err(Status::OutOfMemory);
        }
        let expiry = bucket.max_ttl(collection);
        let mut vbucket =
            bucket.vbucket(vbucket::of_key(key.as_bytes(), bucket.settings.vbuckets))?;
        let origin = Origin {
            node: vbucket.active().ok_or(Status::NotMyVbucket)?,
            bucket: &bucket.name,
            opcode: Opcode::Set,
            opaque: 0,
            // The cluster writes it itself.
            connection: 0,
            argument: &[],
        };
        let full_key = full_key(collection, key.as_bytes());
        let change = WriteRequest {
            key: &full_key,
            cas: 0,
            preserve_expiry: false,
            durability: None,
        };
        let context = self.shared().context(now, origin);
        vbucket.store(StoreMode::Set, change, body, JSON_FLAGS, expiry, context)?;
        bucket.account(&mut vbucket);
        Ok(())
    }

    /// Returns how many documents a node serves, in all buckets.
    pub fn documents_of(&self, node: NodeId) -> u64 {
        let mut documents = 0;
        for bucket in self.shared().buckets() {
            bucket.for_each_vbucket(|vbucket| {
                if let Ok(copy) = vbucket.active_copy(node) {
                    let live = copy.iter().filter(|(_, document)| !document.deleted);
                    documents += live.count() as u64;
                }
            });
        }
        documents
    }

    /// The node that serves a document of a bucket, if any does.
    pub fn active_node(&self, bucket: &str, key: &[u8]) -> Result<Option<NodeId>, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let id = vbucket::of_key(key, bucket.settings.vbuckets);
        let vbucket = bucket
            .vbucket(id)
            .expect("the hash is below the number of vbuckets");
        Ok(vbucket.active())
    }

    /// Returns how often the node that served a document was failed over. Each time, the locks on
    /// its documents were lost.
    pub fn failovers_of(&self, bucket: &str, key: &[u8]) -> Result<u64, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let id = steadfast_wire::vbucket::of_key(key, bucket.settings.vbuckets);
        let vbucket = bucket
            .vbucket(id)
            .expect("the hash is below the number of vbuckets");
        Ok(vbucket.failovers())
    }

    /// The keys of all documents of a bucket's default collection, as the active nodes have them.
    /// Tombstones are left out; documents whose expiry has passed may be listed.
    pub fn keys(&self, bucket: &str) -> Result<Vec<Vec<u8>>, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let mut keys = Vec::new();
        for id in 0..bucket.settings.vbuckets {
            let vbucket = bucket.vbucket(id).expect("the id is below their number");
            let copy = vbucket.active().and_then(|active| vbucket.copy_of(active));
            let documents = copy.into_iter().flat_map(|copy| copy.iter());
            keys.extend(
                documents
                    .filter(|(_, document)| !document.deleted)
                    .map(|(key, _)| split_key(key))
                    .filter(|(collection, _)| *collection == 0)
                    .map(|(_, key)| key.to_vec()),
            );
        }
        Ok(keys)
    }

    /// A document of a collection as the active node has it, tombstones included.
    pub fn document(
        &self,
        bucket: &str,
        collection: &str,
        key: &[u8],
    ) -> Result<Option<StoredDocument>, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let full_key = full_key(collection_id(&bucket, collection)?, key);
        let id = vbucket::of_key(key, bucket.settings.vbuckets);
        let vbucket = bucket
            .vbucket(id)
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

fn collection_id(bucket: &Bucket, collection: &str) -> Result<u32, ClusterError> {
    let unknown = || ClusterError::Invalid(format!("there is no collection {collection:?}"));
    let id = bucket.manifest().collection_id(collection);
    id.map_err(|_| unknown())
}

fn full_key(collection: u32, key: &[u8]) -> Vec<u8> {
    [leb128::encode(collection).as_ref(), key].concat()
}
