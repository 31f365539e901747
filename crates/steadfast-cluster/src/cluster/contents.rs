//! Buckets, scopes and collections.

use std::sync::Arc;

use super::{ClusterError, TestCluster};
use crate::bucket::{Bucket, BucketSettings};
use crate::manifest::{BucketManifest, CollectionSettings, ManifestError};
use crate::topology::NodeId;
use crate::users::roles::Role;
use crate::users::{self, Profile};

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
        bucket.end();
        self.shared().publish();
        Ok(())
    }

    /// Adds or replaces a user with roles, such as `data_reader[travel],data_writer[travel]`.
    ///
    /// # Errors
    /// If the name is invalid, or a role is unknown, malformed or limited to something that does
    /// not exist.
    pub fn put_user(&self, name: &str, password: &str, roles: &str) -> Result<(), ClusterError> {
        users::check_name(name).map_err(ClusterError::Invalid)?;
        let roles = Role::parse_list(roles)
            .map_err(|role| ClusterError::Invalid(format!("{role:?} is not a role")))?;
        if let Some(role) = roles.iter().find(|role| !self.shared().has_target(role)) {
            let target: Vec<&str> = role.target().collect();
            return Err(ClusterError::Invalid(format!(
                "the role {role} is limited to {:?}, which does not exist: create it first",
                target.join(":")
            )));
        }
        let profile = Profile {
            display_name: String::new(),
            roles: Some(roles.iter().map(Role::to_string).collect()),
        };
        let rights = users::roles::rights(&roles);
        self.users()
            .put_with_profile(name, password, rights, profile);
        Ok(())
    }

    /// Creates a search index, without documents. Its name may have a bucket and a scope in front:
    /// `travel.inventory.hotels`.
    pub fn create_search_index(&self, name: &str) {
        self.shared().search_indexes.create(name);
    }

    pub(crate) fn bucket(&self, name: &str) -> Result<Arc<Bucket>, ClusterError> {
        self.shared()
            .bucket(name)
            .ok_or_else(|| ClusterError::UnknownBucket(name.to_owned()))
    }

    /// Creates a scope; returns the uid of the new manifest.
    pub fn create_scope(&self, bucket: &str, scope: &str) -> Result<u64, ClusterError> {
        self.change_manifest(bucket, |manifest| {
            Ok((manifest.create_scope(scope)?, Vec::new()))
        })
    }

    /// Drops a scope with its collections and their documents; returns the uid of the new manifest.
    pub fn drop_scope(&self, bucket: &str, scope: &str) -> Result<u64, ClusterError> {
        self.change_manifest(bucket, |manifest| manifest.drop_scope(scope))
    }

    /// Creates a collection; returns the uid of the new manifest. Its documents live `max_ttl`
    /// seconds at most; zero means no limit.
    pub fn create_collection(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
        max_ttl: u32,
    ) -> Result<u64, ClusterError> {
        let settings = CollectionSettings {
            max_ttl: i32::try_from(max_ttl).unwrap_or(i32::MAX),
            ..CollectionSettings::default()
        };
        self.create_collection_with(bucket, scope, collection, settings)
    }

    pub(crate) fn create_collection_with(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
        settings: CollectionSettings,
    ) -> Result<u64, ClusterError> {
        self.change_manifest(bucket, |manifest| {
            let next = manifest.create_collection(scope, collection, settings)?;
            Ok((next, Vec::new()))
        })
    }

    /// Changes the settings of a collection; returns the uid of the new manifest.
    pub(crate) fn change_collection(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
        change: impl FnOnce(&mut CollectionSettings),
    ) -> Result<u64, ClusterError> {
        self.change_manifest(bucket, |manifest| {
            let next = manifest.change_collection(scope, collection, change)?;
            Ok((next, Vec::new()))
        })
    }

    /// Drops a collection with its documents; returns the uid of the new manifest.
    pub fn drop_collection(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
    ) -> Result<u64, ClusterError> {
        self.change_manifest(bucket, |manifest| {
            let (next, id) = manifest.drop_collection(scope, collection)?;
            Ok((next, vec![id]))
        })
    }

    /// Changes a manifest, and purges the collections that the change dropped.
    fn change_manifest(
        &self,
        bucket: &str,
        change: impl FnOnce(&BucketManifest) -> Result<(BucketManifest, Vec<u32>), ManifestError>,
    ) -> Result<u64, ClusterError> {
        let bucket = self.bucket(bucket)?;
        let (uid, dropped) = bucket.change_manifest(change)?;
        bucket.purge_collections(&dropped);
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
}
