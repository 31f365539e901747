//! `steadfast storm check`.

use std::path::PathBuf;

use clap::Args;
use steadfast_storm::check::FleetCheck;

use crate::exit::{AlreadyReported, usage};
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
    let check: FleetCheck = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    let outcome = check.run().map_err(|error| invalid(error.to_string()))?;
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
