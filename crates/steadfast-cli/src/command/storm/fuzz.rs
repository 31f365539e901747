//! `steadfast storm fuzz`: random scenarios.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use steadfast::config::StrategyConfig;
use steadfast_storm::{Policy, fuzz};

use super::settings::PolicyArgs;
use crate::exit::usage;
use crate::number::{self, MAX_RUNS};
use crate::output::line;

/// Compare policies in random scenarios
///
/// Draws capacities, fleets, timeouts, queues and faults from seeds, and compares each policy
/// with no retries at all. The report names the worst scenario found for each policy.
///
/// Near saturation, chance decides. So each scenario runs several times, and the row (chance)
/// compares no-retry with itself under other random numbers.
///
/// With --variant, the best of several strategies is chosen on the seeds of --tune and then
/// reported on the seeds of --seeds, which it was not tuned on.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast storm fuzz --policy guidance --policy grpc
  steadfast storm fuzz --all-policies --seeds 1000..1300
  steadfast storm fuzz --variant small.toml --variant large.toml --tune 0..100

A variant is a file with one strategy, as the configuration of the engine has it:
  strategy = \"standard\"
  preset = \"guidance\"
  budget = { capacity = 50 }

Columns:
  recovers      scenarios in which the policy recovers and no-retry does too, and those
                in which only the policy does
  mean success  share of requests that succeed, and before, in and after the fault
  worst loss    the most that it loses against no-retry, before, in and after the fault
  load          attempts per request in the fault: nine of ten scenarios, and the highest")]
pub(super) struct FuzzArgs {
    #[command(flatten)]
    policies: PolicyArgs,
    /// Seeds of the scenarios to report
    #[arg(long, default_value = "1000..1060", value_parser = range)]
    seeds: Range<u64>,
    /// Number of runs of each policy in each scenario
    #[arg(long, default_value = "5", value_parser = number::runs)]
    runs: u64,
    /// A file with a variant to choose from; repeatable
    #[arg(long = "variant", value_name = "FILE")]
    variants: Vec<PathBuf>,
    /// Seeds of the scenarios on which the best variant is chosen
    #[arg(long, default_value = "0..60", value_parser = range)]
    tune: Range<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    let mut policies = args.policies.policies();
    if !args.variants.is_empty() {
        let overlap = args.tune.start < args.seeds.end && args.seeds.start < args.tune.end;
        if overlap {
            return Err(usage("--tune and --seeds must not overlap"));
        }
        let variants: Vec<Policy> = args
            .variants
            .iter()
            .map(read)
            .collect::<anyhow::Result<_>>()?;
        let (best, tuned) =
            fuzz::tune(&variants, args.tune.clone(), args.runs).context("there is no variant")?;
        if !args.json {
            line(format_args!(
                "tuned on {tuned}\n\nchosen: {}\n",
                best.name()
            ));
        }
        policies.push(best.clone());
    }
    let report = fuzz::fuzz(&policies, args.seeds.clone(), args.runs);
    if args.json {
        line(serde_json::to_string_pretty(&report)?);
    } else {
        line(report);
    }
    Ok(())
}

/// Reads a strategy from a file.
fn read(path: &PathBuf) -> anyhow::Result<Policy> {
    let invalid = |problem: String| usage(format_args!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| invalid(error.to_string()))?;
    let config: StrategyConfig =
        toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    config.build().map_err(|error| invalid(error.to_string()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Policy::from_config(name, config))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let parsed: Option<Range<u64>> = text
        .split_once("..")
        .and_then(|(from, until)| Some(from.parse().ok()?..until.parse().ok()?));
    match parsed {
        Some(range) if range.end.saturating_sub(range.start) > MAX_RUNS => {
            Err(format!("must be at most {MAX_RUNS} seeds"))
        }
        Some(range) if !range.is_empty() => Ok(range),
        _ => Err("a range of seeds looks like 1000..1300".to_owned()),
    }
}
