//! Scopes and collections.

use serde_json::json;

use super::super::{HttpRequest, HttpResponse, HttpSession};
use super::pools::open;
use super::{not_found, refused};
use crate::cluster::{ClusterError, TestCluster};
use crate::manifest::{CollectionSettings, ManifestError};
use crate::users::User;

pub(super) fn manifest(session: &HttpSession, user: &User, bucket: &str) -> HttpResponse {
    match open(session, user, bucket) {
        Ok(bucket) => {
            let history =
                bucket.details().get("historyRetentionCollectionDefault") == Some(&json!(true));
            HttpResponse::json(200, &bucket.manifest().to_json_with_defaults(history))
        }
        Err(response) => response,
    }
}

/// Creates and drops; `rest` is the path behind `scopes`.
pub(super) fn change(
    method: &str,
    bucket: &str,
    rest: &[&str],
    request: &HttpRequest,
    cluster: &TestCluster,
) -> HttpResponse {
    match cluster.bucket(bucket) {
        Err(error) => return refuse(&error),
        Ok(bucket) if request.parameter("history").is_some() && !bucket.is_magma() => {
            let sentence = "Not supported: the history of a collection needs a magma bucket";
            return refused(400, [("history", sentence.to_owned())]);
        }
        Ok(_) => {}
    }
    let name = || match request.parameter("name") {
        Some(name) => Ok(name),
        None => Err(refused(
            400,
            [("name", "The value must be supplied".into())],
        )),
    };
    let changed = match (method, rest) {
        ("POST", []) => match name() {
            Ok(scope) => cluster.create_scope(bucket, scope),
            Err(response) => return response,
        },
        ("DELETE", [scope]) => cluster.drop_scope(bucket, scope),
        // Changes are everywhere at once here, so there is nothing to wait for.
        ("POST", ["@ensureManifest", _uid]) => return HttpResponse::text(200, ""),
        ("POST", [scope, "collections"]) => match (name(), settings(request)) {
            (Ok(name), Ok((max_ttl, history))) => {
                let settings = CollectionSettings {
                    max_ttl: max_ttl.unwrap_or(0),
                    history,
                };
                cluster.create_collection_with(bucket, scope, name, settings)
            }
            (Err(response), _) | (_, Err(response)) => return response,
        },
        ("PATCH", [scope, "collections", collection]) => match settings(request) {
            Ok((max_ttl, history)) => {
                cluster.change_collection(bucket, scope, collection, |settings| {
                    settings.max_ttl = max_ttl.unwrap_or(settings.max_ttl);
                    settings.history = history.or(settings.history);
                })
            }
            Err(response) => return response,
        },
        ("DELETE", [scope, "collections", collection]) => {
            cluster.drop_collection(bucket, scope, collection)
        }
        _ => return not_found(),
    };
    match changed {
        Ok(uid) => HttpResponse::json(200, &json!({"uid": format!("{uid:x}")})),
        Err(ClusterError::Manifest(ManifestError::Exists(name))) => {
            let sentence = match rest {
                [] => format!("Scope with name {name:?} already exists"),
                [scope, ..] => {
                    format!("Collection with name {name:?} in scope {scope:?} already exists")
                }
            };
            refused(400, [("_", sentence)])
        }
        Err(error) => refuse(&error),
    }
}

/// The settings that a request names: the longest life of documents, and the history.
type Settings = (Option<i32>, Option<bool>);

fn settings(request: &HttpRequest) -> Result<Settings, HttpResponse> {
    let max_ttl = match request.parameter("maxTTL") {
        None => None,
        Some(text) => match text.parse::<i32>() {
            Ok(seconds) if seconds >= -1 => Some(seconds),
            _ => {
                let sentence = "The value must be in range from -1 to 2147483647".to_owned();
                return Err(refused(400, [("maxTTL", sentence)]));
            }
        },
    };
    let history = match request.parameter("history") {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => {
            let sentence = "history must be true or false".to_owned();
            return Err(refused(400, [("history", sentence)]));
        }
    };
    Ok((max_ttl, history))
}

/// The sentences that clients look for.
fn refuse(error: &ClusterError) -> HttpResponse {
    let (status, parameter, sentence) = match error {
        ClusterError::UnknownBucket(_) => return not_found(),
        ClusterError::Manifest(ManifestError::UnknownScope(scope)) => {
            (404, "_", format!("Scope with name {scope:?} is not found"))
        }
        ClusterError::Manifest(ManifestError::UnknownCollection(collection, scope)) => (
            404,
            "_",
            format!("Collection with name {collection:?} in scope {scope:?} is not found"),
        ),
        ClusterError::Manifest(ManifestError::BadName(_)) => (
            400,
            "name",
            "Can only contain characters A-Z, a-z, 0-9 and the following symbols _-%, and must \
             not start with _ or %"
                .to_owned(),
        ),
        ClusterError::Manifest(ManifestError::DefaultScope) => (
            400,
            "_",
            "Deleting _default scope is not allowed".to_owned(),
        ),
        ClusterError::Io(_)
        | ClusterError::Tls(_)
        | ClusterError::Invalid(_)
        | ClusterError::Rebalancing
        | ClusterError::Cancelled
        | ClusterError::Manifest(ManifestError::Exists(_))
        | ClusterError::UnknownNode(_) => (400, "_", error.to_string()),
    };
    refused(status, [(parameter, sentence)])
}
