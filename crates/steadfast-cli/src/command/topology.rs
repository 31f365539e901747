//! `steadfast topology`: changes the nodes of a running cluster.

use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use steadfast_cluster::topology::Pace;

use crate::control::ControlArgs;
use crate::output::line;

/// The interval of polling a rebalance.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Add, remove, crash and restart nodes of a running cluster
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast topology show
  steadfast topology rebalance-in                    adds a node and moves vbuckets to it
  steadfast topology rebalance-out 1 --step 1 --pause 50
  steadfast topology crash 2
  steadfast topology fail-over 2                     promotes replicas in place of node 2
  steadfast topology recover 2 && steadfast topology rebalance
  steadfast topology rebalance-in --step 1 --pause 500 --no-wait
  steadfast topology cancel                          stops it where it is

", crate::exit::control_statuses!()))]
pub(crate) struct TopologyArgs {
    #[command(flatten)]
    control: ControlArgs,
    #[command(subcommand)]
    action: TopologyAction,
}

#[derive(Subcommand)]
enum TopologyAction {
    /// Show nodes, buckets and the progress of a rebalance
    Show,
    /// Add a node, and move its share of every bucket to it
    RebalanceIn {
        #[command(flatten)]
        pace: PaceArgs,
    },
    /// Move everything off a node and remove it
    RebalanceOut {
        /// Number of the node
        #[arg(value_parser = crate::number::whole)]
        node: u64,
        #[command(flatten)]
        pace: PaceArgs,
    },
    /// Spread every bucket evenly over the nodes as they are
    Rebalance {
        #[command(flatten)]
        pace: PaceArgs,
    },
    /// Stop the running rebalance
    ///
    /// Vbuckets that have moved stay where they are, and `steadfast topology rebalance`
    /// continues from there. A node that was to join has joined; one that was to leave stays.
    Cancel,
    /// Remove a node at once, and promote replicas in its place
    FailOver {
        /// Number of the node
        #[arg(value_parser = crate::number::whole)]
        node: u64,
    },
    /// Crash a node: its connections break, and the map still contains it
    Crash {
        /// Number of the node
        #[arg(value_parser = crate::number::whole)]
        node: u64,
    },
    /// Start a crashed node, on the same ports and with its data
    Restart {
        /// Number of the node
        #[arg(value_parser = crate::number::whole)]
        node: u64,
    },
    /// Bring a failed-over node back, empty; then rebalance
    Recover {
        /// Number of the node
        #[arg(value_parser = crate::number::whole)]
        node: u64,
    },
}

#[derive(Args)]
struct PaceArgs {
    /// Number of vbuckets that move between two maps, 1 or more [default: 16]
    #[arg(long, value_name = "VBUCKETS", value_parser = crate::number::at_least_one)]
    step: Option<u64>,
    /// Pause between two steps, in milliseconds, up to 60000 [default: 10]
    #[arg(long, value_name = "MS", value_parser = pause)]
    pause: Option<u64>,
    /// Return at once; `show` prints the progress
    #[arg(long)]
    no_wait: bool,
}

impl TopologyArgs {
    /// Replaces the control address.
    pub(crate) fn at(self, address: &str, json: bool) -> Self {
        let control = self.control.at(address, json);
        Self { control, ..self }
    }
}

impl PaceArgs {
    fn body(&self, node: Option<u64>) -> Value {
        json!({
            "node": node,
            // This command polls instead, so that a request has a time limit.
            "wait": false,
            "vbuckets_per_step": self.step,
            "pause_ms": self.pause,
        })
    }
}

pub(crate) async fn run(args: TopologyArgs) -> anyhow::Result<()> {
    let control = args.control;
    let (path, body, wait) = match args.action {
        TopologyAction::Show => {
            let status = control.call(Method::GET, "/status", None).await?;
            match control.json {
                true => line(status),
                false => show(&status),
            }
            return Ok(());
        }
        TopologyAction::Cancel => {
            let path = "/topology/cancel";
            let ended = control.call(Method::POST, path, Some(&json!({}))).await?;
            match control.json {
                true => line(ended),
                false => line(progress(&ended)),
            }
            return Ok(());
        }
        TopologyAction::RebalanceIn { pace } => ("rebalance-in", pace.body(None), !pace.no_wait),
        TopologyAction::RebalanceOut { node, pace } => {
            ("rebalance-out", pace.body(Some(node)), !pace.no_wait)
        }
        TopologyAction::Rebalance { pace } => ("rebalance", pace.body(None), !pace.no_wait),
        TopologyAction::FailOver { node } => ("fail-over", json!({"node": node}), false),
        TopologyAction::Crash { node } => ("crash", json!({"node": node}), false),
        TopologyAction::Restart { node } => ("restart", json!({"node": node}), false),
        TopologyAction::Recover { node } => ("recover", json!({"node": node}), false),
    };
    let response = control
        .call(Method::POST, &format!("/topology/{path}"), Some(&body))
        .await?;
    if wait {
        wait_for_end(&control, &response["rebalance"]).await?;
    }
    if control.json {
        line(response);
    } else if let Some(node) = response["node"].as_u64() {
        line(format_args!("node {node}"));
    }
    Ok(())
}

/// Polls until a rebalance has ended, without a limit.
async fn wait_for_end(control: &ControlArgs, id: &Value) -> anyhow::Result<()> {
    loop {
        let path = "/topology/rebalance";
        let status = control.call(Method::GET, path, None).await?;
        if status["id"] != *id || status["state"] == "done" {
            return Ok(());
        }
        if status["state"] == "cancelled" {
            bail!(
                "{}; `steadfast topology rebalance` continues it",
                progress(&status).replace(", cancelled", " was cancelled")
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
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
    // The nodes show the result of one that is done.
    let rebalance = &status["rebalance"];
    if rebalance.is_object() && rebalance["state"] != "done" {
        line(progress(rebalance));
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

/// Formats the progress of a rebalance.
fn progress(rebalance: &Value) -> String {
    let text = |field: &str| rebalance[field].as_str().unwrap_or_default();
    let (what, state) = (text("what"), text("state"));
    let node = match rebalance["node"].as_u64() {
        Some(node) => format!(" of node {node}"),
        None => String::new(),
    };
    let (moved, total) = (&rebalance["moved"], &rebalance["total"]);
    format!("{what}{node}, {state}: {moved} of {total} vbuckets moved")
}

/// Parses a pause that the cluster accepts.
fn pause(text: &str) -> Result<u64, String> {
    let longest = Pace::LONGEST_PAUSE.as_millis();
    match crate::number::whole(text)? {
        pause if u128::from(pause) <= longest => Ok(pause),
        _ => Err(format!("must be at most {longest} ms")),
    }
}
