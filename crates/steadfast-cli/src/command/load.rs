//! `steadfast load`: a workload with injected faults, and the account of every write.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use steadfast_cluster::topology::MAX_NODES;
use steadfast_couchbase::{ClusterOptions, Error};
use steadfast_load::client::{Access, Steadfast};
use steadfast_load::progress::{Lines, Progress, Quiet};
use steadfast_load::{Embedded, Expectation, LoadReport, MergedReport, Settings, Target, run};
use tokio::sync::SetOnce;

use crate::address::ClusterAddress;
use crate::connect::report_error;
use crate::duration;
use crate::exit::{AlreadyReported, refuse, uncovered, unmet, usage};
use crate::login::LoginArgs;
use crate::output::{line, stderr_line};
use crate::signals::StopSignals;
use crate::strategy::StrategyName;

/// The largest number of operations in flight: each has a worker with a number of 16 bits.
const MOST_IN_FLIGHT: i64 = 60_000;
/// The usual limit of operations in flight with a rate: none of them waits for others until the
/// cluster stalls.
const IN_FLIGHT_AT_A_RATE: u16 = 4096;

/// Run a workload, inject faults and account for every write
///
/// Starts a cluster of three nodes in this process and runs a mixed workload through the
/// client, while nodes join, leave, crash and are failed over, connections are cut at every
/// stage, answers are late and the password changes. Then it accounts for every write:
/// acknowledged writes were applied exactly once, failed ones never, and ambiguous ones at
/// most once. The exit status is 0 only if that holds.
///
/// An interrupt (Ctrl-C, SIGTERM) ends the run early; its writes are accounted for as
/// usual. A second one ends it at once.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  steadfast load                                  half a minute, a fresh seed
  steadfast load --seed 4711                      the same workload and faults again
  steadfast load --html report.html               with charts, as an HTML page
  steadfast load --expect 'p99<20ms' --expect 'throughput>50k' --expect 'failures<0.1%'
                                                  limits for CI, with status 6
  steadfast load --soak 1h                        an hour
  steadfast load merge a.json b.json              the sum of the reports of two machines, as JSON
  steadfast load --connect couchbase://db.example.com/test --user app
                                                  against an existing cluster, without faults

Exit status:
  0    every write is accounted for
  1    there are violations or unchecked writes, or the run failed
  2    the command line is invalid
  6    every write is accounted for, but an --expect does not hold
  7    every write is accounted for, but with --strict a fault did not have its effects
  130  interrupted by SIGINT; every write until then is accounted for
  143  the same, by SIGTERM")]
pub(crate) struct LoadArgs {
    #[command(subcommand)]
    command: Option<LoadCommand>,
    /// How long to begin operations, as 45s, 10m or 1h; without --rate, a short run goes on
    /// until its faults are over
    #[arg(long, visible_alias = "soak", default_value = "30s", value_parser = duration::parse_positive)]
    duration: Duration,
    /// How many operations are under way at a time, at most [default: 128, with --rate 4096]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=MOST_IN_FLIGHT))]
    concurrency: Option<u16>,
    /// How many operations to begin per second, whatever became of those before
    /// [default: unlimited]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// How long an operation may take; durable writes and queries get twice as long
    #[arg(long, default_value = "2500ms", value_parser = duration::parse_positive)]
    timeout: Duration,
    /// Determines the workload and the schedule of faults; a printed seed replays its run
    #[arg(long)]
    seed: Option<u64>,
    /// Retry strategy: best-effort-until-terminal, best-effort, guidance, adaptive, aws-2.0,
    /// aws-2.1, no-retry or error-map; `steadfast explain --help` describes them
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    strategy: StrategyName,
    /// How many nodes the embedded cluster has
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Connect to the embedded cluster with TLS; its certificate is rotated during the run
    #[arg(long, conflicts_with = "connect")]
    tls: bool,
    /// Run against this existing cluster instead, without faults:
    /// `couchbase://host[:port]/bucket[/scope/collection]`; the run removes its documents
    #[arg(long, value_name = "ADDRESS", conflicts_with = "nodes")]
    connect: Option<ClusterAddress>,
    #[command(flatten)]
    login: LoginArgs,
    /// Use no statements; a cluster without a query service needs no option
    #[arg(long, requires = "connect")]
    no_query: bool,
    /// Exit with status 7 if an injected fault did not have its effects
    #[arg(long, conflicts_with = "connect")]
    strict: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Also write the report as an HTML page, with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Fail with status 6 unless this holds: p50, p99, p99.9, max, throughput or failures,
    /// a relation (<, <=, >, >=) and a limit, as in 'p99<20ms'; repeatable
    #[arg(long, value_name = "LIMIT")]
    expect: Vec<Expectation>,
    /// Show no progress, only the report
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Subcommand)]
enum LoadCommand {
    /// Add up the JSON reports of several machines, and print the sum as JSON
    ///
    /// Counts and violations add up, and percentiles come from the histograms of all reports.
    /// Reports with the same seed are refused: they are the same workload.
    Merge(MergeArgs),
}

#[derive(Args)]
struct MergeArgs {
    /// Reports that `steadfast load --json` or `steadfast load merge` has written
    #[arg(required = true, num_args = 2.., value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// Exit with status 7 if no run has seen an effect that an injected fault must have
    #[arg(long)]
    strict: bool,
}

fn merge(args: &MergeArgs) -> anyhow::Result<()> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage(format_args!("cannot read {}: {error}", path.display())))?;
        Ok((path.display().to_string(), text))
    };
    let reports: Vec<(String, String)> = args
        .reports
        .iter()
        .map(read)
        .collect::<anyhow::Result<_>>()?;
    let reports = reports.iter().map(|(name, text)| (&**name, &**text));
    let merged = MergedReport::merge(reports).map_err(|error| usage(format_args!("{error:#}")))?;
    line(merged.to_json());
    if !merged.holds() {
        bail!("the accounting of a run does not hold: see the report");
    }
    if args.strict {
        check_coverage(merged.missing_coverage())?;
    }
    Ok(())
}

pub(crate) async fn run_load(args: LoadArgs) -> anyhow::Result<()> {
    if let Some(LoadCommand::Merge(args)) = &args.command {
        return merge(args);
    }
    let seed = args.seed.unwrap_or_else(fresh_seed);
    if args.connect.is_none()
        && let Some(flag) = args.login.given()
    {
        refuse!("{flag} needs an existing cluster: give --connect ADDRESS");
    }
    // Opened first: a page that cannot be written must not waste a run.
    let page = match &args.html {
        Some(path) => {
            Some(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => None,
    };
    let settings = Settings {
        seed,
        duration: args.duration,
        concurrency: args.concurrency.unwrap_or(match args.rate {
            Some(_) => IN_FLIGHT_AT_A_RATE,
            None => Settings::default().concurrency,
        }),
        rate: args.rate,
        timeout: args.timeout,
        nodes: args.nodes,
        tls: args.tls,
        strategy: args.strategy.name(),
        replay: replay(&args, seed),
        ..Settings::default()
    };
    let mut signals = StopSignals::listen()?;
    let (target, client) = tokio::select! {
        prepared = prepare(&args, &settings) => prepared?,
        status = signals.next() => return Err(AlreadyReported::from_status(status).into()),
    };
    let (report, interrupted) =
        run_or_interrupt(&args, &settings, client, &target, &mut signals).await?;
    if args.json {
        line(report.to_json());
    } else {
        line(&report);
    }
    if let Some(mut page) = page {
        page.write_all(report.to_html().as_bytes())
            .context("cannot write the page")?;
    }
    if report.is_violated() {
        bail!("the accounting is violated: see the report");
    }
    if !report.holds() {
        bail!(
            "not all writes could be checked, because the cluster does not answer: see the report"
        );
    }
    // An interrupted run is too short to be judged.
    let expected = args.expect.iter().filter(|_| interrupted.is_none());
    let missed: Vec<String> = expected.filter_map(|one| one.miss(&report)).collect();
    if !missed.is_empty() {
        return Err(unmet(missed.join("; ")));
    }
    if args.strict && interrupted.is_none() {
        check_coverage(report.missing_coverage())?;
    }
    match interrupted {
        Some(status) => Err(AlreadyReported::from_status(status).into()),
        None => Ok(()),
    }
}

fn check_coverage(missing: usize) -> anyhow::Result<()> {
    match missing {
        0 => Ok(()),
        missing => Err(uncovered(format_args!(
            "{missing} effects of faults were not seen: see the report; \
             a longer run or a higher rate may cover them"
        ))),
    }
}

/// Connects a client to the given cluster, or to a new embedded one.
async fn prepare(args: &LoadArgs, settings: &Settings) -> anyhow::Result<(Target, Steadfast)> {
    let (target, access) = match &args.connect {
        Some(address) => {
            let string = &address.string;
            let access = Access {
                connection_string: string.to_string(),
                credentials: args.login.credentials(string).await?,
                tls: args.login.tls(string)?,
                bucket: address.bucket_name()?.to_owned(),
                collection: address.collection_path()?,
                ready_within: {
                    let mut options = ClusterOptions::new();
                    string.apply_to(&mut options);
                    options.connect_timeout
                },
                statements: !args.no_query,
            };
            (Target::Given(address.to_string()), access)
        }
        None => {
            if args.nodes == MAX_NODES {
                let most = MAX_NODES - 1;
                let problem = format_args!("--nodes must be at most {most}: a run adds a node");
                return Err(usage(problem));
            }
            let embedded = Embedded::start(args.nodes, settings.seed, args.tls).await?;
            let access = Access::embedded(&embedded);
            (Target::Embedded(embedded), access)
        }
    };
    if !args.json {
        let cluster = match &args.connect {
            None if args.tls => format!("{} nodes, embedded, with TLS", args.nodes),
            None => format!("{} nodes, embedded", args.nodes),
            Some(address) => address.to_string(),
        };
        let (seed, strategy) = (settings.seed, &settings.strategy);
        line(format_args!(
            "cluster         {cluster}    seed {seed}    strategy {strategy}"
        ));
    }
    let strategy = Some(args.strategy.build());
    let client = async {
        let client = Steadfast::connect(access, strategy, settings.timeout).await?;
        if args.connect.is_some() {
            client.check_writes().await?;
        }
        Ok(client)
    };
    let client = client.await.map_err(|error| unconnected(error, args.json));
    Ok((target, client?))
}

/// Prints why the run cannot start, like the commands on documents do.
fn unconnected(error: anyhow::Error, json: bool) -> anyhow::Error {
    let Some(error) = error.downcast_ref::<Error>() else {
        return error;
    };
    report_error(error, false, json)
}

/// Runs, and returns the report and the status of the signal that interrupted the run, if any.
async fn run_or_interrupt(
    args: &LoadArgs,
    settings: &Settings,
    client: Steadfast,
    target: &Target,
    signals: &mut StopSignals,
) -> anyhow::Result<(LoadReport, Option<u8>)> {
    let mut progress: Box<dyn Progress> = if args.quiet {
        Box::new(Quiet)
    } else {
        Box::new(Lines::new(settings.duration))
    };
    let first = SetOnce::new();
    let interrupted = async {
        first.wait().await;
    };
    let mut running = pin!(run(settings, client, target, &mut *progress, interrupted));
    loop {
        tokio::select! {
            report = &mut running => return Ok((report?, first.get().copied())),
            status = signals.next() => {
                if first.set(status).is_err() {
                    if let Target::Given(_) = target {
                        let prefix = target.key_prefix(settings.seed);
                        stderr_line(format_args!(
                            "ended at once: documents whose keys start with {prefix} may be left"
                        ));
                    }
                    std::process::exit(status.into());
                }
                stderr_line(
                    "\ninterrupted: operations under way are completed and accounted for; \
                     interrupt again to end at once",
                );
            }
        }
    }
}

/// Returns the command that replays the run: this command line, with its seed.
fn replay(args: &LoadArgs, seed: u64) -> String {
    let mut command = vec!["steadfast".to_owned()];
    for word in std::env::args().skip(1) {
        // A word with an equals sign would need quotes.
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
            _ => (&*word, None),
        };
        for word in [Some(flag), value].into_iter().flatten() {
            // Arguments of a command line have no zero bytes, so quoting cannot fail.
            command.push(shlex::try_quote(word).unwrap_or_default().into_owned());
        }
    }
    if args.seed.is_none() {
        command.push(format!("--seed {seed}"));
    }
    command.join(" ")
}

/// Returns a random seed that is easy to type.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) % 1_000_000
}
