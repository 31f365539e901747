//! A cluster for any client that rejects the first three writes as busy. Ends with Ctrl-C.
//!
//!     cargo run -p steadfast-cluster --example busy_node
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::Fault;
use steadfast_wire::{Opcode, Status};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = TestCluster::builder()
        .nodes(3)
        .bucket("travel")
        .user("app", "secret")
        .start()
        .await?;
    println!("connect to {}", cluster.connection_string());
    println!("bucket travel, user app, password secret");

    // The first three writes get a temporary failure. A client retries them.
    let busy = Fault::on(Opcode::Set)
        .times(3)
        .answer(Status::TemporaryFailure);
    let busy = cluster.fault(busy);
    tokio::signal::ctrl_c().await?;
    println!("rejected {} writes", busy.fired());
    println!("applied {} changes", cluster.journal().applied());
    Ok(())
}
