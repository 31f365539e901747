//! `steadfast load`: a workload through a calamity, and the account of every write.

mod interrupts;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use steadfast_load::client::{Steadfast, strategy};
use steadfast_load::embedded::{BUCKET, PASSWORD, USER};
use steadfast_load::progress::{Lines, Progress, Quiet};
use steadfast_load::{Embedded, Report, Settings, Target, run};
use tokio::sync::SetOnce;

use self::interrupts::Interrupts;
use crate::duration;
use crate::exit::Ended;
use crate::output::{aside, line};

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
  steadfast load --connect couchbase://db.example.com --bucket test --user app --password secret
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
    #[arg(long, default_value = "2500ms", value_parser = duration::parse)]
    timeout: Duration,
    /// Decides the workload and the script; one that is printed repeats its run
    #[arg(long)]
    seed: Option<u64>,
    /// Who decides about retries: fast-fail, best-effort, standard or adaptive
    #[arg(long, default_value = "fast-fail")]
    strategy: String,
    /// How many nodes the embedded cluster has
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Run against this cluster instead, without the faults
    #[arg(long, value_name = "CONNECTION STRING", conflicts_with = "nodes")]
    connect: Option<String>,
    /// The bucket to use there; what the run writes is removed again
    #[arg(long, default_value = "default", requires = "connect")]
    bucket: String,
    /// The user there
    #[arg(long, env = "STEADFAST_USER", default_value = "Administrator")]
    user: String,
    /// The user's password there
    #[arg(
        long,
        env = "STEADFAST_PASSWORD",
        hide_env_values = true,
        default_value = "password"
    )]
    password: String,
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
    ensure!(!duration.is_zero(), "--duration must be more than nothing");
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
        strategy: arguments.strategy.clone(),
        replay: replay(&arguments, seed),
    };
    let mut interrupts = Interrupts::listen()?;
    let (target, client) = tokio::select! {
        prepared = prepare(&arguments, &settings) => prepared?,
        // Nothing was done yet.
        status = interrupts.next() => return Err(Ended::by_signal(status?).into()),
    };
    let (report, interrupted) =
        run_or_interrupt(&arguments, &settings, client, &target, &mut interrupts).await?;
    if arguments.json {
        line(report.to_json());
    } else {
        line(&report);
    }
    if let Some(mut page) = page {
        page.write_all(report.to_html().as_bytes())
            .context("cannot write the page")?;
    }
    if !report.holds() {
        bail!("the accounting does not hold: see the report");
    }
    match interrupted {
        Some(status) => Err(Ended::by_signal(status).into()),
        None => Ok(()),
    }
}

/// A client, and what it is connected to.
async fn prepare(
    arguments: &Arguments,
    settings: &Settings,
) -> anyhow::Result<(Target, Steadfast)> {
    let (target, address, user, password, bucket) = match &arguments.connect {
        Some(address) => {
            let target = Target::Given(address.clone());
            let (user, password) = (&*arguments.user, &*arguments.password);
            (target, address.clone(), user, password, &*arguments.bucket)
        }
        None => {
            let embedded = Embedded::start(arguments.nodes, settings.seed).await?;
            let address = embedded.cluster().connection_string();
            (Target::Embedded(embedded), address, USER, PASSWORD, BUCKET)
        }
    };
    let strategy = Some(strategy(&arguments.strategy)?);
    if !arguments.json {
        let cluster = match &arguments.connect {
            None => format!("{} nodes, embedded", arguments.nodes),
            Some(address) => address.clone(),
        };
        let (seed, strategy) = (settings.seed, &settings.strategy);
        line(format_args!(
            "cluster         {cluster}    seed {seed}    strategy {strategy}"
        ));
    }
    let client =
        Steadfast::connect(&address, user, password, bucket, strategy, settings.timeout).await?;
    Ok((target, client))
}

/// The report, and the status of the signal that ended the run early, if one did.
async fn run_or_interrupt(
    arguments: &Arguments,
    settings: &Settings,
    client: Steadfast,
    target: &Target,
    interrupts: &mut Interrupts,
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
            status = interrupts.next() => {
                let status = status?;
                if first.set(status).is_err() {
                    // The second one: whoever sends it does not want to wait for anything.
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
        command += &format!(" {option} {value}");
    };
    let seconds = |duration: Duration| format!("{}ms", duration.as_millis());
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
    if arguments.strategy != "fast-fail" {
        add("--strategy", &arguments.strategy);
    }
    if arguments.nodes != 3 {
        add("--nodes", &arguments.nodes);
    }
    if let Some(address) = &arguments.connect {
        add("--connect", address);
        add("--bucket", &arguments.bucket);
    }
    command
}

/// Something else each time, and easy to type.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) % 1_000_000
}
