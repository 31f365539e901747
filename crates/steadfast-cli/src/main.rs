//! The `steadfast` command.
//!
//! Each subcommand is a file under `command`, and none has logic of its own: what they
//! do is in the crates.

mod address;
mod arguments;
mod command;
mod connection;
mod control;
mod duration;
mod exit;
mod files;
mod login;
mod mask;
mod number;
mod output;
mod schedule;
mod signals;
mod strategy;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Retry handling for clients of distributed systems, and a cluster to break them on
///
/// Every command explains itself: `steadfast help COMMAND`.
#[derive(Parser)]
#[command(name = "steadfast", version, arg_required_else_help = true)]
#[command(after_help = concat!("\
First steps:
  steadfast cluster --nodes 3                      a cluster to test against, until interrupted
  steadfast explain kv upsert --status ETMPFAIL    what would be retried, and why
  steadfast doctor couchbase://127.0.0.1/default   what works of a connection, and what does not

", exit::plain_statuses!(), "
  Commands on documents have more, which their own help lists."))]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Cluster(command::cluster::Arguments),
    Fault(command::fault::Arguments),
    Load(command::load::Arguments),
    Storm(command::storm::StormArgs),
    Topology(command::topology::Arguments),
    Explain(command::explain::Arguments),
    Doctor(command::doctor::Arguments),
    Get(command::document::get::Arguments),
    Upsert(command::document::store::Upsert),
    Insert(command::document::store::Insert),
    Replace(command::document::store::Replace),
    Remove(command::document::remove::Arguments),
    Query(command::query::Arguments),
    Completions(command::completions::Arguments),
}

impl Command {
    /// Whether it may have changed something by the time its output is written.
    fn changes(&self) -> bool {
        match self {
            Self::Upsert(_)
            | Self::Insert(_)
            | Self::Replace(_)
            | Self::Remove(_)
            | Self::Query(_)
            | Self::Fault(_)
            | Self::Topology(_) => true,
            Self::Cluster(_)
            | Self::Load(_)
            | Self::Storm(_)
            | Self::Explain(_)
            | Self::Doctor(_)
            | Self::Get(_)
            | Self::Completions(_) => false,
        }
    }
}

fn main() -> ExitCode {
    let command = match arguments() {
        Ok(arguments) => arguments.command,
        Err(error) => return arguments::refuse(&error),
    };
    let changes = command.changes();
    match (run(command), output::lost()) {
        (Ok(()), None) => ExitCode::SUCCESS,
        (Ok(()), Some(lost)) => exit::report_lost(lost, changes),
        (Err(error), _) => exit::report(&error),
    }
}

fn arguments() -> Result<Arguments, clap::Error> {
    let matches = arguments::with_numbers(Arguments::command()).try_get_matches()?;
    Arguments::from_arg_matches(&matches)
}

fn run(command: Command) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::is_colourful(&std::io::stderr()))
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command {
            Command::Cluster(arguments) => command::cluster::run(arguments).await,
            Command::Fault(arguments) => command::fault::run(arguments).await,
            Command::Load(arguments) => command::load::run_load(arguments).await,
            Command::Storm(arguments) => command::storm::run(arguments),
            Command::Topology(arguments) => command::topology::run(arguments).await,
            Command::Explain(arguments) => command::explain::run(arguments),
            Command::Doctor(arguments) => command::doctor::run(arguments).await,
            Command::Get(arguments) => command::document::get::run(arguments).await,
            Command::Upsert(arguments) => command::document::store::upsert(arguments).await,
            Command::Insert(arguments) => command::document::store::insert(arguments).await,
            Command::Replace(arguments) => command::document::store::replace(arguments).await,
            Command::Remove(arguments) => command::document::remove::run(arguments).await,
            Command::Query(arguments) => command::query::run(arguments).await,
            Command::Completions(arguments) => command::completions::run(arguments),
        }
    })
}
