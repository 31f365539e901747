//! Reads and writes documents while a test cluster injects faults, and shows an error.
//!
//!     cargo run -p steadfast-couchbase --example first_steps
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use serde_json::json;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::{Cluster, Credentials, DurabilityLevel, ErrorKind};
use steadfast_wire::{Opcode, Status};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A cluster in this process. Yours has an address such as couchbases://db.example.com.
    let server = TestCluster::builder()
        .nodes(2)
        .bucket(BucketSettings::new("travel"))
        .user("app", "secret")
        .start()
        .await?;
    let login = Credentials::password("app", "secret");
    let cluster = Cluster::connect(&server.connection_string(), login).await?;
    let users = cluster.bucket("travel").default_collection();

    // The node is busy three times. The client retries, because nothing was applied.
    let busy = Fault::on(Opcode::Set)
        .times(3)
        .answer(Status::TemporaryFailure);
    let busy = server.fault(busy);
    let ada = json!({"name": "Ada"});
    let written = users
        .upsert("u:42", &ada)
        .durability(DurabilityLevel::Majority)
        .timeout(Duration::from_secs(5))
        .await?;
    println!(
        "stored after {} retries, cas {}",
        busy.fired(),
        written.cas()
    );

    let found = users.get("u:42").await?;
    println!("read {}", found.content::<serde_json::Value>()?);

    // "Not found" is an answer, not a failure of the client.
    match users.get("nobody").await {
        Err(error) if error.kind() == ErrorKind::DocumentNotFound => println!("nobody: {error}"),
        other => println!("unexpected: {other:?}"),
    }

    // The connection breaks after the write was applied. A counter is not idempotent, so it
    // is not sent again, and the error says that it may have been applied.
    let cut = server.fault(Fault::on(Opcode::Increment).times(1).cut_after_applying());
    match users.increment("visits").initial(1).await {
        Err(error) => println!("ambiguous: {}\n{error:#}", error.is_ambiguous()),
        Ok(_) => println!("unexpected: the connection was cut {} times", cut.fired()),
    }
    cluster.close().await;
    Ok(())
}
