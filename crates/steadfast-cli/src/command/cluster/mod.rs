//! `steadfast cluster`: a test cluster that runs until it is interrupted.

mod announce;
pub(super) mod contents;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use steadfast_cluster::{ClusterError, ServerVersion, TestCluster};
use tempfile::TempPath;

use self::contents::{ContentArgs, Contents};
use crate::child::ChildCommand;
use crate::exit::AlreadyReported;
use crate::output::{self, line};
use crate::parent::Parent;
use crate::schedule;
use crate::signals::{INTERRUPTED, StopSignals};

/// Start a test cluster that speaks the Couchbase protocol and injects faults
///
/// The nodes run in this process and listen on loopback. Any Couchbase SDK can connect to
/// the printed connection string. All data is in memory. The cluster runs until Ctrl-C or
/// SIGTERM.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast cluster                              one node, bucket `default`, user Administrator/password
  steadfast cluster --nodes 3 --bucket travel --replicas 1 --tls
  steadfast cluster --usual-ports                on 11210, 8091, … like a real server
  steadfast cluster --nodes 3 -- pytest tests    runs the tests, then stops the cluster
  steadfast cluster --bucket travel --collection inventory.airline \\
      --load travel/inventory/airline=airlines.json --user app:secret:data_writer[travel]

A file for --load is a JSON object: the documents by their keys.

A command gets the addresses as environment variables: STEADFAST_CONNECTION_STRING,
STEADFAST_USERNAME, STEADFAST_PASSWORD, STEADFAST_CONTROL (TOKEN@HOST:PORT), and with --tls
STEADFAST_CONNECTION_STRING_TLS and STEADFAST_CA, the file of the authority's certificate.

In another terminal, with the printed control address:
  export STEADFAST_CONTROL=TOKEN@127.0.0.1:40000
  steadfast fault add --opcode SET --times 3 answer --status ETMPFAIL
  steadfast topology rebalance-in

A schedule is a file with a line for each event: its time since the start, and a command
of steadfast, or `stop`. Events run in this order, each when its time has come and the one
before is done; `#` begins a comment.
  0s    fault add --opcode SET --probability 0.01 cut-after-applying
  5s    topology rebalance-in --no-wait
  20s   topology crash 1
  25s   topology fail-over 1
  40s   fault clear
  60s   stop

", crate::exit::plain_statuses!(), "
  Ctrl-C and SIGTERM stop the cluster with status 0.
  With a command, its status; 127 if it cannot be run."))]
pub(crate) struct ClusterArgs {
    /// Number of nodes
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    #[command(flatten)]
    contents: ContentArgs,
    /// Also listen with TLS, with a new certificate authority
    #[arg(long)]
    tls: bool,
    /// File for the authority's certificate [default: a temporary file, removed at the end]
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca_out: Option<PathBuf>,
    /// Address to listen on; whoever can reach it can use the cluster
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Host name that clients get [default: the address]
    #[arg(long)]
    host: Option<String>,
    /// Use the ports of a real server (11210, 8091, …) for the first node
    #[arg(long)]
    usual_ports: bool,
    /// Port of the control endpoint; 0 takes a free one
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    control_port: u16,
    /// Token that requests to the control endpoint need [default: a random one, printed]
    #[arg(
        long,
        value_name = "TOKEN",
        env = "STEADFAST_CONTROL_TOKEN",
        hide_env_values = true
    )]
    control_token: Option<String>,
    /// Address of the control endpoint; whoever can reach it needs the token only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    control_bind: IpAddr,
    /// Keep running when the process that started this one has ended
    #[arg(long)]
    outlive_parent: bool,
    /// Number of applied mutations that the journal keeps
    #[arg(long, default_value_t = steadfast_cluster::journal::DEFAULT_LIMIT, value_name = "ENTRIES")]
    journal: usize,
    /// Version of the server that the cluster behaves like: 7.1, 7.6 or 8.0
    #[arg(long, default_value_t, value_name = "VERSION")]
    version: ServerVersion,
    /// On how many commands of a key-value connection a node works at once
    #[arg(long, default_value_t = steadfast_cluster::MAX_CONCURRENT_COMMANDS, value_name = "COMMANDS")]
    max_concurrent_commands: usize,
    /// Seed of all randomness, to repeat a run
    #[arg(long, value_parser = crate::number::whole)]
    seed: Option<u64>,
    /// File of faults and topology changes, each with its time
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    /// Print JSON: one line with the addresses when the cluster is up, then one for each
    /// event of the schedule
    #[arg(long, conflicts_with = "command")]
    json: bool,
    /// Command to run while the cluster is up; the cluster prints nothing, and stops with it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: ClusterArgs) -> anyhow::Result<()> {
    let parent = Parent::new(!args.outlive_parent);
    // Read first: the cluster must not start for an invalid schedule or document.
    let contents = Contents::read(&args.contents)?;
    let schedule = match &args.schedule {
        Some(path) => schedule::read(path)?,
        None => Default::default(),
    };
    // Early, so that a signal never kills the process without cleaning up.
    let mut signals = StopSignals::listen()?;
    let mut builder = TestCluster::builder()
        .nodes(args.nodes)
        .tls(args.tls)
        .bind(args.bind)
        .usual_ports(args.usual_ports)
        .control(args.control_port)
        .control_bind(args.control_bind)
        .journal_limit(args.journal)
        .version(args.version)
        .max_concurrent_commands(args.max_concurrent_commands);
    if let Some(host) = &args.host {
        builder = builder.host(host);
    }
    if let Some(token) = &args.control_token {
        builder = builder.control_token(token);
    }
    if let Some(seed) = args.seed {
        builder = builder.seed(seed);
    }
    builder = contents.add_to(builder);
    let cluster = builder
        .start()
        .await
        .map_err(|error| with_advice(error, &args))?;
    contents.fill(&cluster)?;
    // Dropping it at the end removes the file.
    let mut temporary_file = None;

    let mut authority = None;
    if let Some(pem) = cluster.ca_pem() {
        let path = match &args.ca_out {
            Some(path) => path.clone(),
            None => temporary_file.insert(temporary_ca_file()?).to_path_buf(),
        };
        std::fs::write(&path, pem).with_context(|| format!("cannot write {}", path.display()))?;
        authority = Some(path);
    }
    let authority = authority.as_deref();
    let child = ChildCommand::start(
        &args.command,
        &announce::variables(&cluster, &contents, authority),
    )?;
    match (&child, args.json) {
        (Some(_), _) => output::lend(),
        (None, true) => line(announce::to_json(&cluster, &contents, authority)),
        (None, false) => announce::print(&cluster, &contents, authority),
    }
    // Without the printed address the cluster is of no use.
    if output::lost().is_some() {
        cluster.stop().await;
        return Ok(());
    }

    let played = async {
        let stops = match announce::control(&cluster) {
            Some(control) => schedule::play(schedule, &control, args.json).await?,
            None => false,
        };
        match stops {
            true => Ok(()),
            // The schedule is over, and the cluster goes on.
            false => std::future::pending().await,
        }
    };
    let stopped = async {
        tokio::select! {
            () = parent.ended() => Ok(()),
            stopped = played => stopped,
        }
    };
    let result = match child {
        Some(child) => run_command(child, &mut signals, stopped).await,
        None => tokio::select! {
            _ = signals.next() => Ok(()),
            stopped = stopped => stopped,
        },
    };
    cluster.stop().await;
    result
}

/// Waits for the command, or ends it when the cluster is to stop, and returns with its status.
async fn run_command(
    mut child: ChildCommand,
    signals: &mut StopSignals,
    stopped: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    // The terminal sends the first Ctrl-C to the command too, which decides what it means.
    let signalled = async {
        if signals.next().await == INTERRUPTED {
            signals.next().await;
        }
    };
    let status = tokio::select! {
        status = child.ended() => Some(status?),
        () = signalled => None,
        stopped = stopped => {
            if let Err(error) = stopped {
                child.stop().await?;
                return Err(error);
            }
            None
        }
    };
    let status = match status {
        Some(status) => status,
        None => child.stop().await?,
    };
    match status {
        0 => Ok(()),
        status => Err(AlreadyReported::from_status(status).into()),
    }
}

/// Creates a file for the authority's certificate that is removed at the end.
fn temporary_ca_file() -> anyhow::Result<TempPath> {
    let file = tempfile::Builder::new()
        .prefix("steadfast-ca-")
        .suffix(".pem")
        .tempfile()
        .context(
            "cannot create a temporary file for the authority's certificate; give --ca-out FILE",
        )?;
    Ok(file.into_temp_path())
}

/// Adds advice to the error of a cluster that does not start.
fn with_advice(error: ClusterError, args: &ClusterArgs) -> anyhow::Error {
    let taken = matches!(&error, ClusterError::Io(io) if io.kind() == ErrorKind::AddrInUse);
    let advice = match taken {
        true if args.usual_ports => "leave --usual-ports out to use free ports",
        true if args.control_port != 0 => "leave --control-port out to use a free port",
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(format!("a port is in use; {advice}"))
}
