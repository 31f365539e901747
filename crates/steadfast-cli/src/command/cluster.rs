//! `steadfast cluster`: a cluster that stays up until it is interrupted.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use steadfast_cluster::users::check_name;
use steadfast_cluster::{BucketSettings, ClusterError, Service, TestCluster};
use tempfile::TempPath;

use crate::exit::refuse;
use crate::output::{self, line};
use crate::schedule;
use crate::signals::Signals;

/// Start a Couchbase-protocol cluster to test against, and break
///
/// Starts real nodes on loopback, in this process. Any Couchbase SDK connects to the
/// printed connection string. It stays up until interrupted, by Ctrl-C or SIGTERM, and
/// keeps everything in memory. A schedule injects faults over time.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast cluster                              one node, bucket `default`, user Administrator/password
  steadfast cluster --nodes 3 --bucket travel --replicas 1 --tls
  steadfast cluster --usual-ports                on 11210, 8091, … as a real server

In another terminal, with the control address that it prints:
  export STEADFAST_CONTROL=127.0.0.1:40000
  steadfast fault add --opcode SET --times 3 answer --status ETMPFAIL
  steadfast topology rebalance-in

A schedule is a file with a line for each event: its time, counted from the start, and a
command as it is given to steadfast, or `stop`. Events run in this order, each when its
time has come and the one before is done; `#` begins a comment.
  0s    fault add --opcode SET --probability 0.01 cut-after-applying
  5s    topology rebalance-in --no-wait
  20s   topology crash 1
  25s   topology fail-over 1
  40s   fault clear
  60s   stop

", crate::exit::plain_statuses!(), "
  An interrupt (Ctrl-C) or SIGTERM ends it well, with status 0."))]
pub(crate) struct Arguments {
    /// How many nodes to start
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// A bucket to create; may be given several times
    #[arg(long = "bucket", default_values_t = [String::from("default")], value_name = "NAME")]
    buckets: Vec<String>,
    /// How many replicas the buckets have
    #[arg(long, default_value_t = 1)]
    replicas: usize,
    /// How many vbuckets the buckets have
    #[arg(long, default_value_t = 1024)]
    vbuckets: u16,
    /// A user who may do everything, as NAME:PASSWORD; may be given several times
    #[arg(long = "user", default_values_t = [String::from("Administrator:password")], value_name = "NAME:PASSWORD")]
    users: Vec<String>,
    /// Listen with TLS as well, under a certificate authority made for the occasion
    #[arg(long)]
    tls: bool,
    /// Where to write the authority's certificate [default: a temporary file, removed in the end]
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca_out: Option<PathBuf>,
    /// The address to listen on; anybody who can reach it can use the cluster
    #[arg(long, default_value = "127.0.0.1")]
    bind: IpAddr,
    /// The host name to tell clients [default: the address]
    #[arg(long)]
    host: Option<String>,
    /// Put the first node on the ports of a real server (11210, 8091, …) instead of free ones
    #[arg(long)]
    usual_ports: bool,
    /// The port of the control endpoint; 0 is any free one
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    control_port: u16,
    /// How many applied mutations the journal remembers
    #[arg(long, default_value_t = steadfast_cluster::journal::DEFAULT_LIMIT, value_name = "ENTRIES")]
    journal: usize,
    /// The seed of everything random, to replay a run
    #[arg(long, value_parser = crate::number::whole)]
    seed: Option<u64>,
    /// A file of faults and topology changes, each with its time
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    // Read first: the cluster must not start for an invalid schedule.
    let schedule = match &arguments.schedule {
        Some(path) => schedule::read(path)?,
        None => Default::default(),
    };
    // So that there is no moment in which a signal would end it as a crash does.
    let mut signals = Signals::listen()?;
    let mut builder = TestCluster::builder()
        .nodes(arguments.nodes)
        .tls(arguments.tls)
        .bind(arguments.bind)
        .usual_ports(arguments.usual_ports)
        .control(arguments.control_port)
        .journal_limit(arguments.journal);
    if let Some(host) = &arguments.host {
        builder = builder.host(host);
    }
    if let Some(seed) = arguments.seed {
        builder = builder.seed(seed);
    }
    for user in &arguments.users {
        // What is in the wrong place may be the password, so it is not repeated.
        match user.split_once(':') {
            Some((name, password)) if check_name(name).is_ok() && !password.is_empty() => {
                builder = builder.user(name, password);
            }
            _ => refuse!(
                "--user is NAME:PASSWORD: both are there, and the name has no control characters"
            ),
        }
    }
    for bucket in &arguments.buckets {
        let settings = BucketSettings::new(bucket);
        builder = builder.bucket(
            settings
                .replicas(arguments.replicas)
                .vbuckets(arguments.vbuckets),
        );
    }
    let cluster = builder
        .start()
        .await
        .map_err(|error| explain(error, &arguments))?;
    // Kept until the end: dropping it removes the file.
    let mut temporary_file = None;

    let mut authority = None;
    if let Some(pem) = cluster.ca_pem() {
        let path = match &arguments.ca_out {
            Some(path) => path.clone(),
            None => temporary_file.insert(temporary()?).to_path_buf(),
        };
        std::fs::write(&path, pem).with_context(|| format!("cannot write {}", path.display()))?;
        authority = Some(path);
    }
    line(format_args!("connect    {}", cluster.connection_string()));
    if let (Some(string), Some(path)) = (cluster.tls_connection_string(), authority) {
        line(format_args!("with TLS   {string}"));
        line(format_args!("authority  {}", path.display()));
    }
    if let Some(mgmt) = cluster.addresses(Service::Mgmt).first() {
        line(format_args!("manage     http://{mgmt}"));
    }
    if let Some(control) = cluster.control_address() {
        line(format_args!(
            "control    http://{control}      export STEADFAST_CONTROL={control}"
        ));
    }
    line(format_args!("seed       {}", cluster.seed()));
    line("up; interrupt to stop");
    // A cluster whose address nobody was told is of no use.
    if output::lost().is_some() {
        cluster.stop().await;
        return Ok(());
    }

    let played = async {
        match cluster.control_address() {
            Some(control) => schedule::play(schedule, control).await,
            None => Ok(false),
        }
    };
    let outcome = tokio::select! {
        _ = signals.next() => Ok(()),
        outcome = played => match outcome {
            Ok(true) => Ok(()),
            Ok(false) => {
                signals.next().await;
                Ok(())
            }
            Err(error) => Err(error),
        },
    };
    cluster.stop().await;
    outcome
}

/// A file for the authority's certificate that goes when the command does.
fn temporary() -> anyhow::Result<TempPath> {
    let file = tempfile::Builder::new()
        .prefix("steadfast-ca-")
        .suffix(".pem")
        .tempfile()
        .context("cannot make a temporary file for the authority's certificate; give --ca-out")?;
    Ok(file.into_temp_path())
}

/// What to do about a cluster that does not start.
fn explain(error: ClusterError, arguments: &Arguments) -> anyhow::Error {
    let taken = matches!(&error, ClusterError::Io(io) if io.kind() == ErrorKind::AddrInUse);
    let advice = match taken {
        true if arguments.usual_ports => "leave --usual-ports out for free ones",
        true if arguments.control_port != 0 => "leave --control-port out for a free one",
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(format!("a port is taken; {advice}"))
}
