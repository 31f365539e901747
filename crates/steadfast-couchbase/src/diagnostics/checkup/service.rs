//! Checks nodes, collection and services with an ordinary client.

use std::time::Duration;

use steadfast_wire::config::Service;

use super::{Checkup, Finding};
use crate::collection::Collection;
use crate::config_error::ConfigError;
use crate::diagnostics::{
    DiagnosticsReport, EndpointDiagnostics, EndpointState, PingReport, PingResult,
};
use crate::error::{Error, ErrorKind};
use crate::reason::KV_TEMPORARY_FAILURE;
use crate::services;
use crate::world::now;
use crate::{Bucket, Cluster};

/// The key that is read; the document need not exist.
const KEY: &str = "steadfast-checkup";

/// The interval at which nodes without a connection are looked at, and the number
/// of refusals after which the wait ends.
const GLANCE: Duration = Duration::from_millis(25);
const REFUSALS: u32 = 20;

/// Checks everything that needs a client; the bucket only if it opened.
///
/// Cancel-safe: dropping the future closes the client.
pub(super) async fn examine(checkup: &Checkup, opened: bool) -> Result<Vec<Finding>, ConfigError> {
    let string = checkup.string.to_string();
    let (credentials, options) = (checkup.credentials.clone(), checkup.options.clone());
    let patience = options.connect_timeout;
    let cluster = Cluster::connect_with(&string, credentials, options).await?;
    let mut findings = Vec::new();
    match checkup.string.bucket().filter(|_| opened) {
        Some(name) => {
            let bucket = cluster.bucket(name);
            findings.push(nodes(&cluster, &bucket, patience).await);
            findings.extend(data(checkup, &bucket).await);
        }
        None => {
            findings.extend(asked_for(checkup).map(|step| Finding::not_tried(step, "not tried")))
        }
    }
    // Without a bucket nothing has waited for the config yet.
    match cluster.wait_until_ready(patience).await {
        Ok(()) => findings.extend(service_findings(&cluster.ping().await)),
        Err(error) => {
            let advice = "the cluster gives no list of its services; name a bucket";
            findings.push(Finding::fails("services", error.to_string(), advice));
        }
    }
    cluster.close().await;
    Ok(findings)
}

/// Checks that every node of the bucket accepts a connection. Cancel-safe.
async fn nodes(cluster: &Cluster, bucket: &Bucket, patience: Duration) -> Finding {
    let ready = tokio::select! {
        ready = bucket.wait_until_ready(patience) => Some(ready),
        () = refused(cluster) => None,
    };
    let report = cluster.diagnostics();
    let count = report.endpoints.len();
    let missing: Vec<String> = missing(&report)
        .map(|endpoint| match &endpoint.note {
            Some(note) => format!("{} ({note})", endpoint.remote),
            None => endpoint.remote.clone(),
        })
        .collect();
    match ready {
        Some(Ok(())) => Finding::works("nodes", format!("{count} of {count} connected")),
        Some(Err(error)) if missing.is_empty() => {
            Finding::fails("nodes", error.to_string(), "look at the server's log")
        }
        Some(Err(_)) | None => {
            let text = format!(
                "{} of {count} connected; not {}",
                count - missing.len(),
                missing.join(", ")
            );
            let advice = "each node must be up, and reachable from here by the address that the \
                          cluster gives it; if it has others for clients from outside, \
                          network=external chooses them";
            Finding::fails("nodes", text, advice)
        }
    }
}

/// Completes when every node without a connection has refused for a while.
/// Cancel-safe.
async fn refused(cluster: &Cluster) {
    let mut seen = 0;
    while seen < REFUSALS {
        tokio::time::sleep(GLANCE).await;
        let report = cluster.diagnostics();
        let mut missing = missing(&report).peekable();
        let all = missing.peek().is_some() && missing.all(|endpoint| endpoint.note.is_some());
        seen = if all { seen + 1 } else { 0 };
    }
}

fn missing(report: &DiagnosticsReport) -> impl Iterator<Item = &EndpointDiagnostics> {
    let endpoints = report.endpoints.iter();
    endpoints.filter(|endpoint| endpoint.state != EndpointState::Connected)
}

fn asked_for(checkup: &Checkup) -> impl Iterator<Item = &'static str> {
    let named = [
        ("scope", &checkup.scope),
        ("collection", &checkup.collection),
    ];
    named
        .into_iter()
        .filter(|(_, name)| name.is_some())
        .map(|(step, _)| step)
}

/// Checks that the scope and the collection exist, and that a document can be read.
/// Cancel-safe.
async fn data(checkup: &Checkup, bucket: &Bucket) -> Vec<Finding> {
    let (scope, name) = match (&checkup.scope, &checkup.collection) {
        (None, _) => return vec![read(&bucket.default_collection()).await.1],
        (Some(scope), None) => (scope, "_default"),
        (Some(scope), Some(collection)) => (scope, collection.as_str()),
    };
    let (kind, finding) = read(&bucket.collection(scope, name)).await;
    let mut findings = Vec::new();
    let has_scope = Finding::works("scope", scope.clone());
    match kind {
        Some(ErrorKind::ScopeNotFound) => {
            let text = format!("the bucket has no scope \"{scope}\"");
            findings.push(Finding::fails(
                "scope",
                text,
                "create it, or check its spelling",
            ));
            if checkup.collection.is_some() {
                findings.push(Finding::not_tried("collection", "not tried"));
            }
        }
        Some(ErrorKind::CollectionNotFound) if checkup.collection.is_some() => {
            findings.push(has_scope);
            let text = format!("the scope has no collection \"{name}\"");
            findings.push(Finding::fails(
                "collection",
                text,
                "create it, or check its spelling",
            ));
        }
        // Only the scope `_default` has a collection `_default`, so an answer about
        // the collection is an answer about the scope.
        Some(ErrorKind::CollectionNotFound) => findings.push(has_scope),
        _ => {
            findings.push(has_scope);
            if let Some(collection) = &checkup.collection {
                findings.push(Finding::works("collection", collection.clone()));
            }
            findings.push(finding);
        }
    }
    findings
}

/// Reads a document, which need not exist. Cancel-safe.
async fn read(collection: &Collection) -> (Option<ErrorKind>, Finding) {
    let begun = now();
    let kind = match collection.get(KEY).await {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::DocumentNotFound => None,
        Err(error) => return (Some(error.kind()), unread(&error)),
    };
    let millis = now().saturating_duration_since(begun).as_secs_f64() * 1e3;
    let text = format!("a document was asked for, and answered about in {millis:.1} ms");
    (kind, Finding::works("read", text))
}

fn unread(error: &Error) -> Finding {
    let advice = match error.kind() {
        ErrorKind::AuthenticationFailure => "give the user the right to read there",
        _ if error.reasons().contains(&KV_TEMPORARY_FAILURE) => {
            "wait if the node has just started: it is warming up, and reads its documents from \
             disk; otherwise it is out of memory, or behind on its disk"
        }
        _ => "the reasons stand in the error; `steadfast explain` has more about each",
    };
    Finding::fails("read", error.to_string(), advice)
}

/// Returns the finding for every service.
fn service_findings(report: &PingReport) -> impl Iterator<Item = Finding> + '_ {
    Service::ALL.into_iter().filter_map(|service| {
        let step = services::name(service);
        let of_service = |endpoint: &&PingResult| endpoint.service == step;
        let endpoints: Vec<&PingResult> = report.endpoints.iter().filter(of_service).collect();
        match (endpoints.is_empty(), service) {
            // Without a bucket no connection is there to ask over.
            (true, Service::KeyValue) => None,
            (true, _) => Some(Finding::not_tried(step, "no node has it")),
            (false, _) => Some(service_finding(step, &endpoints)),
        }
    })
}

fn service_finding(step: &'static str, endpoints: &[&PingResult]) -> Finding {
    let count = endpoints.len();
    let nodes = if count == 1 { "node" } else { "nodes" };
    let slowest = endpoints
        .iter()
        .filter_map(|endpoint| endpoint.latency)
        .max();
    let silent: Vec<String> = endpoints
        .iter()
        .filter_map(|endpoint| {
            let error = endpoint.error.as_ref()?;
            Some(format!("{}: {error}", endpoint.remote))
        })
        .collect();
    if silent.is_empty() {
        let millis = slowest.unwrap_or_default().as_secs_f64() * 1e3;
        return Finding::works(step, format!("{count} {nodes}, in {millis:.1} ms"));
    }
    let answered = count - silent.len();
    let text = format!(
        "{answered} of {count} {nodes} answered; {}",
        silent.join("; ")
    );
    let advice = "is the service up on that node, and is its port open from here?";
    Finding::fails(step, text, advice)
}
