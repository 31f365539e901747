//! Status, journal and clock.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ControlError, HttpRequest, HttpResponse, Routed, body};
use crate::cluster::TestCluster;
use crate::journal::JournalEntry;

/// The most journal entries in one answer.
const MAX_ENTRIES: usize = 100_000;

pub(super) fn status(cluster: &TestCluster) -> HttpResponse {
    let shared = cluster.shared();
    let nodes: Vec<Value> = shared
        .nodes()
        .iter()
        .map(|node| {
            let services: Map<String, Value> = node
                .ports
                .iter()
                .map(|(service, ports)| {
                    (
                        service.to_string(),
                        json!({"plain": ports.plain, "tls": ports.tls}),
                    )
                })
                .collect();
            json!({
                "node": node.id,
                "host": node.host,
                "up": node.is_up(),
                "membership": format!("{:?}", node.membership()).to_lowercase(),
                "services": services,
            })
        })
        .collect();
    let buckets: Vec<Value> = shared
        .buckets()
        .iter()
        .map(|bucket| {
            json!({
                "name": &*bucket.name,
                "replicas": bucket.settings.replicas,
                "vbuckets": bucket.settings.vbuckets,
                "used_bytes": bucket.used_bytes(),
                "quota_bytes": bucket.quota_bytes(),
                "manifest": bucket.manifest().to_json(),
            })
        })
        .collect();
    HttpResponse::json(
        200,
        &json!({
            "connection_string": cluster.connection_string(),
            "tls_connection_string": cluster.tls_connection_string(),
            "revision": shared.global_config().version.rev,
            "seed": cluster.seed(),
            "nodes": nodes,
            "rebalance": cluster.rebalance_status(),
            "buckets": buckets,
            "users": shared.users.names(),
            "faults": shared.faults.rules.list().len(),
            "connections_so_far": shared.connections_so_far(),
            "applied_mutations": shared.journal.applied(),
        }),
    )
}

pub(super) fn ca(cluster: &TestCluster) -> Routed {
    match cluster.ca_pem() {
        Some(pem) => Ok(HttpResponse::new(
            200,
            "application/x-pem-file",
            pem.to_owned(),
        )),
        None => Err(ControlError::Missing("this cluster has no TLS".into())),
    }
}

pub(super) fn journal(request: &HttpRequest, cluster: &TestCluster) -> Routed {
    let number = |name: &str, default: u64| match request.parameter(name) {
        None => Ok(default),
        Some(text) => text
            .parse::<u64>()
            .map_err(|_| ControlError::Invalid(format!("{name} is a number, not {text:?}"))),
    };
    let since = number("since", 0)?;
    let limit = usize::try_from(number("limit", 1000)?)
        .unwrap_or(MAX_ENTRIES)
        .min(MAX_ENTRIES);
    let journal = cluster.journal();
    let (entries, next) = journal.page(since, limit);
    let entries: Vec<Value> = entries.iter().map(show).collect();
    Ok(HttpResponse::json(
        200,
        &json!({
            "applied": journal.applied(),
            "forgotten": journal.forgotten(),
            "next": next,
            "entries": entries,
        }),
    ))
}

fn show(entry: &JournalEntry) -> Value {
    json!({
        "sequence": entry.sequence,
        "node": entry.node,
        "bucket": &*entry.bucket,
        "vbucket": entry.vbucket,
        "collection": entry.collection(),
        "key": String::from_utf8_lossy(entry.key()),
        "operation": entry.opcode.to_string(),
        "cas": format!("{:#018x}", entry.receipt.cas),
        "seqno": entry.receipt.seqno,
        "vbucket_uuid": format!("{:#018x}", entry.receipt.uuid),
        "opaque": entry.opaque,
        "connection": entry.connection,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance_ms: u64,
}

pub(super) fn advance_clock(request: &HttpRequest, cluster: &TestCluster) -> Routed {
    let advance: Advance = body(request)?;
    cluster.advance_clock(Duration::from_millis(advance.advance_ms));
    Ok(HttpResponse::json(
        200,
        &json!({"unix_seconds": cluster.shared().clock.now().seconds()}),
    ))
}
