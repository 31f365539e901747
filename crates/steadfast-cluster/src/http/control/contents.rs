//! Buckets, scopes, collections and users.

use serde::Deserialize;
use serde_json::json;

use super::{ControlError, HttpRequest, HttpResponse, Routed, body, no_route};
use crate::bucket::BucketSettings;
use crate::cluster::TestCluster;
use crate::users::{self, Rights};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBucket {
    name: String,
    replicas: Option<usize>,
    vbuckets: Option<u16>,
    quota_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    #[serde(default)]
    max_ttl: u32,
}

pub(super) async fn buckets(
    method: &str,
    rest: &[&str],
    request: &HttpRequest,
    cluster: &TestCluster,
) -> Routed {
    let uid = match (method, rest) {
        ("POST", []) => {
            let new: NewBucket = body(request)?;
            let usual = BucketSettings::new(new.name);
            let settings = BucketSettings {
                replicas: new.replicas.unwrap_or(usual.replicas),
                vbuckets: new.vbuckets.unwrap_or(usual.vbuckets),
                quota_bytes: new.quota_bytes.unwrap_or(usual.quota_bytes),
                ..usual
            };
            cluster.create_bucket(settings).await?;
            return Ok(HttpResponse::json(201, &json!({})));
        }
        ("DELETE", [bucket]) => {
            cluster.drop_bucket(bucket).await?;
            return Ok(HttpResponse::json(200, &json!({})));
        }
        ("POST", [bucket, "flush"]) => {
            cluster.bucket(bucket)?.flush();
            return Ok(HttpResponse::json(200, &json!({})));
        }
        ("POST", [bucket, "scopes"]) => {
            cluster.create_scope(bucket, &body::<Named>(request)?.name)?
        }
        ("DELETE", [bucket, "scopes", scope]) => cluster.drop_scope(bucket, scope)?,
        ("POST", [bucket, "scopes", scope, "collections"]) => {
            let new: Named = body(request)?;
            cluster.create_collection(bucket, scope, &new.name, new.max_ttl)?
        }
        ("DELETE", [bucket, "scopes", scope, "collections", collection]) => {
            cluster.drop_collection(bucket, scope, collection)?
        }
        _ => return Err(no_route(method, request)),
    };
    Ok(HttpResponse::json(
        200,
        &json!({"manifest_uid": format!("{uid:x}")}),
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUser {
    name: String,
    password: String,
    buckets: Option<Vec<String>>,
    #[serde(default)]
    read_only: bool,
    /// Instead of the other two.
    roles: Option<String>,
}

pub(super) fn users(
    method: &str,
    rest: &[&str],
    request: &HttpRequest,
    cluster: &TestCluster,
) -> Routed {
    match (method, rest) {
        ("POST", []) => {
            let new: NewUser = body(request)?;
            users::check_name(&new.name).map_err(ControlError::Invalid)?;
            if let Some(roles) = &new.roles {
                if new.buckets.is_some() || new.read_only {
                    let text = "give roles, or buckets and read_only, not both";
                    return Err(ControlError::Invalid(text.into()));
                }
                cluster.put_user(&new.name, &new.password, roles)?;
                return Ok(HttpResponse::json(201, &json!({})));
            }
            let rights = match new.buckets {
                Some(buckets) => {
                    for bucket in &buckets {
                        cluster.bucket(bucket)?;
                    }
                    Rights::buckets(buckets)
                }
                None => Rights::admin(),
            };
            let rights = if new.read_only {
                rights.read_only()
            } else {
                rights
            };
            cluster.users().put(&new.name, &new.password, rights);
            Ok(HttpResponse::json(201, &json!({})))
        }
        ("DELETE", [name]) => {
            if cluster.users().remove(name) {
                Ok(HttpResponse::json(200, &json!({})))
            } else {
                Err(ControlError::Missing(format!("there is no user {name:?}")))
            }
        }
        _ => Err(no_route(method, request)),
    }
}
