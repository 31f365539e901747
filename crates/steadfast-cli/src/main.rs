//! The `steadfast` command.
//!
//! Each subcommand is a file or folder under `command`: its flags, and `run`. The logic is
//! in the library crates; the files next to this one are what the subcommands share.

mod address;
mod arguments;
mod child;
mod command;
mod connect;
mod control;
mod duration;
mod effect;
mod exit;
mod files;
mod login;
mod mask;
mod number;
mod output;
mod parent;
mod prompt;
mod schedule;
mod signals;
mod strategy;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::signals::StopSignals;

/// Retry handling for clients of distributed systems, and a test cluster that injects faults
///
/// `steadfast help COMMAND` describes a command, with examples.
#[derive(Parser)]
#[command(
    name = "steadfast",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
#[command(after_help = concat!("\
First steps:
  steadfast audit http -- curl -sf --retry 3 -X {method} {url}
                                                   test whether a client retries safely
  steadfast cluster --nodes 3                      start a test cluster; Ctrl-C stops it
  steadfast explain kv upsert --status ETMPFAIL    see what would be retried, and why
  steadfast doctor couchbase://127.0.0.1/default   check a connection step by step

", exit::plain_statuses!(), "
  Commands on documents have more; see their help."))]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Audit(command::audit::AuditArgs),
    Cluster(command::cluster::ClusterArgs),
    Control(command::control::ControlCommandArgs),
    Fault(command::fault::FaultArgs),
    Load(command::load::LoadArgs),
    Simulate(command::simulate::SimulateArgs),
    Storm(Box<command::storm::StormArgs>),
    Topology(command::topology::TopologyArgs),
    Explain(command::explain::ExplainArgs),
    Doctor(command::doctor::DoctorArgs),
    Get(command::document::get::GetArgs),
    Upsert(command::document::store::UpsertArgs),
    Insert(command::document::store::InsertArgs),
    Replace(command::document::store::ReplaceArgs),
    Remove(command::document::remove::RemoveArgs),
    Query(command::query::QueryArgs),
    Completions(command::completions::CompletionsArgs),
    Man(command::man::ManArgs),
}

fn main() -> ExitCode {
    let json = arguments::wants_json(std::env::args_os());
    let ended = match parse() {
        Ok(line) => run(line.command),
        Err(error) if error.use_stderr() => return arguments::report(&error, json),
        Err(help) => {
            // Help and version contain nothing that the user typed.
            output::bytes_styled(&help.render().ansi().to_string());
            Ok(())
        }
    };
    match (ended, output::lost()) {
        (Ok(()), None) => ExitCode::SUCCESS,
        (Ok(()), Some(lost)) => exit::report_lost_output(lost, json),
        (Err(error), _) => exit::report(&error, json),
    }
}

fn parse() -> Result<CommandLine, clap::Error> {
    let matches = arguments::with_numbers(CommandLine::command()).try_get_matches()?;
    CommandLine::from_arg_matches(&matches)
}

/// The log without `RUST_LOG`. A terminal state of a connection is in the command's error.
const LOG_FILTER: &str = "warn,steadfast_couchbase::topology::terminal=error";

fn run(command: Command) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG_FILTER));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::is_colourful(&std::io::stderr()))
        .init();
    if let Command::Simulate(args) = command {
        // Threads of a runtime would draw from tokio's counters at random.
        return command::simulate::run(args);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        match command {
            Command::Audit(args) => command::audit::run(args).await,
            Command::Cluster(args) => command::cluster::run(args).await,
            Command::Control(args) => until_signal(command::control::run(args)).await,
            Command::Fault(args) => until_signal(command::fault::run(args)).await,
            Command::Load(args) => command::load::run_load(args).await,
            Command::Simulate(args) => command::simulate::run(args),
            Command::Storm(args) => command::storm::run(*args),
            Command::Topology(args) => until_signal(command::topology::run(args)).await,
            Command::Explain(args) => command::explain::run(args),
            Command::Doctor(args) => until_signal(command::doctor::run(args)).await,
            Command::Get(args) => until_signal(command::document::get::run(args)).await,
            Command::Upsert(args) => until_signal(command::document::store::upsert(args)).await,
            Command::Insert(args) => until_signal(command::document::store::insert(args)).await,
            Command::Replace(args) => until_signal(command::document::store::replace(args)).await,
            Command::Remove(args) => until_signal(command::document::remove::run(args)).await,
            Command::Query(args) => until_signal(command::query::run(args)).await,
            Command::Completions(args) => command::completions::run(args),
            Command::Man(args) => command::man::run(args),
        }
    });
    // A lookup of a name may still block a thread, and would delay the end.
    runtime.shutdown_background();
    ended
}

/// Runs a command until it ends or a signal stops it.
async fn until_signal(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut signals = StopSignals::listen()?;
    tokio::select! {
        biased;
        ended = command => ended,
        status = signals.next() => Err(exit::interrupted(status)),
    }
}
