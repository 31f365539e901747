//! `steadfast storm check`, `find` and `verify`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use steadfast_storm::check::Plan;
use steadfast_storm::find::{self, Axis};
use steadfast_storm::verify::{Depth, verify};

use super::settings::{PolicyArgs, ScenarioArgs};
use crate::exit::{AlreadyReported, usage};
use crate::number;
use crate::output::line;

/// Check expectations of a fleet, from a file
///
/// The file has strategies, scenarios, sizes of the fleet and expectations: of a fleet in
/// an outage, and of a client that is alone with its peer. The status is 1 if one fails.
#[derive(Args)]
#[command(after_help = "\
Example:
  steadfast storm check fleet.toml

A file:
  scenarios = [\"brownout\", \"outage\"]
  clients = [50, 10000]
  seeds = 20

  [strategies.ours]
  strategy = \"standard\"
  preset = \"guidance\"
  budget = { capacity = 50 }

  [[expect]]
  policy = \"ours\"
  clients = 10000
  recovers = 0.95
  within_s = 30
  load_at_most = 1.2

  [[expect]]
  policy = \"ours\"
  lone_client = { first_error = 0.99, restart = 0.9 }

Exit status:
  0  every expectation holds
  1  one does not
  2  the command line or the file is invalid")]
pub(super) struct CheckArgs {
    /// The file
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let invalid = |problem: String| usage(format_args!("{}: {problem}", args.file.display()));
    let text = std::fs::read_to_string(&args.file).map_err(|error| invalid(error.to_string()))?;
    let plan: Plan = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    let outcome = plan.run().map_err(|error| invalid(error.to_string()))?;
    if args.json {
        line(serde_json::to_string_pretty(&outcome)?);
    } else {
        outcome.findings.iter().for_each(line);
        for broken in &outcome.broken {
            line(format_args!("\n{broken}"));
        }
    }
    match outcome.findings.iter().all(|finding| finding.holds) {
        true => Ok(()),
        false => Err(AlreadyReported::FAILED.into()),
    }
}

/// Find the load, capacity or fleet at which recovery stops
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast storm find clients --from 10 --to 10000 brownout --policy guidance
  steadfast storm find rate --from 100 --to 290 s3-hold --policy immediate")]
pub(super) struct FindArgs {
    /// The setting that is varied
    axis: AxisName,
    /// The lower end of the range
    #[arg(long)]
    from: f64,
    /// The upper end of the range
    #[arg(long)]
    to: f64,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    policies: PolicyArgs,
    /// Number of runs at each value; it recovers if more than half do
    #[arg(long, default_value = "3", value_parser = number::runs)]
    seeds: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum AxisName {
    /// Requests per second that all clients together start
    Rate,
    /// Requests that the service can process in a second
    Capacity,
    /// Number of clients, which share the same load
    Clients,
}

pub(super) fn find(args: &FindArgs) -> anyhow::Result<()> {
    let axis = match args.axis {
        AxisName::Rate => Axis::Rate,
        AxisName::Capacity => Axis::Capacity,
        AxisName::Clients => Axis::Clients,
    };
    let positive = |number: f64| number.is_finite() && number > 0.0;
    if !positive(args.from) || !positive(args.to) || args.from >= args.to {
        return Err(usage("--from must be above 0 and below --to"));
    }
    let (scenario, sizes) = args.scenario.scenario()?;
    let scenario = scenario.with_clients(sizes[0]);
    for policy in args.policies.policies() {
        let range = (args.from, args.to);
        let found = find::boundary(&scenario, &policy, axis, range, 0..args.seeds);
        line(format_args!(
            "{:<18} {}",
            policy.name(),
            found.map_err(usage)?
        ));
    }
    Ok(())
}

/// Compare the model with published results
///
/// Runs the published scenarios and compares the results with their references. The status
/// is 1 if one differs by more than its tolerance.
#[derive(Args)]
#[command(after_help = "\
Example:
  steadfast storm verify")]
pub(super) struct VerifyArgs {
    /// Only what takes seconds
    #[arg(long)]
    quick: bool,
}

pub(super) fn run_verify(args: &VerifyArgs) -> anyhow::Result<()> {
    let checks = verify(if args.quick {
        Depth::Quick
    } else {
        Depth::Full
    });
    line(format_args!(
        "{:<48} {:>9} {:>9}",
        "result", "found", "reference"
    ));
    checks.iter().for_each(line);
    let broken = checks.iter().filter(|check| !check.holds()).count();
    line(format_args!("{} results, {broken} differ", checks.len()));
    match broken {
        0 => Ok(()),
        _ => Err(AlreadyReported::FAILED.into()),
    }
}
