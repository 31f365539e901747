//! The interface between the workload and a client, so that other clients can be tested.

mod class;
mod side;
mod steadfast;

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

pub use self::side::{SideClient, SideFuture, SidePlace};
pub use self::steadfast::{Access, Steadfast};
pub use crate::measure::RetryCounts;

/// A client under test. Clones share its connections.
///
/// Dropping a future abandons the operation. The workload does so only after the run, with reads
/// and clean-up removals that are out of time.
pub trait Client: Clone + Send + Sync + 'static {
    /// Reads a document.
    fn get(&self, key: &str) -> impl ClientFuture<Content>;
    /// Reads a document and its expiry, by a lookup of both.
    fn get_with_expiry(&self, key: &str) -> impl ClientFuture<Content>;
    /// Reads the array `a` of a document, by a lookup of this part.
    fn lookup_array(&self, key: &str) -> impl ClientFuture<Content>;
    /// Writes a document, optionally with durability. Returns its new CAS, as all writes do.
    fn upsert(&self, key: &str, value: &Value<'_>, durable: bool) -> impl ClientFuture<u64>;
    /// Writes a new document.
    fn insert(&self, key: &str, value: &Value<'_>) -> impl ClientFuture<u64>;
    /// Replaces a document that has this CAS.
    fn replace(&self, key: &str, value: &Value<'_>, cas: u64) -> impl ClientFuture<u64>;
    /// Removes a document.
    fn remove(&self, key: &str) -> impl ClientFuture<u64>;
    /// Adds to a counter that exists.
    fn increment(&self, key: &str, delta: u64) -> impl ClientFuture<Counted>;
    /// Appends bytes to a document.
    fn append(&self, key: &str, bytes: String) -> impl ClientFuture<u64>;
    /// Prepends bytes to a document.
    fn prepend(&self, key: &str, bytes: String) -> impl ClientFuture<u64>;
    /// Appends an element to the array `a` of a document.
    fn array_append(&self, key: &str, element: &str) -> impl ClientFuture<u64>;
    /// Sets the expiry of a document, in seconds since 1970.
    fn touch(&self, key: &str, expiry: u32) -> impl ClientFuture<u64>;
    /// Reads the `id` of a document with a query; none if there is no such document.
    fn select(&self, key: &str) -> impl ClientFuture<Option<String>>;
    /// Writes a new document with a query, which returns no CAS.
    fn insert_statement(&self, key: &str, value: &Value<'_>) -> impl ClientFuture<()>;
    /// Reads a document and locks it for a second. Its CAS unlocks it.
    fn lock(&self, key: &str) -> impl ClientFuture<Content>;
    /// Unlocks a document.
    fn unlock(&self, key: &str, cas: u64) -> impl ClientFuture<()>;

    /// Returns whether the cluster has a query service. Without one, the workload uses operations
    /// on documents instead of statements.
    fn has_query(&self) -> bool {
        true
    }

    /// Returns the client for buckets and collections beside the workload, if it supports them.
    /// Without it, faults that drop and create them are left out.
    fn side(&self) -> Option<Arc<dyn SideClient>> {
        None
    }

    /// Sets a new password for the user.
    fn set_password(&self, user: &str, password: &str);

    /// Returns the retries and refusals so far, if the client counts them.
    fn retry_counts(&self) -> RetryCounts {
        RetryCounts::default()
    }
}

/// A future of an operation.
pub trait ClientFuture<T>: Future<Output = Result<T, ClientError>> + Send {}

impl<T, F: Future<Output = Result<T, ClientError>> + Send> ClientFuture<T> for F {}

/// A document that was read, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub value: Bytes,
    /// The CAS; all ones while the document is locked.
    pub cas: u64,
    /// The flags, where the operation returns them.
    pub flags: Option<u32>,
    /// The expiry in seconds since 1970, zero for never, where the operation returns it.
    pub expiry: Option<u32>,
}

/// The result of adding to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The new value.
    pub value: u64,
    /// The new CAS.
    pub cas: u64,
}

/// A value to write.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Value<'a> {
    /// A JSON object.
    Document {
        /// The id of the write. It comes first, because the journal keeps only the beginning.
        id: String,
        /// Fills the document to a usual size.
        padding: &'a str,
        /// A checksum of both.
        sum: String,
    },
    /// The initial value of a counter.
    Counter(u64),
    /// A text to append to.
    Text(&'a str),
    /// A JSON object with an array to append to.
    Array {
        /// The array.
        a: [u64; 0],
    },
}

/// The error of an operation.
#[derive(Clone, Debug)]
pub struct ClientError {
    /// What the accounting makes of it.
    pub class: ErrorClass,
    /// Whether the operation may have been applied.
    pub ambiguous: bool,
    /// Whether the operation timed out.
    pub timeout: bool,
    /// The name of the error.
    pub name: String,
    /// The full text of the error, with its attempts.
    pub history: String,
}

/// What the accounting makes of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Injected faults explain it: a timeout, a closed connection, a missing node.
    Explained,
    /// The document does not exist.
    NotFound,
    /// The document exists already.
    Exists,
    /// The document has another CAS.
    CasMismatch,
    /// The cluster rejected the credentials.
    Authentication,
    /// The cluster accepted the credentials, and the user lacks the rights for the operation. That
    /// is an answer, which an administrator can cause at any time.
    Denied,
    /// No fault explains it.
    Unexplained,
}

impl ClientError {
    /// The error of an operation that was abandoned without an answer.
    pub(crate) fn unanswered() -> Self {
        Self {
            class: ErrorClass::Explained,
            ambiguous: false,
            timeout: true,
            name: "UnambiguousTimeout".to_owned(),
            history: "no answer before the run gave up".to_owned(),
        }
    }

    /// Returns whether it says what is in the document, which counts as a success.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(
            self.class,
            ErrorClass::NotFound | ErrorClass::Exists | ErrorClass::CasMismatch
        )
    }

    /// Returns whether it reports a missing document.
    pub(crate) fn is_not_found(&self) -> bool {
        self.class == ErrorClass::NotFound
    }
}
