//! The `steadfast` command.
//!
//! Each subcommand is a file under `command`, and none has logic of its own: what they
//! do is in the crates.

mod command;
mod control;
mod output;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Retry handling for clients of distributed systems, and a cluster to break them on.
#[derive(Parser)]
#[command(name = "steadfast", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Cluster(command::cluster::Arguments),
    Fault(command::fault::Arguments),
    Load(command::load::Arguments),
    Topology(command::topology::Arguments),
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match arguments.command {
            Command::Cluster(arguments) => command::cluster::run(arguments).await,
            Command::Fault(arguments) => command::fault::run(arguments).await,
            Command::Load(arguments) => command::load::run_load(arguments).await,
            Command::Topology(arguments) => command::topology::run(arguments).await,
        }
    })
}
