//! `steadfast topology`: nodes that come, fall over, come back and go.

use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use steadfast_cluster::cluster::Pace;

use crate::control::Control;
use crate::output::line;

/// How often a rebalance is looked at that is waited for.
const GLANCE: Duration = Duration::from_millis(50);

/// Change the nodes of a running cluster under its clients
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast topology show
  steadfast topology rebalance-in                    adds a node and moves its share to it
  steadfast topology rebalance-out 1 --step 1 --pause 50
  steadfast topology crash 2
  steadfast topology fail-over 2                     promotes replicas in place of node 2
  steadfast topology recover 2 && steadfast topology rebalance
  steadfast topology rebalance-in --step 1 --pause 500 --no-wait
  steadfast topology cancel                          stops it where it is

", crate::exit::plain_statuses!()))]
pub(crate) struct Arguments {
    #[command(flatten)]
    control: Control,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show nodes and buckets, and how far a rebalance is
    Show,
    /// Add a node and move its share of every bucket to it
    RebalanceIn {
        #[command(flatten)]
        pace: PaceArguments,
    },
    /// Move everything off a node and remove it
    RebalanceOut {
        /// The number of the node
        #[arg(value_parser = crate::number::node)]
        node: u64,
        #[command(flatten)]
        pace: PaceArguments,
    },
    /// Spread every bucket evenly over the nodes as they are
    Rebalance {
        #[command(flatten)]
        pace: PaceArguments,
    },
    /// Stop the rebalance that runs where it is
    ///
    /// What has moved has moved, the rest has not, and every vbucket is where the map says:
    /// `steadfast topology rebalance` goes on from there. A node that was to join has
    /// joined; one that was to leave stays.
    Cancel,
    /// Take a node out at once and promote replicas in its place
    FailOver {
        /// The number of the node
        #[arg(value_parser = crate::number::node)]
        node: u64,
    },
    /// Stop a node as a crash would: connections are cut, the map still names it
    Crash {
        /// The number of the node
        #[arg(value_parser = crate::number::node)]
        node: u64,
    },
    /// Start a node that crashed, on the same ports and with its data
    Restart {
        /// The number of the node
        #[arg(value_parser = crate::number::node)]
        node: u64,
    },
    /// Bring a failed-over node back, empty; a rebalance gives it its share
    Recover {
        /// The number of the node
        #[arg(value_parser = crate::number::node)]
        node: u64,
    },
}

#[derive(Args)]
struct PaceArguments {
    /// How many vbuckets move between two maps, 1 or more [default: 16]
    #[arg(long, value_name = "VBUCKETS", value_parser = crate::number::at_least_one)]
    step: Option<u64>,
    /// How long to rest between two steps, in milliseconds, up to 60000 [default: 10]
    #[arg(long, value_name = "MS", value_parser = pause)]
    pause: Option<u64>,
    /// Return at once instead of when it is done; `show` says how far it is
    #[arg(long)]
    no_wait: bool,
}

impl Arguments {
    /// The same for the cluster with this control endpoint.
    pub(crate) fn at(self, control: Control) -> Self {
        Self { control, ..self }
    }
}

impl PaceArguments {
    fn body(&self, node: Option<u64>) -> Value {
        json!({
            "node": node,
            // Waiting is done from here, so that no answer takes as long as a rebalance.
            "wait": false,
            "vbuckets_per_step": self.step,
            "pause_ms": self.pause,
        })
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let control = arguments.control;
    let (path, body, wait) = match arguments.action {
        Action::Show => {
            show(&control.call(Method::GET, "/status", None).await?);
            return Ok(());
        }
        Action::Cancel => {
            let path = "/topology/cancel";
            let ended = control.call(Method::POST, path, Some(&json!({}))).await?;
            line(progress(&ended));
            return Ok(());
        }
        Action::RebalanceIn { pace } => ("rebalance-in", pace.body(None), !pace.no_wait),
        Action::RebalanceOut { node, pace } => {
            ("rebalance-out", pace.body(Some(node)), !pace.no_wait)
        }
        Action::Rebalance { pace } => ("rebalance", pace.body(None), !pace.no_wait),
        Action::FailOver { node } => ("fail-over", json!({"node": node}), false),
        Action::Crash { node } => ("crash", json!({"node": node}), false),
        Action::Restart { node } => ("restart", json!({"node": node}), false),
        Action::Recover { node } => ("recover", json!({"node": node}), false),
    };
    let answer = control
        .call(Method::POST, &format!("/topology/{path}"), Some(&body))
        .await?;
    if wait {
        end(&control, &answer["rebalance"]).await?;
    }
    if let Some(node) = answer["node"].as_u64() {
        line(format_args!("node {node}"));
    }
    Ok(())
}

/// Waits for the end of a rebalance, for as long as it takes.
async fn end(control: &Control, id: &Value) -> anyhow::Result<()> {
    loop {
        let path = "/topology/rebalance";
        let status = control.call(Method::GET, path, None).await?;
        if status["id"] != *id || status["state"] == "done" {
            return Ok(());
        }
        if status["state"] == "cancelled" {
            bail!(
                "{}; `steadfast topology rebalance` goes on from there",
                progress(&status).replace(", cancelled", " was cancelled")
            );
        }
        tokio::time::sleep(GLANCE).await;
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
    // One that is done shows in the nodes.
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

/// How far a rebalance is.
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

/// A rest, as long as the cluster takes it.
fn pause(text: &str) -> Result<u64, String> {
    let longest = Pace::LONGEST_PAUSE.as_millis();
    match crate::number::whole(text)? {
        pause if u128::from(pause) <= longest => Ok(pause),
        _ => Err(format!("a pause is at most {longest} ms")),
    }
}
