//! `steadfast topology`: nodes that come, fall over, come back and go.

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};

use crate::control::Control;
use crate::output::line;

/// Change the nodes of a running cluster under its clients
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast topology show
  steadfast topology rebalance-in                    adds a node and moves its share to it
  steadfast topology rebalance-out 1 --step 1 --pause 50
  steadfast topology crash 2
  steadfast topology fail-over 2                     promotes replicas in place of node 2
  steadfast topology recover 2 && steadfast topology rebalance")]
pub(crate) struct Arguments {
    #[command(flatten)]
    control: Control,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show nodes and buckets
    Show,
    /// Add a node and move its share of every bucket to it
    RebalanceIn {
        #[command(flatten)]
        pace: Pace,
    },
    /// Move everything off a node and remove it
    RebalanceOut {
        /// The number of the node
        node: u64,
        #[command(flatten)]
        pace: Pace,
    },
    /// Spread every bucket evenly over the nodes as they are
    Rebalance {
        #[command(flatten)]
        pace: Pace,
    },
    /// Take a node out at once and promote replicas in its place
    FailOver {
        /// The number of the node
        node: u64,
    },
    /// Stop a node as a crash would: connections are cut, the map still names it
    Crash {
        /// The number of the node
        node: u64,
    },
    /// Start a node that crashed, on the same ports and with its data
    Restart {
        /// The number of the node
        node: u64,
    },
    /// Bring a failed-over node back, empty; a rebalance gives it its share
    Recover {
        /// The number of the node
        node: u64,
    },
}

#[derive(Args)]
struct Pace {
    /// How many vbuckets move between two maps
    #[arg(long, value_name = "VBUCKETS")]
    step: Option<usize>,
    /// How long to rest between two steps, in milliseconds
    #[arg(long, value_name = "MS")]
    pause: Option<u64>,
    /// Return at once instead of when it is done
    #[arg(long)]
    no_wait: bool,
}

impl Arguments {
    /// The same for the cluster with this control endpoint.
    pub(crate) fn at(self, control: Control) -> Self {
        Self { control, ..self }
    }
}

impl Pace {
    fn body(&self, node: Option<u64>) -> Value {
        json!({
            "node": node,
            "wait": !self.no_wait,
            "vbuckets_per_step": self.step,
            "pause_ms": self.pause,
        })
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let control = arguments.control;
    let (path, body) = match arguments.action {
        Action::Show => {
            show(&control.call(Method::GET, "/status", None).await?);
            return Ok(());
        }
        Action::RebalanceIn { pace } => ("rebalance-in", pace.body(None)),
        Action::RebalanceOut { node, pace } => ("rebalance-out", pace.body(Some(node))),
        Action::Rebalance { pace } => ("rebalance", pace.body(None)),
        Action::FailOver { node } => ("fail-over", json!({"node": node})),
        Action::Crash { node } => ("crash", json!({"node": node})),
        Action::Restart { node } => ("restart", json!({"node": node})),
        Action::Recover { node } => ("recover", json!({"node": node})),
    };
    let answer = control
        .call(Method::POST, &format!("/topology/{path}"), Some(&body))
        .await?;
    if let Some(node) = answer["node"].as_u64() {
        line(format_args!("node {node}"));
    }
    Ok(())
}

fn show(status: &Value) {
    line(format_args!("revision {}", status["revision"]));
    for node in status["nodes"].as_array().into_iter().flatten() {
        let text = |field: &str| node[field].as_str().unwrap_or_default().to_owned();
        let up = if node["up"] == true { "up" } else { "down" };
        line(format_args!(
            "node {:<3} {}:{}  {up}  {}",
            node["node"].to_string(),
            text("host"),
            node["services"]["kv"]["plain"],
            text("membership")
        ));
    }
    for bucket in status["buckets"].as_array().into_iter().flatten() {
        line(format_args!(
            "bucket {}  {} vbuckets, {} replicas, {} bytes",
            bucket["name"].as_str().unwrap_or_default(),
            bucket["vbuckets"],
            bucket["replicas"],
            bucket["used_bytes"]
        ));
    }
}
