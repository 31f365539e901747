//! Operations on buckets and collections that faults drop and create, beside the workload.

use std::pin::Pin;

use super::ClientError;

/// A future of an operation.
pub type SideFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;

/// A bucket with the name of a collection in its default scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidePlace {
    /// The bucket.
    pub bucket: &'static str,
    /// The collection.
    pub collection: &'static str,
}

/// A client that reaches buckets and collections outside of the workload.
pub trait SideClient: Send + Sync {
    /// Writes a document, optionally with durability.
    fn upsert(&self, at: SidePlace, key: String, durable: bool) -> SideFuture<'_, ()>;
    /// Returns whether a document exists.
    fn exists(&self, at: SidePlace, key: String) -> SideFuture<'_, bool>;
    /// Writes new documents with one statement, in this order.
    fn insert_rows(&self, at: SidePlace, keys: Vec<String>) -> SideFuture<'_, ()>;
}
