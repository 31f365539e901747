//! Operations on documents.
//!
//! Each method returns a builder that takes options and runs when it is awaited.
//! Invalid arguments are rejected then, before anything is sent. Dropping the
//! future abandons the operation: a request that was not sent is never sent, and a
//! late response is ignored.
//!
//! ```
//! use std::time::Duration;
//! use steadfast_couchbase::collection::{LookupInSpec, MutateInSpec};
//! use steadfast_couchbase::{Cluster, Credentials, DurabilityLevel, ErrorKind};
//! # use steadfast_cluster::{BucketSettings, TestCluster};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let bucket = BucketSettings::new("travel").replicas(1).vbuckets(64);
//! # let server = TestCluster::builder().nodes(2).bucket(bucket).user("app", "secret").start().await?;
//! # let connection_string = server.connection_string();
//! let credentials = Credentials::password("app", "secret");
//! let cluster = Cluster::connect(&connection_string, credentials).await?;
//! let users = cluster.bucket("travel").default_collection();
//! # cluster.bucket("travel").wait_until_ready(Duration::from_secs(60)).await?;
//!
//! // A write that survives the loss of a node, in five seconds at most.
//! let ada = serde_json::json!({"name": "Ada", "visits": 1});
//! users
//!     .insert("u:42", &ada)
//!     .durability(DurabilityLevel::Majority)
//!     .timeout(Duration::from_secs(5))
//!     .await?;
//!
//! // Reads and changes only parts of a document.
//! let visit = [MutateInSpec::increment("visits", 1)];
//! let visits: u32 = users.mutate_in("u:42", &visit).await?.content_as(0)?;
//! assert_eq!(visits, 2);
//! let name = users.lookup_in("u:42", &[LookupInSpec::get("name")]).await?;
//! assert_eq!(name.content_as::<String>(0)?, "Ada");
//!
//! // An error has a kind to match, and describes what happened.
//! let error = users.insert("u:42", &ada).await.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::DocumentExists);
//! assert!(error.to_string().starts_with("insert travel._default._default: document exists"));
//!
//! // The CAS detects that the document has changed since it was read.
//! let read = users.get("u:42").await?;
//! users.touch("u:42", Duration::from_secs(3600)).await?;
//! let stale = users.remove("u:42").cas(read.cas()).await.unwrap_err();
//! assert_eq!(stale.kind(), ErrorKind::CasMismatch);
//! # cluster.close().await;
//! # Ok(())
//! # }
//! ```

mod concatenate;
mod counter;
mod exists;
mod expiry;
mod future;
mod get;
mod locks;
mod lookup_in;
mod mutate_in;
mod options;
mod paths;
mod replicas;
mod resolve;
mod result;
mod store;
mod touch;
mod value;

use std::fmt;
use std::sync::Arc;

pub use concatenate::Concatenate;
pub use counter::{Count, CounterResult};
pub use exists::{Exists, ExistsResult};
pub use expiry::Expiry;
pub use future::OperationFuture;
pub use get::{Get, GetResult};
pub use locks::{GetAndLock, Unlock};
pub use lookup_in::{LookupIn, LookupInResult, LookupInSpec};
pub use mutate_in::{MutateIn, MutateInResult, MutateInSpec, StoreSemantics};
pub use replicas::{GetAllReplicas, GetAnyReplica, GetReplica, GetReplicaResult};
pub use resolve::{Resolution, Resolve};
pub use result::{MutationResult, MutationToken};
pub use store::{Remove, Store};
pub use touch::{GetAndTouch, Touch};
pub use value::{Format, Raw};

use crate::cluster::Handle;
use crate::kv::collection_ids::CollectionEntry;
use crate::topology::BucketCore;

/// A collection of documents. Cheap to clone.
#[derive(Clone)]
pub struct Collection {
    /// Keeps the client open.
    _handle: Arc<Handle>,
    pub(crate) bucket: Arc<BucketCore>,
    pub(crate) entry: Arc<CollectionEntry>,
}

impl Collection {
    pub(crate) fn new(
        handle: Arc<Handle>,
        bucket: Arc<BucketCore>,
        scope: &str,
        name: &str,
    ) -> Self {
        let entry = bucket.collections.get(scope, name);
        Self {
            _handle: handle,
            bucket,
            entry,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// The name of its scope.
    pub fn scope(&self) -> &str {
        &self.entry.scope
    }

    /// The name of its bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket.name
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.bucket(), self.scope(), self.name())
    }
}
