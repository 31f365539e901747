//! Settings of a bucket to create.

use serde_json::{Map, Value};

use crate::http::mgmt::details;

/// Settings of a bucket to create.
///
/// ```
/// use steadfast_cluster::BucketSettings;
///
/// let travel = BucketSettings::new("travel").replicas(2).vbuckets(64);
/// assert_eq!(travel.name, "travel");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketSettings {
    /// The name.
    pub name: String,
    /// The number of replicas of each vbucket.
    pub replicas: usize,
    /// The number of vbuckets; real servers have 1024, or 64 or 128.
    pub vbuckets: u16,
    /// The initial quota in bytes, over all nodes and replicas.
    pub quota_bytes: u64,
    /// Whether management may flush it, initially.
    pub flush_enabled: bool,
    /// Whether management shows it as an ephemeral bucket.
    pub ephemeral: bool,
    /// Further settings by the names that management has for them, initially.
    pub(crate) details: Map<String, Value>,
}

impl BucketSettings {
    /// A bucket with one replica, 1024 vbuckets and a gibibyte.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            replicas: 1,
            vbuckets: 1024,
            quota_bytes: 1024 * 1024 * 1024,
            flush_enabled: true,
            ephemeral: false,
            details: details::defaults(false),
        }
    }

    /// Sets the number of replicas, three at most.
    #[must_use]
    pub fn replicas(self, replicas: usize) -> Self {
        Self { replicas, ..self }
    }

    /// Sets the number of vbuckets: a power of two, 1024 at most.
    #[must_use]
    pub fn vbuckets(self, vbuckets: u16) -> Self {
        Self { vbuckets, ..self }
    }

    /// Sets the quota in bytes.
    #[must_use]
    pub fn quota_bytes(self, quota_bytes: u64) -> Self {
        Self {
            quota_bytes,
            ..self
        }
    }

    /// Validates the settings; the error is a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        let name_is_good = (1..=100).contains(&self.name.len())
            && self
                .name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.%".contains(&byte))
            && !self.name.starts_with('.');
        if !name_is_good {
            return Err(format!(
                "invalid bucket name {:?}: use letters, digits, and _ - . %",
                self.name
            ));
        }
        if self.replicas > 3 {
            return Err(format!(
                "a bucket has at most 3 replicas, not {}",
                self.replicas
            ));
        }
        if !self.vbuckets.is_power_of_two() || self.vbuckets > 1024 {
            return Err(format!(
                "a bucket has 1, 2, 4, … or 1024 vbuckets, not {}",
                self.vbuckets
            ));
        }
        Ok(())
    }
}

/// The name alone, with the settings of [`BucketSettings::new`].
impl<T: Into<String>> From<T> for BucketSettings {
    fn from(name: T) -> Self {
        Self::new(name)
    }
}
