//! A bucket: its vbuckets, its collections, its settings.

mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard, RwLock};
use serde_json::{Map, Value};
use steadfast_wire::Status;
use steadfast_wire::frame_info::DurabilityLevel;
use tokio_util::sync::CancellationToken;

pub use settings::BucketSettings;

use crate::clock::Now;
use crate::journal::split_key;
use crate::manifest::BucketManifest;
use crate::store::vbucket::Vbucket;
use crate::topology::NodeId;
use crate::topology::config::Config;
use crate::topology::node_set::NodeSet;
use crate::topology::plan::{VbucketNodes, spread};

/// A bucket of the cluster, with all of its state on all nodes.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// The name, shared with the journal's entries.
    pub name: Arc<str>,
    /// The settings that it was created with.
    pub settings: BucketSettings,
    /// Tells a bucket from one of the same name that was dropped before.
    pub uuid: String,
    /// Cancelled when the bucket is dropped; connections to it close.
    pub dropped: CancellationToken,
    /// The same for every command, which must not take the token's lock.
    is_dropped: AtomicBool,
    /// Design documents of views, by name.
    pub design_documents: RwLock<BTreeMap<String, Value>>,
    /// Query indexes.
    #[cfg(feature = "sqlpp")]
    pub indexes: Arc<steadfast_sqlpp::Indexes>,
    vbuckets: Vec<Mutex<Vbucket>>,
    manifest: RwLock<Arc<BucketManifest>>,
    forward: RwLock<Option<Vec<VbucketNodes>>>,
    config: RwLock<Arc<Config>>,
    quota_bytes: AtomicU64,
    flush_enabled: AtomicBool,
    details: RwLock<Map<String, Value>>,
    /// Read on every write, so they are kept apart from the details.
    max_ttl: AtomicU32,
    min_durability: AtomicU8,
    used_bytes: AtomicI64,
    swept_at: AtomicU64,
}

impl Bucket {
    /// Ends the bucket, because it is dropped: no command is executed from now on, and
    /// connections to it close.
    pub(crate) fn end(&self) {
        self.is_dropped.store(true, Ordering::Release);
        self.dropped.cancel();
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }

    /// An empty bucket on these nodes.
    pub(crate) fn new(settings: BucketSettings, nodes: &[NodeId]) -> Self {
        let chains = spread(&[], settings.vbuckets, settings.replicas, nodes);
        let vbuckets = (0u16..)
            .zip(chains)
            .map(|(id, chain)| {
                let active = chain
                    .active
                    .expect("a fresh spread has an active node everywhere");
                Mutex::new(Vbucket::new(id, fresh_uuid(), active, chain.replicas))
            })
            .collect();
        let bucket = Self {
            name: settings.name.as_str().into(),
            uuid: format!("{:032x}", steadfast_os::random::u128()),
            dropped: CancellationToken::new(),
            is_dropped: AtomicBool::new(false),
            design_documents: RwLock::default(),
            #[cfg(feature = "sqlpp")]
            indexes: Arc::default(),
            vbuckets,
            manifest: RwLock::default(),
            forward: RwLock::default(),
            config: RwLock::default(),
            quota_bytes: AtomicU64::new(settings.quota_bytes),
            flush_enabled: AtomicBool::new(settings.flush_enabled),
            used_bytes: AtomicI64::new(0),
            swept_at: AtomicU64::new(0),
            details: RwLock::default(),
            max_ttl: AtomicU32::new(0),
            min_durability: AtomicU8::new(0),
            settings,
        };
        bucket.set_details(bucket.settings.details.clone());
        bucket
    }

    /// Further settings, by the names that management has for them.
    pub(crate) fn details(&self) -> Map<String, Value> {
        self.details.read().clone()
    }

    /// Returns whether management shows the storage that keeps a history.
    pub(crate) fn is_magma(&self) -> bool {
        self.details.read().get("storageBackend") == Some(&Value::from("magma"))
    }

    /// Replaces the further settings.
    pub(crate) fn set_details(&self, details: Map<String, Value>) {
        let max_ttl = details.get("maxTTL").and_then(Value::as_u64);
        let max_ttl = max_ttl.and_then(|seconds| seconds.try_into().ok());
        self.max_ttl.store(max_ttl.unwrap_or(0), Ordering::Relaxed);
        let level = match details.get("durabilityMinLevel").and_then(Value::as_str) {
            Some("majority") => DurabilityLevel::Majority.code(),
            Some("majorityAndPersistActive") => DurabilityLevel::MajorityAndPersistToActive.code(),
            Some("persistToMajority") => DurabilityLevel::PersistToMajority.code(),
            _ => 0,
        };
        self.min_durability.store(level, Ordering::Relaxed);
        *self.details.write() = details;
    }

    /// The longest life of documents of a collection, in seconds; zero means no limit.
    pub(crate) fn max_ttl(&self, collection: u32) -> u32 {
        let own = match collection {
            0 => 0,
            _ => self.manifest.read().max_ttl(collection),
        };
        match own {
            0 => self.max_ttl.load(Ordering::Relaxed),
            // -1 lifts the limit of the bucket.
            own => u32::try_from(own).unwrap_or(0),
        }
    }

    /// The durability that every write has at least.
    pub(crate) fn min_durability(&self) -> Option<DurabilityLevel> {
        match self.min_durability.load(Ordering::Relaxed) {
            0 => None,
            code => Some(DurabilityLevel::from_code(code)),
        }
    }

    /// Locks a vbucket. One that does not exist is not this node's either.
    pub(crate) fn vbucket(&self, id: u16) -> Result<MutexGuard<'_, Vbucket>, Status> {
        self.vbuckets
            .get(usize::from(id))
            .map(Mutex::lock)
            .ok_or(Status::NotMyVbucket)
    }

    /// The collections.
    pub(crate) fn manifest(&self) -> Arc<BucketManifest> {
        self.manifest.read().clone()
    }

    /// Returns whether a collection exists, without sharing the manifest.
    pub(crate) fn has_collection(&self, id: u32) -> bool {
        self.manifest.read().has_collection(id)
    }

    /// Replaces the collections by what `change` makes of them.
    pub(crate) fn change_manifest<T, E>(
        &self,
        change: impl FnOnce(&BucketManifest) -> Result<(BucketManifest, T), E>,
    ) -> Result<(u64, T), E> {
        let mut manifest = self.manifest.write();
        let (next, result) = change(&manifest)?;
        let uid = next.uid;
        *manifest = Arc::new(next);
        Ok((uid, result))
    }

    /// Forgets every document of these collections.
    pub(crate) fn purge_collections(&self, ids: &[u32]) {
        if ids.is_empty() {
            return;
        }
        self.retain(|key| !ids.contains(&split_key(key).0));
    }

    /// Forgets every document.
    pub(crate) fn flush(&self) {
        self.retain(|_| false);
    }

    fn retain(&self, keep: impl Fn(&Bytes) -> bool) {
        for vbucket in &self.vbuckets {
            let mut vbucket = vbucket.lock();
            vbucket.retain(&keep);
            self.account(&mut vbucket);
        }
    }

    /// The config that is in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    pub(crate) fn set_config(&self, config: Config) {
        *self.config.write() = Arc::new(config);
    }

    /// The target of the running rebalance.
    pub(crate) fn forward(&self) -> Option<Vec<VbucketNodes>> {
        self.forward.read().clone()
    }

    pub(crate) fn set_forward(&self, forward: Option<Vec<VbucketNodes>>) {
        *self.forward.write() = forward;
    }

    /// The nodes of every vbucket now.
    pub(crate) fn chains(&self) -> Vec<VbucketNodes> {
        self.vbuckets
            .iter()
            .map(|vbucket| {
                let vbucket = vbucket.lock();
                VbucketNodes {
                    active: vbucket.active(),
                    replicas: vbucket.replicas().to_vec(),
                }
            })
            .collect()
    }

    /// Moves one vbucket to where a plan wants it, with its state.
    pub(crate) fn assign(&self, id: u16, chain: &VbucketNodes) {
        let (Ok(mut vbucket), Some(active)) = (self.vbucket(id), chain.active) else {
            return;
        };
        if vbucket.active().is_some() {
            vbucket.assign(active, chain.replicas.clone());
        } else {
            vbucket.recreate(fresh_uuid(), active, chain.replicas.clone());
        }
        self.account(&mut vbucket);
    }

    /// Promotes replicas where the active node is lost.
    pub(crate) fn fail_over(&self, lost: NodeSet) {
        for vbucket in &self.vbuckets {
            let mut vbucket = vbucket.lock();
            vbucket.fail_over(lost, fresh_uuid());
            self.account(&mut vbucket);
        }
    }

    /// Does something with every vbucket, one lock at a time.
    pub(crate) fn for_each_vbucket(&self, mut action: impl FnMut(&mut Vbucket)) {
        for vbucket in &self.vbuckets {
            let mut vbucket = vbucket.lock();
            action(&mut vbucket);
            self.account(&mut vbucket);
        }
    }

    /// Adds what a vbucket grew by to what the bucket uses.
    pub(crate) fn account(&self, vbucket: &mut Vbucket) {
        let grown = vbucket.take_growth();
        if grown != 0 {
            self.used_bytes.fetch_add(grown as i64, Ordering::Relaxed);
        }
    }

    /// Returns how many bytes the documents count for, over all nodes.
    pub(crate) fn used_bytes(&self) -> u64 {
        u64::try_from(self.used_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns how many bytes it may hold now.
    pub(crate) fn quota_bytes(&self) -> u64 {
        self.quota_bytes.load(Ordering::Relaxed)
    }

    /// Changes how many bytes it may hold.
    pub(crate) fn set_quota_bytes(&self, bytes: u64) {
        self.quota_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns whether it may be emptied over the management endpoint now.
    pub(crate) fn flush_enabled(&self) -> bool {
        self.flush_enabled.load(Ordering::Relaxed)
    }

    /// Changes whether it may be emptied over the management endpoint.
    pub(crate) fn set_flush_enabled(&self, enabled: bool) {
        self.flush_enabled.store(enabled, Ordering::Relaxed);
    }

    /// Returns whether the quota is used up, even without expired documents.
    pub(crate) fn is_full(&self, now: Now) -> bool {
        if self.used_bytes() <= self.quota_bytes() {
            return false;
        }
        // Going through everything is slow, and once a second is as often as documents expire.
        if self.swept_at.swap(now.seconds(), Ordering::Relaxed) != now.seconds() {
            self.for_each_vbucket(|vbucket| vbucket.sweep_expired(now));
        }
        self.used_bytes() > self.quota_bytes()
    }
}

fn fresh_uuid() -> u64 {
    // Clients treat zero as no uuid at all.
    steadfast_os::random::u64() >> 16 | 1
}
