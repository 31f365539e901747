//! Management calls: anything that the cluster's REST interface offers, and by
//! name what users of documents need: buckets, scopes and collections.
//!
//! A `GET` is idempotent and everything else is not (RFC 0049, "Idempotent
//! Operation List"; RFC 0071). No answer is in the list of those that are
//! retried, so a refusal is final.

mod buckets;
mod collections;
mod request;

use std::sync::Arc;

pub use buckets::{BucketKind, NewBucket};
pub use collections::{CollectionInfo, ScopeInfo};
use hyper::Method;
pub use request::{ManagementRequest, ManagementResponse};

use super::host::Host;

/// The management of a cluster.
#[derive(Clone)]
pub struct Management {
    host: Arc<dyn Host>,
}

impl Management {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host }
    }

    /// Reads something. The path begins with a slash, and its parts are escaped.
    pub fn get(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management GET", Method::GET, path)
    }

    /// Makes or does something.
    pub fn post(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management POST", Method::POST, path)
    }

    /// Puts something in its place.
    pub fn put(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management PUT", Method::PUT, path)
    }

    /// Removes something.
    pub fn delete(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management DELETE", Method::DELETE, path)
    }

    /// Asks who the cluster is: its pools, without which no management works.
    pub fn pools(&self) -> ManagementRequest {
        self.request("management pools", Method::GET, "/pools")
    }

    fn request(
        &self,
        operation: &'static str,
        method: Method,
        path: impl Into<String>,
    ) -> ManagementRequest {
        ManagementRequest::new(self.host.clone(), operation, method, path.into())
    }
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Management").finish_non_exhaustive()
    }
}
