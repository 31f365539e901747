//! A driver for `steadfast audit couchbase`: the official SDK for Rust.
//!
//! This SDK leaves timeouts to the application, so they are made here.

use std::io::Write;
use std::time::Duration;

use couchbase::authenticator::PasswordAuthenticator;
use couchbase::cluster::Cluster;
use couchbase::error::Error;
use couchbase::options::cluster_options::ClusterOptions;
use couchbase::options::query_options::QueryOptions;
use couchbase::subdoc::lookup_in_specs::LookupInSpec;
use couchbase::subdoc::mutate_in_specs::MutateInSpec;
use futures_util::StreamExt;
use serde_json::{Value, json};

/// The SDK's futures are large: without optimisation they do not fit a usual stack.
const STACK: usize = 32 << 20;

type Problem = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Problem> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()?
        .block_on(async { tokio::spawn(serve()).await? })
}

async fn serve() -> Result<(), Problem> {
    let mut cluster = None;
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        let command: Value = serde_json::from_str(&line)?;
        line.clear();
        let timeout = Duration::from_millis(command["timeout_ms"].as_u64().unwrap_or(20_000));
        let ended = tokio::time::timeout(timeout, run(&mut cluster, &command)).await;
        let mut answer = match ended {
            Ok(Ok(true)) => json!({"ok": true, "sdk": "couchbase 1.1.0 for Rust"}),
            Ok(Ok(false)) => json!({"unsupported": true}),
            Ok(Err(error)) => json!({"error": format!("{:?}", error.kind())}),
            Err(_) => json!({"error": "timeout of the application"}),
        };
        answer["id"] = command["id"].clone();
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Runs a command; returns whether the SDK has such an operation.
async fn run(cluster: &mut Option<Cluster>, command: &Value) -> Result<bool, Error> {
    let text = |field: &str| command[field].as_str().unwrap_or_default();
    if text("do") == "connect" {
        // The old one must not serve a case that cannot connect.
        *cluster = None;
        let login = PasswordAuthenticator::new(text("username"), text("password"));
        let options = ClusterOptions::new(login.into());
        let connected = Cluster::connect(text("connection_string"), options).await?;
        let documents = connected.bucket(text("bucket")).default_collection();
        // Waits for the bucket. This SDK reports a document that never was as an error.
        let _ = documents.exists("ready", None).await;
        *cluster = Some(connected);
        return Ok(true);
    }
    let Some(cluster) = cluster else {
        return Ok(false);
    };
    let documents = cluster.bucket("default").default_collection();
    let (key, path, value) = (text("key"), text("path"), &command["value"]);
    match text("do") {
        "get" => drop(documents.get(key, None).await?),
        "exists" => drop(documents.exists(key, None).await?),
        "upsert" => drop(documents.upsert(key, value, None).await?),
        "insert" => drop(documents.insert(key, value, None).await?),
        "replace" => drop(documents.replace(key, value, None).await?),
        "remove" => drop(documents.remove(key, None).await?),
        "append" => drop(
            documents
                .binary()
                .append(key, text("text").as_bytes(), None)
                .await?,
        ),
        "increment" => drop(documents.binary().increment(key, None).await?),
        "touch" => {
            let expiry = Duration::from_secs(command["expiry_seconds"].as_u64().unwrap_or(0));
            drop(documents.touch(key, expiry, None).await?);
        }
        "lookup" => {
            let specs = [LookupInSpec::get(path, None)];
            drop(documents.lookup_in(key, &specs, None).await?);
        }
        "mutate" => {
            let specs = [MutateInSpec::upsert(path, value, None)?];
            drop(documents.mutate_in(key, &specs, None).await?);
        }
        "query" => {
            let options = QueryOptions::new().read_only(command["readonly"] == true);
            let mut rows = cluster.query(text("statement"), options).await?;
            let mut rows = rows.rows::<Value>();
            while let Some(row) = rows.next().await {
                row?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
