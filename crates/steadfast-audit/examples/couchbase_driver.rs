//! A driver for `steadfast audit couchbase`: our client.
//!
//!     steadfast audit couchbase -- target/debug/examples/couchbase_driver
#![allow(clippy::print_stdout, reason = "a driver answers on its output")]

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_couchbase::collection::{LookupInSpec, MutateInSpec};
use steadfast_couchbase::{Cluster, Credentials};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = None;
    for line in std::io::stdin().lock().lines() {
        let command: Value = serde_json::from_str(&line?)?;
        let mut answer = match (&*text(&command, "do"), &cluster) {
            ("connect", _) => {
                if let Some(old) = cluster.take() {
                    Cluster::close(&old).await;
                }
                let login =
                    Credentials::password(text(&command, "username"), text(&command, "password"));
                match Cluster::connect(&text(&command, "connection_string"), login).await {
                    Ok(connected) => {
                        cluster = Some(connected);
                        json!({"ok": true, "sdk": concat!("Steadfast ", env!("CARGO_PKG_VERSION"))})
                    }
                    Err(error) => json!({"error": error.to_string()}),
                }
            }
            (_, None) => json!({"error": "not connected"}),
            (operation, Some(cluster)) => match run_or_repeat(cluster, operation, &command).await {
                Ok(true) => json!({"ok": true}),
                Ok(false) => json!({"unsupported": true}),
                Err(error) => failure(&error),
            },
        };
        answer["id"] = command["id"].clone();
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Runs an operation. With the argument "repeat", a failed one runs again: a client that must
/// not pass.
async fn run_or_repeat(
    cluster: &Cluster,
    operation: &str,
    command: &Value,
) -> Result<bool, steadfast_couchbase::Error> {
    let first = run(cluster, operation, command).await;
    match std::env::args().nth(1).as_deref() {
        Some("repeat") if first.is_err() => run(cluster, operation, command).await,
        _ => first,
    }
}

async fn run(
    cluster: &Cluster,
    operation: &str,
    command: &Value,
) -> Result<bool, steadfast_couchbase::Error> {
    let documents = cluster.bucket("default").default_collection();
    let (key, path) = (text(command, "key"), text(command, "path"));
    let value = &command["value"];
    let timeout = Duration::from_millis(command["timeout_ms"].as_u64().unwrap_or(2500));
    match operation {
        "get" => drop(documents.get(&key).timeout(timeout).await?),
        "exists" => drop(documents.exists(&key).timeout(timeout).await?),
        "upsert" => drop(documents.upsert(&key, value).timeout(timeout).await?),
        "insert" => drop(documents.insert(&key, value).timeout(timeout).await?),
        "replace" => drop(documents.replace(&key, value).timeout(timeout).await?),
        "remove" => drop(documents.remove(&key).timeout(timeout).await?),
        "append" => drop(
            documents
                .append(&key, text(command, "text"))
                .timeout(timeout)
                .await?,
        ),
        "increment" => drop(documents.increment(&key).timeout(timeout).await?),
        "touch" => {
            let expiry = Duration::from_secs(command["expiry_seconds"].as_u64().unwrap_or(0));
            drop(documents.touch(&key, expiry).timeout(timeout).await?);
        }
        "lookup" => {
            let specs = [LookupInSpec::get(&path)];
            drop(documents.lookup_in(&key, &specs).timeout(timeout).await?);
        }
        "mutate" => {
            let specs = [MutateInSpec::upsert(path, value)];
            drop(documents.mutate_in(&key, &specs).timeout(timeout).await?);
        }
        "query" => {
            let readonly = command["readonly"] == true;
            let query = cluster.query(text(command, "statement")).readonly(readonly);
            drop(query.timeout(timeout).await?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn failure(error: &steadfast_couchbase::Error) -> Value {
    let reasons: Vec<String> = error
        .reasons()
        .iter()
        .map(|reason| reason.to_string())
        .collect();
    json!({
        "error": format!("{:?}", error.kind()),
        "ambiguous": error.is_ambiguous(),
        "attempts": error.attempts(),
        "reasons": reasons,
    })
}

fn text(command: &Value, field: &str) -> String {
    command[field].as_str().unwrap_or_default().to_owned()
}
