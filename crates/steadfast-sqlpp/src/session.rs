//! The interface between statements and the server that they run on.
//!
//! A [`Session`] is one request's view of the cluster: its user, its node, the time, and the
//! collections. A [`DocumentStore`] is a collection: it reads and writes documents by key.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use steadfast_wire::Status;
use steadfast_wire::subdoc::{MultiExtras, MutationSpec};

use crate::index_definitions::Indexes;
use crate::language::{Random, Row};
use crate::plans::PreparedPlans;
use crate::transaction::Transactions;

/// The flags of a JSON document.
pub const JSON_FLAGS: u32 = 0x0200_0000;

/// One request's view of the cluster.
pub trait Session: Debug + Send + Sync {
    /// The name of the user.
    fn user(&self) -> &str;
    /// Returns whether the user may open a bucket.
    fn may_open(&self, bucket: &str) -> bool;
    /// Returns whether the user may write documents.
    fn may_write(&self) -> bool;
    /// The node that the request came to, as long as it runs.
    fn node_run(&self) -> Arc<dyn NodeRun>;
    /// The uuid of the cluster.
    fn cluster_uuid(&self) -> &str;
    /// The time since the Unix epoch.
    fn now(&self) -> Duration;
    /// The source of random numbers.
    fn random(&self) -> Random;
    /// The prepared statements of the cluster.
    fn plans(&self) -> &PreparedPlans;
    /// The open transactions of the cluster.
    fn transactions(&self) -> &Transactions;
    /// Returns whether a bucket has a scope.
    fn has_scope(&self, bucket: &str, scope: &str) -> bool;
    /// A collection by its names.
    fn collection(&self, bucket: &str, scope: &str, name: &str) -> Option<Arc<dyn DocumentStore>>;
    /// A collection by its id, without a check that there is one.
    fn collection_of_id(&self, bucket: &str, id: u32) -> Option<Arc<dyn DocumentStore>>;
    /// All buckets.
    fn buckets(&self) -> Vec<BucketNames>;
    /// Returns whether a vbucket has this history, up to this write.
    fn has_reached(&self, bucket: &str, vbucket: u16, uuid: u64, seqno: u64) -> bool;
}

/// A node from a start to the next stop. A transaction ends with it.
pub trait NodeRun: Debug + Send + Sync {
    /// The number of the node.
    fn node(&self) -> u32;
    /// Returns whether the node has stopped since.
    fn has_ended(&self) -> bool;
}

/// The names in a bucket.
#[derive(Debug)]
pub struct BucketNames {
    /// The name of the bucket.
    pub name: String,
    /// The id, the scope and the name of each collection.
    pub collections: Vec<(u32, String, String)>,
    /// The query indexes.
    pub indexes: Arc<Indexes>,
}

/// A collection of documents.
pub trait DocumentStore: Send + Sync {
    /// The name of the bucket.
    fn bucket(&self) -> &str;
    /// The id.
    fn id(&self) -> u32;
    /// The scope and the name, while there is such a collection.
    fn names(&self) -> Option<(String, String)>;
    /// The query indexes of the bucket.
    fn indexes(&self) -> &Indexes;
    /// How many seconds a document lives at most; zero means no limit.
    fn max_ttl(&self) -> u32;
    /// The keys of all documents; on demand also of inserts that a transaction has staged.
    ///
    /// # Errors
    /// If a node that has some of them is down.
    fn keys(&self, staged_too: bool) -> Result<Vec<String>, Status>;
    /// A document.
    ///
    /// # Errors
    /// As the key-value service answers.
    fn read(&self, key: &str) -> Result<Row, Status>;
    /// A document, live or deleted, with its attributes.
    ///
    /// # Errors
    /// As the key-value service answers, but not if there is none.
    fn look(&self, key: &str) -> Result<Seen, Status>;
    /// Rejects a write that a full bucket has no room for.
    ///
    /// # Errors
    /// If it is full.
    fn check_room(&self) -> Result<(), Status>;
    /// Writes a document, which keeps its expiry on demand, and returns its CAS.
    ///
    /// # Errors
    /// As the key-value service answers.
    fn write(
        &self,
        mode: WriteMode,
        key: &str,
        value: &Value,
        preserve_expiry: bool,
    ) -> Result<u64, Status>;
    /// Removes a document.
    ///
    /// # Errors
    /// As the key-value service answers.
    fn remove(&self, key: &str) -> Result<(), Status>;
    /// Changes parts of a document, and returns its CAS.
    ///
    /// # Errors
    /// As the key-value service answers.
    fn mutate(&self, key: &str, change: Mutation<'_>) -> Result<u64, Status>;
}

/// The documents that a write accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Only a new one.
    Insert,
    /// A new one or an old one.
    Upsert,
    /// Only an old one.
    Update,
}

/// A change of parts of a document.
#[derive(Debug)]
pub struct Mutation<'a> {
    /// The CAS that it must have; zero is any.
    pub cas: u64,
    /// Whether the expiry stays.
    pub preserve_expiry: bool,
    /// Expiry and flags.
    pub extras: MultiExtras,
    /// The changes, in order.
    pub specs: &'a [MutationSpec<'a>],
}

/// A document, live or deleted, with its attributes.
#[derive(Debug, Default)]
pub struct Seen {
    /// Zero if there is not even a tombstone.
    pub cas: u64,
    /// The document, if it is live.
    pub live: Option<Row>,
    /// The attributes.
    pub xattrs: Option<Arc<Map<String, Value>>>,
}
