//! Creating, changing, emptying and dropping buckets.

use serde_json::{Value, json};

use super::super::{HttpRequest, HttpResponse, HttpSession};
use super::pools::{nodes, open};
use super::{details, not_found, refused};
use crate::bucket::{Bucket, BucketSettings};
use crate::cluster::{ClusterError, TestCluster};
use crate::topology::config::capabilities;
use crate::users::User;

const MEBIBYTE: u64 = 1024 * 1024;
/// The smallest quota that a real server accepts.
const MIN_QUOTA_MIB: u64 = 100;

pub(super) fn list(session: &HttpSession, user: &User) -> HttpResponse {
    let buckets = session.shared.buckets();
    let visible = buckets
        .iter()
        .filter(|bucket| user.rights.may_open(&bucket.name));
    HttpResponse::json(
        200,
        &visible.map(|bucket| describe(bucket, session)).collect(),
    )
}

pub(super) fn show(session: &HttpSession, user: &User, name: &str) -> HttpResponse {
    match open(session, user, name) {
        Ok(bucket) => HttpResponse::json(200, &describe(&bucket, session)),
        Err(response) => response,
    }
}

pub(super) fn design_documents(session: &HttpSession, user: &User, name: &str) -> HttpResponse {
    let bucket = match open(session, user, name) {
        Ok(bucket) => bucket,
        Err(response) => return response,
    };
    let documents = bucket.design_documents.read();
    let rows: Vec<Value> = documents
        .iter()
        .map(|(name, document)| {
            json!({"doc": {"meta": {"id": format!("_design/{name}"), "rev": "1-0"}, "json": document}})
        })
        .collect();
    HttpResponse::json(200, &json!({"rows": rows}))
}

pub(super) async fn create(request: &HttpRequest, cluster: &TestCluster) -> HttpResponse {
    let settings = match read(request) {
        Ok(settings) => settings,
        Err(errors) => return refused(400, errors),
    };
    if cluster.bucket(&settings.name).is_ok() {
        return exists();
    }
    match cluster.create_bucket(settings).await {
        Ok(()) => HttpResponse::text(202, ""),
        // Somebody else may have been quicker.
        Err(ClusterError::Invalid(sentence)) if sentence.contains("exists already") => exists(),
        Err(error) => refused(400, [("name", error.to_string())]),
    }
}

/// Changes what can be changed while clients are connected.
pub(super) fn update(request: &HttpRequest, session: &HttpSession, name: &str) -> HttpResponse {
    let Some(bucket) = session.shared.bucket(name) else {
        return not_found();
    };
    let replicas = bucket.settings.replicas.to_string();
    if request
        .parameter("replicaNumber")
        .is_some_and(|wanted| wanted != replicas)
    {
        let sentence = "The number of replicas cannot be changed here.".to_owned();
        return refused(400, [("replicaNumber", sentence)]);
    }
    let quota = match request
        .parameter("ramQuotaMB")
        .or(request.parameter("ramQuota"))
    {
        None => None,
        Some(text) => match quota(text) {
            Ok(quota) => Some(quota),
            Err(error) => return refused(400, [error]),
        },
    };
    let old = bucket.details();
    let mut details = old.clone();
    let ephemeral = bucket.settings.ephemeral;
    if let Err(errors) = details::change(request, ephemeral, Some(&old), &mut details) {
        return refused(400, errors);
    }
    bucket.set_details(details);
    if let Some(quota) = quota {
        bucket.set_quota_bytes(quota);
    }
    if let Some(flush) = request.parameter("flushEnabled") {
        bucket.set_flush_enabled(is_on(flush));
    }
    HttpResponse::text(200, "")
}

pub(super) async fn remove(cluster: &TestCluster, name: &str) -> HttpResponse {
    match cluster.drop_bucket(name).await {
        Ok(()) => HttpResponse::text(200, ""),
        Err(_) => not_found(),
    }
}

pub(super) fn flush(session: &HttpSession, name: &str) -> HttpResponse {
    let Some(bucket) = session.shared.bucket(name) else {
        return not_found();
    };
    if !bucket.flush_enabled() {
        return HttpResponse::json(400, &json!({"_": "Flush is disabled for the bucket"}));
    }
    bucket.flush();
    HttpResponse::text(200, "")
}

type Errors = Vec<(&'static str, String)>;

/// Reads the settings of a new bucket, or says everything that is wrong with them.
fn read(request: &HttpRequest) -> Result<BucketSettings, Errors> {
    let mut errors = Errors::new();
    let name = request.parameter("name").unwrap_or_default();
    if name.is_empty() {
        errors.push(("name", "Bucket name needs to be specified".into()));
    }
    let mut settings = BucketSettings::new(name);
    settings.flush_enabled = request.parameter("flushEnabled").is_some_and(is_on);
    match request.parameter("bucketType") {
        None | Some("membase" | "couchbase") => {}
        Some("ephemeral") => settings.ephemeral = true,
        Some("memcached") => errors.push((
            "bucketType",
            "not supported by this cluster: memcached buckets".into(),
        )),
        Some(_) => errors.push(("bucketType", "invalid bucket type".into())),
    }
    match request
        .parameter("ramQuotaMB")
        .or(request.parameter("ramQuota"))
    {
        Some(text) => match quota(text) {
            Ok(quota) => settings.quota_bytes = quota,
            Err(error) => errors.push(error),
        },
        None => errors.push((
            "ramQuota",
            "The RAM Quota must be specified and must be a positive integer.".into(),
        )),
    }
    if let Some(text) = request.parameter("replicaNumber") {
        match text.parse() {
            Ok(replicas) if replicas <= 3 => settings.replicas = replicas,
            Ok(_) => errors.push((
                "replicaNumber",
                "Replica number larger than 3 is not supported.".into(),
            )),
            Err(_) => errors.push((
                "replicaNumber",
                "The replica number must be specified and must be a non-negative integer.".into(),
            )),
        }
    }
    match details::create(request, settings.ephemeral) {
        Ok(details) => settings.details = details,
        Err(wrong) => errors.extend(wrong),
    }
    if errors.is_empty() {
        Ok(settings)
    } else {
        Err(errors)
    }
}

fn quota(text: &str) -> Result<u64, (&'static str, String)> {
    match text.parse::<u64>() {
        Ok(mebibytes) if mebibytes < MIN_QUOTA_MIB => Err((
            "ramQuota",
            format!("RAM quota cannot be less than {MIN_QUOTA_MIB} MiB"),
        )),
        Ok(mebibytes) => Ok(mebibytes.saturating_mul(MEBIBYTE)),
        Err(_) => Err((
            "ramQuota",
            "The RAM Quota must be specified and must be a positive integer.".into(),
        )),
    }
}

fn is_on(text: &str) -> bool {
    matches!(text, "1" | "true")
}

fn exists() -> HttpResponse {
    refused(
        400,
        [("name", "Bucket with given name already exists".to_owned())],
    )
}

fn describe(bucket: &Bucket, session: &HttpSession) -> Value {
    let name = &*bucket.name;
    let quota = bucket.quota_bytes();
    let mut controllers = json!({
        "compactAll": format!("/pools/default/buckets/{name}/controller/compactBucket"),
    });
    if bucket.flush_enabled() {
        controllers["flush"] = format!("/pools/default/buckets/{name}/controller/doFlush").into();
    }
    let mut shown = json!({
        "name": name,
        "uuid": bucket.uuid,
        "bucketType": if bucket.settings.ephemeral { "ephemeral" } else { "membase" },
        "nodeLocator": "vbucket",
        "uri": format!("/pools/default/buckets/{name}?bucket_uuid={}", bucket.uuid),
        "streamingUri": format!("/pools/default/bucketsStreaming/{name}?bucket_uuid={}", bucket.uuid),
        "collectionsManifestUid": format!("{:x}", bucket.manifest().uid),
        "replicaNumber": bucket.settings.replicas,
        "numVBuckets": bucket.settings.vbuckets,
        "quota": {"ram": quota, "rawRAM": quota},
        "basicStats": {"memUsed": bucket.used_bytes()},
        "controllers": controllers,
        "nodes": nodes(session),
        "bucketCapabilitiesVer": "",
        "bucketCapabilities": capabilities(bucket, session.shared.version),
    });
    if let Some(shown) = shown.as_object_mut() {
        shown.extend(bucket.details());
    }
    shown
}
