//! `steadfast simulate`: client, cluster and load in virtual time, from seeds.

mod process;

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use steadfast_sim::{Campaign, Findings, RunOutcome, RunPlan};

use crate::duration;
use crate::exit::{AlreadyReported, refuse};
use crate::output::{line, stderr_line};
use crate::signals::StopSignals;

/// Run client, cluster and load in virtual time, from seeds
///
/// Plays the workload of `steadfast load` on one thread, in virtual time, on a simulated
/// network with delays, partitions, cuts at any byte and lost connections. A seed determines
/// a run to the last byte. Every seed runs in its own process, on all cores.
///
/// A seed that fails is shrunk: to a shorter run, with fewer faults and fewer workers, that
/// fails in the same way. One seed in fifty runs twice, to notice that something in the
/// program is not controlled by its seed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast simulate --seeds 1..1000           a thousand seeds
  steadfast simulate --seed 4711               one seed, with its trace
  steadfast simulate --plan failed.json        a plan that was printed before
  steadfast simulate --seeds 1..1000 --json > a.json
  steadfast simulate --merge a.json b.json     results of several machines

Exit status:
  0  every check held
  1  a seed failed, or a second run differed from its first
  2  the command line is invalid, or names a file that cannot be read
  130, 143  interrupted; the results are those of the seeds that ran")]
pub(crate) struct SimulateArgs {
    /// The seeds to run, without the last: FIRST..END
    #[arg(long, value_name = "FIRST..END", value_parser = range, default_value = "1..101")]
    seeds: Range<u64>,
    /// Run this seed alone, and print its outcome
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run the plan in this file, as JSON; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "seed"])]
    plan: Option<PathBuf>,
    /// Add up the JSON results of different seeds, instead of running any
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["seeds", "seed", "plan"])]
    merge: Vec<PathBuf>,
    /// The virtual time in which each run begins operations
    #[arg(long, default_value = "8s", value_parser = duration::parse_positive)]
    duration: Duration,
    /// Operations per second of virtual time
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// How many seeds run at a time [default: one for each core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The real time that each run may take; a run that takes longer has failed
    #[arg(long, default_value = "2m", value_parser = duration::parse_positive)]
    limit: Duration,
    /// Do not shrink failures
    #[arg(long)]
    no_shrink: bool,
    /// Stop at the first failure
    #[arg(long)]
    stop: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: SimulateArgs) -> anyhow::Result<()> {
    if !args.merge.is_empty() {
        return report(&args, &merged(&args.merge)?);
    }
    let plan = |seed| RunPlan::new(seed, args.duration, args.rate);
    if let Some(seed) = args.seed {
        return play_one(&args, &plan(seed));
    }
    if let Some(path) = &args.plan {
        return play_one(&args, &read_plan(path)?);
    }
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign = Campaign {
        seeds: args.seeds.clone(),
        jobs: args.jobs.map_or(cores, usize::from),
        shrinks: !args.no_shrink,
    };
    let interrupted = watch_signals()?;
    let named = AtomicUsize::new(0);
    let findings = campaign.run(
        plan,
        |plan| process::play(&program, plan, args.limit).map_err(|error| format!("{error:#}")),
        |findings| {
            show_progress(&args, findings, &named);
            interrupted.get().is_none() && (!args.stop || findings.failures.is_empty())
        },
    );
    report(&args, &findings)?;
    match interrupted.get() {
        Some(status) => Err(AlreadyReported::from_status(*status).into()),
        None => Ok(()),
    }
}

/// Returns the status of the first signal, once it has come. The second one ends the process.
fn watch_signals() -> anyhow::Result<Arc<OnceLock<u8>>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _in_runtime = runtime.enter();
        StopSignals::listen()?
    };
    let first = Arc::new(OnceLock::new());
    let seen = first.clone();
    std::thread::spawn(move || {
        while seen.set(runtime.block_on(signals.next())).is_ok() {
            stderr_line(
                "interrupted: seeds under way are completed; interrupt again to end at once",
            );
        }
        std::process::exit(seen.get().copied().unwrap_or_default().into());
    });
    Ok(first)
}

/// Parses `FIRST..END`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let (first, end) = text.split_once("..").ok_or("must be FIRST..END")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    let range = number(first)?..number(end)?;
    match range.is_empty() {
        true => Err("is empty: END is not part of it".to_owned()),
        false => Ok(range),
    }
}

fn read_plan(path: &PathBuf) -> anyhow::Result<RunPlan> {
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text = read(path)?;
    }
    match serde_json::from_str(&text) {
        Ok(plan) => Ok(plan),
        Err(error) => refuse!("{} is no plan: {error}", path.display()),
    }
}

fn read(path: &PathBuf) -> anyhow::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) => refuse!("cannot read {}: {error}", path.display()),
    }
}

/// Plays a plan in this process.
fn play_one(args: &SimulateArgs, plan: &RunPlan) -> anyhow::Result<()> {
    let outcome = steadfast_sim::run(plan)?;
    if args.json {
        line(serde_json::to_string(&outcome)?);
    } else {
        line(format!("{plan}{}", shown(&outcome)));
    }
    match outcome.holds {
        true => Ok(()),
        false => bail!("a check did not hold"),
    }
}

fn shown(outcome: &RunOutcome) -> String {
    let mut text = format!(
        "{} operations in {:.1} s of virtual time, {:.1} s of processor time\n\
         trace {}, journal {}, {} bytes, {} unchecked writes",
        outcome.operations,
        outcome.virtual_s,
        outcome.cpu_s,
        outcome.trace,
        outcome.journal,
        outcome.bytes,
        outcome.unchecked,
    );
    for violation in &outcome.violations {
        text += &format!("\n{violation}");
    }
    text
}

fn merged(paths: &[PathBuf]) -> anyhow::Result<Findings> {
    let mut all = Findings::default();
    for path in paths {
        let found = match serde_json::from_str(&read(path)?) {
            Ok(found) => found,
            Err(error) => refuse!("{} is no result of simulate: {error}", path.display()),
        };
        if let Err(overlap) = all.merge(found) {
            refuse!("{}: {overlap}", path.display());
        }
    }
    Ok(all)
}

/// Shows a line for the first seed, for every twenty and for every failure. `named` counts
/// the failures.
fn show_progress(args: &SimulateArgs, findings: &Findings, named: &AtomicUsize) {
    if args.quiet {
        return;
    }
    let failed = findings.failures.len();
    if named.swap(failed, Ordering::Relaxed) != failed {
        let seeds = findings
            .failures
            .iter()
            .map(|failure| failure.seed.to_string());
        stderr_line(format!("failed: {}", seeds.collect::<Vec<_>>().join(", ")));
    }
    let runs = findings.runs;
    if runs == 1 || runs.is_multiple_of(20) {
        let plural = if runs == 1 { "" } else { "s" };
        stderr_line(format!("{runs} seed{plural}, {failed} failed"));
    }
}

fn report(args: &SimulateArgs, findings: &Findings) -> anyhow::Result<()> {
    if args.json {
        line(serde_json::to_string_pretty(findings)?);
    } else {
        line(text(findings)?);
    }
    match findings.holds() {
        true => Ok(()),
        false => bail!(
            "{} seeds failed, {} differed from their first run",
            findings.failures.len(),
            findings.differed.len()
        ),
    }
}

fn text(findings: &Findings) -> anyhow::Result<String> {
    let mut text = format!(
        "{} seeds: {} held, {} failed; {} ran twice, {} differed; {} with unchecked writes\n\
         {} operations, {:.0} s of virtual time in {:.0} s of processor time: {:.0} times as fast",
        findings.runs,
        findings.held,
        findings.failures.len(),
        findings.compared,
        findings.differed.len(),
        findings.incomplete,
        findings.operations,
        findings.virtual_s,
        findings.cpu_s,
        findings.virtual_s / findings.cpu_s.max(0.001),
    );
    for seed in &findings.differed {
        text += &format!("\nseed {seed} ran twice and differed: a source of chance is not seeded");
    }
    for failure in &findings.failures {
        text += &format!("\n\nseed {} failed\n", failure.seed);
        for violation in &failure.violations {
            text += &format!("  {violation}\n");
        }
        let plan = &failure.plan;
        text += &format!("after {} tries, still fails with {plan}", failure.tries);
        text += &format!(
            "replay: steadfast simulate --plan FILE with {}",
            serde_json::to_string(plan)?
        );
    }
    Ok(text)
}
