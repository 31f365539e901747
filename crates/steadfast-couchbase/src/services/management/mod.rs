//! Management requests: any path of the cluster's REST interface, and methods for
//! buckets, scopes and collections.
//!
//! A `GET` is idempotent and everything else is not (RFC 0049, "Idempotent
//! Operation List"; RFC 0071). RFC 0049 lists no response that is retried, so an
//! error response is final.

mod buckets;
mod collections;
mod request;

use std::sync::Arc;

pub use buckets::{BucketKind, NewBucket};
pub use collections::{CollectionInfo, ScopeInfo};
use hyper::Method;
pub(super) use request::WholeResponse;
pub use request::{ManagementRequest, ManagementResponse};

use crate::cluster::Handle;

/// Management of a cluster: buckets, scopes, collections and the REST interface.
#[derive(Clone)]
pub struct Management {
    client: Arc<Handle>,
}

impl Management {
    pub(crate) fn new(client: Arc<Handle>) -> Self {
        Self { client }
    }

    /// Sends a `GET` request. The path begins with a slash and is percent-encoded.
    pub fn get(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management GET", Method::GET, path)
    }

    /// Sends a `POST` request.
    pub fn post(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management POST", Method::POST, path)
    }

    /// Sends a `PUT` request.
    pub fn put(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management PUT", Method::PUT, path)
    }

    /// Sends a `DELETE` request.
    pub fn delete(&self, path: impl Into<String>) -> ManagementRequest {
        self.request("management DELETE", Method::DELETE, path)
    }

    fn request(
        &self,
        operation: &'static str,
        method: Method,
        path: impl Into<String>,
    ) -> ManagementRequest {
        ManagementRequest::new(self.client.clone(), operation, method, path.into())
    }
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Management").finish_non_exhaustive()
    }
}
