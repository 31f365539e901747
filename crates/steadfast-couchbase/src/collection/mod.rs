//! The operations on documents.
//!
//! Each is a value that says what is to be done; it can be told more, and is
//! done when it is awaited:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use steadfast_couchbase::{Collection, DurabilityLevel};
//! # async fn example(users: Collection) -> Result<(), steadfast_couchbase::Error> {
//! users
//!     .upsert("u:42", &"Ada")
//!     .durability(DurabilityLevel::Majority)
//!     .timeout(Duration::from_secs(5))
//!     .await?;
//! # Ok(())
//! # }
//! ```

mod check;
mod concatenate;
mod counter;
mod exists;
mod expiry;
mod get;
mod get_and_lock;
mod get_and_touch;
mod lookup_in;
mod mutate_in;
mod observe_seqno;
mod options;
mod paths;
mod remove;
mod replicas;
mod result;
mod store;
mod touch;
mod unlock;
mod value;

use std::fmt;
use std::sync::Arc;

pub use concatenate::Concatenate;
pub use counter::{Count, CounterResult};
pub use exists::{Exists, ExistsResult};
pub use expiry::Expiry;
pub use get::{Get, GetResult};
pub use get_and_lock::GetAndLock;
pub use get_and_touch::GetAndTouch;
pub use lookup_in::{LookupIn, LookupInResult, LookupInSpec};
pub use mutate_in::{MutateIn, MutateInResult, MutateInSpec, MutationMacro, StoreSemantics};
pub use observe_seqno::{ObserveSeqno, ObserveSeqnoResult};
pub use remove::Remove;
pub use replicas::{GetAllReplicas, GetAnyReplica, GetReplica, GetReplicaResult};
pub use result::{MutationResult, MutationToken};
pub use store::Store;
pub use touch::Touch;
pub use unlock::Unlock;
pub use value::{Format, Raw};

use crate::cluster::Handle;
use crate::collections;
use crate::kv::execute::Subject;
use crate::topology::BucketCore;

/// A collection of documents. Cheap to clone.
#[derive(Clone)]
pub struct Collection {
    /// Keeps the client open.
    _handle: Arc<Handle>,
    bucket: Arc<BucketCore>,
    collection: Arc<collections::Collection>,
}

impl Collection {
    pub(crate) fn new(
        handle: Arc<Handle>,
        bucket: Arc<BucketCore>,
        scope: &str,
        name: &str,
    ) -> Self {
        let collection = bucket.collections.get(scope, name);
        Self {
            _handle: handle,
            bucket,
            collection,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.collection.name
    }

    /// The name of its scope.
    pub fn scope(&self) -> &str {
        &self.collection.scope
    }

    /// The name of its bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket.name
    }

    pub(crate) fn subject<'a>(&'a self, id: &'a str) -> Subject<'a> {
        Subject {
            bucket: &self.bucket,
            collection: &self.collection,
            id: id.as_bytes(),
            copy: 0,
            dispensable: false,
            vbucket: None,
        }
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.bucket(), self.scope(), self.name())
    }
}
