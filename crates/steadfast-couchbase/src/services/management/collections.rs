//! Management of scopes and collections.

use hyper::Method;
use serde::Deserialize;

use super::{Management, ManagementRequest};
use crate::error::ErrorKind;
use crate::services::http::named_limit;
use crate::services::path::segment;

/// A scope of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ScopeInfo {
    /// The name of the scope.
    pub name: String,
    /// The collections in the scope.
    #[serde(default)]
    pub collections: Vec<CollectionInfo>,
}

/// A collection of a scope.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct CollectionInfo {
    /// The name of the collection.
    pub name: String,
    /// The longest expiry of its documents in seconds; zero is none.
    #[serde(default, rename = "maxTTL")]
    pub max_ttl: i64,
}

impl Management {
    /// Lists the scopes of a bucket and their collections.
    pub fn scopes(&self, bucket: &str) -> ManagementRequest<Vec<ScopeInfo>> {
        self.request("list scopes", Method::GET, scopes_path(bucket))
            .decode(
                |response| {
                    #[derive(Deserialize)]
                    struct Manifest {
                        scopes: Vec<ScopeInfo>,
                    }
                    match serde_json::from_slice::<Manifest>(response.body()) {
                        Ok(manifest) => Ok(manifest.scopes),
                        Err(_) => Err("the response is no manifest"),
                    }
                },
                error_kind,
            )
            .about([Some(bucket), None, None])
    }

    /// Creates a scope.
    pub fn create_scope(&self, bucket: &str, scope: &str) -> ManagementRequest<()> {
        self.request("create scope", Method::POST, scopes_path(bucket))
            .form([("name", scope)])
            .ignore_response(error_kind)
            .about([Some(bucket), Some(scope), None])
    }

    /// Drops a scope with all that is in it.
    pub fn drop_scope(&self, bucket: &str, scope: &str) -> ManagementRequest<()> {
        let path = format!("{}/{}", scopes_path(bucket), segment(scope));
        self.request("drop scope", Method::DELETE, path)
            .ignore_response(error_kind)
            .about([Some(bucket), Some(scope), None])
    }

    /// Creates a collection.
    pub fn create_collection(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
    ) -> ManagementRequest<()> {
        let path = format!("{}/{}/collections", scopes_path(bucket), segment(scope));
        self.request("create collection", Method::POST, path)
            .form([("name", collection)])
            .ignore_response(error_kind)
            .about([Some(bucket), Some(scope), Some(collection)])
    }

    /// Drops a collection with all that is in it.
    pub fn drop_collection(
        &self,
        bucket: &str,
        scope: &str,
        collection: &str,
    ) -> ManagementRequest<()> {
        let path = format!(
            "{}/{}/collections/{}",
            scopes_path(bucket),
            segment(scope),
            segment(collection)
        );
        self.request("drop collection", Method::DELETE, path)
            .ignore_response(error_kind)
            .about([Some(bucket), Some(scope), Some(collection)])
    }
}

fn scopes_path(bucket: &str) -> String {
    format!("/pools/default/buckets/{}/scopes", segment(bucket))
}

/// Recognizes errors by their text: the server has no codes for them.
fn error_kind(status: u16, text: &str) -> Option<ErrorKind> {
    match (status, text) {
        (400, _) if text.contains("already exists") && text.contains("Collection with name") => {
            Some(ErrorKind::CollectionExists)
        }
        (400, _) if text.contains("already exists") => Some(ErrorKind::ScopeExists),
        (404, _) if text.contains("Collection with name") => Some(ErrorKind::CollectionNotFound),
        (404, _) if text.contains("Scope with name") => Some(ErrorKind::ScopeNotFound),
        (404, _) => Some(ErrorKind::BucketNotFound),
        (429, _) => named_limit(text),
        _ => None,
    }
}
