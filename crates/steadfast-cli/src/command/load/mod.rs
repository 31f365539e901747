//! `steadfast load`: a workload through a calamity, and the account of every write.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use steadfast_couchbase::{ClusterOptions, Error};
use steadfast_load::client::{Access, Steadfast};
use steadfast_load::progress::{Lines, Progress, Quiet};
use steadfast_load::{Embedded, Report, Settings, Target, run};
use tokio::sync::SetOnce;

use crate::address::ClusterAddress;
use crate::connect::report_error;
use crate::duration;
use crate::exit::{AlreadyReported, refuse};
use crate::login::LoginArgs;
use crate::output::{aside, line};
use crate::signals::StopSignals;
use crate::strategy::StrategyName;

/// Run a workload through a calamity and account for every write
///
/// Starts a cluster of three nodes in this process and runs a mixed workload through the
/// client, while nodes join, leave, crash and are failed over, connections are cut at every
/// stage, answers come late and the password changes. In the end every write is accounted
/// for: acknowledged ones were applied exactly once, failed ones never, and those that may
/// have been applied at most once. The exit status is 0 only if that holds.
///
/// An interruption (Ctrl-C, SIGTERM) ends the run early: what was done is accounted for and
/// reported all the same. A second one ends it at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast load                                  half a minute, a fresh seed
  steadfast load --seed 4711                      the same workload and script again
  steadfast load --html report.html               with the run drawn on a page
  steadfast load --soak 1h                        an hour, with the memory it takes
  steadfast load --connect couchbase://db.example.com/test --user app
                                                  against a cluster of yours, without the faults

Exit status:
  0    every write came to what its client was told
  1    it did not, or the run failed
  2    the command line makes no sense
  130  interrupted by SIGINT; what was done until then is accounted for, and holds
  143  the same, by SIGTERM")]
pub(crate) struct Arguments {
    /// How long to begin operations, as 45s, 10m or 1h
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    duration: Duration,
    /// As --duration, for long runs: also shows the memory of the process
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "duration")]
    soak: Option<Duration>,
    /// How many operations are under way at a time
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// How many operations to begin in a second [default: as many as it can]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// How long an operation may take; durable writes and queries get twice as long
    #[arg(long, default_value = "2500ms", value_parser = duration::parse_positive)]
    timeout: Duration,
    /// Decides the workload and the script; one that is printed repeats its run
    #[arg(long)]
    seed: Option<u64>,
    /// Retry strategy: best-effort-until-terminal, best-effort, guidance, adaptive, aws-2.0,
    /// aws-2.1, no-retry or error-map; `steadfast explain --help` describes them
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    strategy: StrategyName,
    /// How many nodes the embedded cluster has
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Run against this cluster instead, without the faults, as
    /// `couchbase://host[:port]/bucket[/scope/collection]`; what the run writes is removed again
    #[arg(long, value_name = "ADDRESS", conflicts_with = "nodes")]
    connect: Option<ClusterAddress>,
    #[command(flatten)]
    login: LoginArgs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Also write the report as a page, with the run drawn
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// No progress, only the report
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) async fn run_load(arguments: Arguments) -> anyhow::Result<()> {
    let seed = arguments.seed.unwrap_or_else(fresh_seed);
    let duration = arguments.soak.unwrap_or(arguments.duration);
    if duration.is_zero() {
        let flag = arguments.soak.map_or("--duration", |_| "--soak");
        refuse!("{flag} must be more than nothing");
    }
    if arguments.connect.is_none()
        && let Some((flag, _)) = arguments.login.given().first()
    {
        refuse!("{flag} is for a cluster of yours: give --connect ADDRESS");
    }
    // A page that cannot be written must not cost the run that it is about.
    let page = match &arguments.html {
        Some(path) => {
            Some(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => None,
    };
    let settings = Settings {
        seed,
        duration,
        concurrency: arguments.concurrency,
        rate: arguments.rate,
        timeout: arguments.timeout,
        nodes: arguments.nodes,
        client: "steadfast-couchbase".to_owned(),
        strategy: arguments.strategy.name(),
        replay: replay(&arguments, seed),
    };
    let mut signals = StopSignals::listen()?;
    let (target, client) = tokio::select! {
        prepared = prepare(&arguments, &settings) => prepared?,
        // Nothing was done yet.
        status = signals.next() => return Err(AlreadyReported::from_signal(status).into()),
    };
    let (report, interrupted) =
        run_or_interrupt(&arguments, &settings, client, &target, &mut signals).await?;
    if arguments.json {
        line(report.to_json());
    } else {
        line(&report);
    }
    if let Some(mut page) = page {
        page.write_all(report.to_html().as_bytes())
            .context("cannot write the page")?;
    }
    let totals = &report.accounting.totals;
    if totals.is_violated() {
        bail!("the accounting does not hold: see the report");
    }
    if !totals.holds() {
        bail!(
            "what was written could not be checked, since the cluster does not answer: see the report"
        );
    }
    match interrupted {
        Some(status) => Err(AlreadyReported::from_signal(status).into()),
        None => Ok(()),
    }
}

/// A client, and what it is connected to.
async fn prepare(
    arguments: &Arguments,
    settings: &Settings,
) -> anyhow::Result<(Target, Steadfast)> {
    let (target, access) = match &arguments.connect {
        Some(address) => {
            let string = &address.string;
            let access = Access {
                connection_string: string.to_string(),
                credentials: arguments.login.credentials(string)?,
                tls: arguments.login.tls(string)?,
                bucket: address.bucket_name()?.to_owned(),
                collection: address.collection_path()?,
                ready_within: {
                    let mut options = ClusterOptions::new();
                    string.apply_to(&mut options);
                    options.connect_timeout
                },
            };
            (Target::Given(address.to_string()), access)
        }
        None => {
            let embedded = Embedded::start(arguments.nodes, settings.seed).await?;
            let access = Access::embedded(&embedded);
            (Target::Embedded(embedded), access)
        }
    };
    if !arguments.json {
        let cluster = match &arguments.connect {
            None => format!("{} nodes, embedded", arguments.nodes),
            Some(address) => address.to_string(),
        };
        let (seed, strategy) = (settings.seed, &settings.strategy);
        line(format_args!(
            "cluster         {cluster}    seed {seed}    strategy {strategy}"
        ));
    }
    let strategy = Some(arguments.strategy.build());
    let client = Steadfast::connect(access, strategy, settings.timeout).await;
    Ok((target, client.map_err(unconnected)?))
}

/// Says why there is no run, as the commands on documents do.
fn unconnected(error: anyhow::Error) -> anyhow::Error {
    let Some(error) = error.downcast_ref::<Error>() else {
        return error;
    };
    report_error(error, false)
}

/// The report, and the status of the signal that ended the run early, if one did.
async fn run_or_interrupt(
    arguments: &Arguments,
    settings: &Settings,
    client: Steadfast,
    target: &Target,
    signals: &mut StopSignals,
) -> anyhow::Result<(Report, Option<u8>)> {
    let mut progress: Box<dyn Progress> = if arguments.quiet {
        Box::new(Quiet)
    } else {
        Box::new(Lines::new(settings.duration, arguments.soak.is_some()))
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
                    // The second one: whoever sends it does not want to wait for anything.
                    if let Target::Given(_) = target {
                        let prefix = target.prefix(settings.seed);
                        aside(format_args!(
                            "ended at once: documents whose keys start with {prefix} may be left"
                        ));
                    }
                    std::process::exit(status.into());
                }
                aside(
                    "\ninterrupted: what is under way comes to its end and is accounted for; \
                     once more ends it at once",
                );
            }
        }
    }
}

/// The command that repeats the run.
fn replay(arguments: &Arguments, seed: u64) -> String {
    let mut command = format!("steadfast load --seed {seed}");
    let mut add = |option: &str, value: &dyn std::fmt::Display| {
        let value = value.to_string();
        // What has a zero byte in it did not come from a command line.
        let value = shlex::try_quote(&value).unwrap_or_default();
        command += &format!(" {option} {value}");
    };
    let seconds = |duration: Duration| match duration.as_millis() {
        millis if millis % 1000 == 0 => format!("{}s", millis / 1000),
        millis => format!("{millis}ms"),
    };
    match arguments.soak {
        Some(soak) => add("--soak", &seconds(soak)),
        None if arguments.duration != Duration::from_secs(30) => {
            add("--duration", &seconds(arguments.duration));
        }
        None => {}
    }
    if arguments.concurrency != 128 {
        add("--concurrency", &arguments.concurrency);
    }
    if let Some(rate) = arguments.rate {
        add("--rate", &rate);
    }
    if arguments.timeout != Duration::from_millis(2500) {
        add("--timeout", &seconds(arguments.timeout));
    }
    if arguments.strategy != StrategyName::default() {
        add("--strategy", &arguments.strategy.name());
    }
    if arguments.nodes != 3 {
        add("--nodes", &arguments.nodes);
    }
    if let Some(address) = &arguments.connect {
        add("--connect", address);
        for (flag, value) in arguments.login.given() {
            add(flag, &value);
        }
    }
    command
}

/// Something else each time, and easy to type.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) % 1_000_000
}
