//! `steadfast storm`: compares retry policies in a simulated outage.

mod check;
mod settings;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand, value_parser};
use steadfast_storm::quiet::{QuietTable, measure};
use steadfast_storm::{Comparison, Trials};

use crate::exit::usage;
use crate::output::line;
use settings::{PolicyArgs, ScenarioArgs};

/// Simulate what retry policies do to a service during an outage
///
/// Simulates clients and a faulty service in virtual time, once for each policy and with
/// the same requests. The clients run the code that decides in production. The service
/// queues, slows down, rejects requests or does not respond.
///
/// The report shows how many requests succeed, how much load each policy adds while the
/// service is faulty, and whether and when the fleet recovers afterwards, for fleets of
/// several sizes.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  steadfast storm                                 a brownout, for three sizes of the fleet
  steadfast storm outage --policy guidance --policy best-effort
  steadfast storm unresponsive --rate 500 --attempt-timeout 250ms
  steadfast storm held --all-policies --seeds 20
  steadfast storm throttling --json
  steadfast storm --svg fleet.svg
  steadfast storm quiet --all-policies
  steadfast storm check fleet.toml

Scenarios:
  healthy         no fault
  blip            connections are refused for 1 s
  outage          connections are refused for 20 s
  unresponsive    requests get no response for 20 s
  brownout        requests take three times as long for 20 s
  errors          30 % of the requests fail for 40 s
  throttling      40 % of the capacity is admitted for 20 s, the others wait 2 s
  flash-crowd     twice the load for 10 s
  held            messages are held back for 10 s and then delivered
  shard           one of four shards does not respond for 20 s

Columns:
  success total    share of all requests that succeeded
  success faults   the same, of the requests that started during the fault
  load faults      attempts per request during the fault
  load peak        attempts in the busiest second, as a multiple of the arrival rate
  recovers runs    share of the runs that recover: after the fault, 90 % of the requests
                   succeed for five seconds in a row
  recovers after   median of the time to that
  waste            share of the service's work for clients that had stopped waiting
  latency          of successful requests: median and 99th percentile

With --json, every number is printed, for each second and seed."
)]
pub(crate) struct StormArgs {
    #[command(subcommand)]
    action: Option<StormAction>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    policies: PolicyArgs,
    /// Number of runs of each policy, with consecutive seeds
    #[arg(long, default_value = "3", value_parser = value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// First seed of arrivals, service times and jitter
    #[arg(long, default_value_t = 4711)]
    seed: u64,
    /// Print JSON, with every second
    #[arg(long)]
    json: bool,
    /// Write the picture to this file: how one client fares, and how fleets recover
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Subcommand)]
enum StormAction {
    Check(check::CheckArgs),
    Quiet(QuietArgs),
}

pub(crate) fn run(args: StormArgs) -> anyhow::Result<()> {
    match args.action {
        None => compare(&args),
        Some(StormAction::Check(args)) => check::check(&args),
        Some(StormAction::Quiet(args)) => quiet(&args),
    }
}

/// Measure how useful policies are for one client, alone with its peer
///
/// A policy that is safe for a fleet may be so because it hardly ever retries. This asks
/// what a user notices: whether the first failure is retried, whether a batch ends without a
/// failed call, and whether a restart of the peer costs anything. Every number is a share
/// from 0 to 1.
#[derive(Args)]
struct QuietArgs {
    #[command(flatten)]
    policies: PolicyArgs,
    /// Number of runs behind each share
    #[arg(long, default_value = "200", value_parser = value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The runs behind each share of a picture.
const LONE_RUNS: u32 = 200;

fn quiet(args: &QuietArgs) -> anyhow::Result<()> {
    let rows = measure(&args.policies.policies(), args.runs);
    if args.json {
        line(serde_json::to_string_pretty(&rows)?);
    } else {
        line(QuietTable(&rows));
    }
    Ok(())
}

fn compare(args: &StormArgs) -> anyhow::Result<()> {
    let policies = args.policies.policies();
    let scenario = args.scenario.scenario();
    let Some(end) = args.seed.checked_add(args.seeds) else {
        let most = u64::MAX - args.seeds;
        return Err(usage(format_args!("--seed must be at most {most}")));
    };
    let seeds = args.seed..end;
    let fleets: Result<Vec<Vec<Trials>>, _> = args
        .scenario
        .clients
        .iter()
        .map(|clients| {
            let scenario = scenario.clone().with_clients(*clients);
            scenario.compare(&policies, seeds.clone())
        })
        .collect();
    let comparison = Comparison::new(&scenario, fleets.map_err(usage)?);
    if let Some(path) = &args.svg {
        let lone = measure(&policies, LONE_RUNS);
        std::fs::write(path, comparison.to_svg(&lone))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        line(serde_json::to_string_pretty(&comparison)?);
    } else {
        line(comparison);
    }
    Ok(())
}
