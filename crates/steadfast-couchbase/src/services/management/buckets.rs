//! Management of buckets.

use hyper::Method;

use super::{Management, ManagementRequest};
use crate::error::ErrorKind;
use crate::services::path::segment;

/// A bucket to be created.
#[derive(Clone, Debug)]
#[must_use = "a description creates no bucket"]
pub struct NewBucket {
    name: String,
    kind: BucketKind,
    quota_mebibytes: u64,
    replicas: u8,
    flush: bool,
}

/// The storage of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BucketKind {
    /// On disk, with documents in use in memory.
    Couchbase,
    /// In memory only.
    Ephemeral,
}

impl NewBucket {
    /// Describes a bucket on disk with one replica and a quota of 100 MiB on each
    /// node, the least that a server accepts.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: BucketKind::Couchbase,
            quota_mebibytes: 100,
            replicas: 1,
            flush: false,
        }
    }

    /// Sets the storage.
    pub fn kind(mut self, kind: BucketKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the memory on each node.
    pub fn quota_mebibytes(mut self, quota: u64) -> Self {
        self.quota_mebibytes = quota;
        self
    }

    /// Sets the number of replicas, at most three.
    pub fn replicas(mut self, replicas: u8) -> Self {
        self.replicas = replicas;
        self
    }

    /// Allows to flush the bucket: to remove all documents at once.
    pub fn flush(mut self, flush: bool) -> Self {
        self.flush = flush;
        self
    }
}

impl Management {
    /// Creates a bucket.
    pub fn create_bucket(&self, bucket: &NewBucket) -> ManagementRequest<()> {
        let kind = match bucket.kind {
            BucketKind::Couchbase => "couchbase",
            BucketKind::Ephemeral => "ephemeral",
        };
        self.request("create bucket", Method::POST, "/pools/default/buckets")
            .form([
                ("name", bucket.name.as_str()),
                ("bucketType", kind),
                ("ramQuotaMB", &bucket.quota_mebibytes.to_string()),
                ("replicaNumber", &bucket.replicas.to_string()),
                ("flushEnabled", if bucket.flush { "1" } else { "0" }),
            ])
            .ignore_response(|status, text| {
                let exists = status == 400 && text.contains("already exists");
                exists.then_some(ErrorKind::BucketExists)
            })
            .about([Some(&bucket.name), None, None])
    }

    /// Drops a bucket with all that is in it.
    pub fn drop_bucket(&self, name: &str) -> ManagementRequest<()> {
        let path = format!("/pools/default/buckets/{}", segment(name));
        self.request("drop bucket", Method::DELETE, path)
            .ignore_response(|status, _| (status == 404).then_some(ErrorKind::BucketNotFound))
            .about([Some(name), None, None])
    }
}
