//! `steadfast fault`: rules that break a running cluster.

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use steadfast_cluster::Service;
use steadfast_cluster::fault::{Fault, FaultSpec, SpecError};

use crate::control::Control;
use crate::exit::usage;
use crate::output::line;

/// Break a running cluster by rule
///
/// A fault is a rule with a verdict: when a request looks like this, do that to it. Rules
/// are asked in the order in which they were added, and the first that matches wins.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast fault add --opcode SET --key user:42 --times 3 answer --status ETMPFAIL
  steadfast fault add --key-prefix order: --probability 0.1 --seed 7 cut-after-applying
  steadfast fault add --node 1 delay --ms 200
  steadfast fault add --service query --times 1 answer --status 503
  steadfast fault list
  steadfast fault remove 0

", crate::exit::plain_statuses!()))]
pub(crate) struct Arguments {
    #[command(flatten)]
    control: Control,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add a rule behind those that are there
    Add(Box<Add>),
    /// Show the rules, and how often each has hit
    List,
    /// Remove a rule; whatever it holds goes on
    Remove {
        /// The number that `add` and `list` show
        #[arg(value_parser = crate::number::whole)]
        id: u64,
    },
    /// Remove all rules
    Clear,
}

#[derive(Args)]
struct Add {
    /// Only on this node
    #[arg(long, value_parser = crate::number::node)]
    node: Option<u64>,
    /// Only for this service: kv, mgmt, query, analytics, search, views. An opcode, and an answer
    /// without a service, are about kv
    #[arg(long, value_parser = parse_service)]
    service: Option<Service>,
    /// Only for this command, by name (SET) or number (0x01)
    #[arg(long)]
    opcode: Option<String>,
    /// Only for this key; for a service that speaks HTTP, this path, as /query/service
    #[arg(long, conflicts_with = "key_prefix")]
    key: Option<String>,
    /// Only for keys, or paths, that start so
    #[arg(long)]
    key_prefix: Option<String>,
    /// Only in this bucket (kv)
    #[arg(long)]
    bucket: Option<String>,
    /// Let so many requests pass first
    #[arg(long, value_parser = crate::number::whole)]
    skip: Option<u64>,
    /// Hit so many requests, 1 or more, and then no more
    #[arg(long, value_parser = crate::number::at_least_one)]
    times: Option<u64>,
    /// Hit each request with this chance, 0 to 1
    #[arg(long, value_parser = chance)]
    probability: Option<f64>,
    /// The seed of the chances, to replay them
    #[arg(long, value_parser = crate::number::whole)]
    seed: Option<u64>,
    #[command(subcommand)]
    verdict: Verdict,
}

#[derive(Subcommand)]
enum Verdict {
    /// Let it pass, whatever later rules say
    Pass,
    /// Make it wait before it is applied
    Delay {
        /// How long, in milliseconds, up to an hour
        #[arg(long, value_parser = crate::number::whole)]
        ms: u64,
    },
    /// Apply it at once and make its answer wait
    DelayAnswer {
        /// How long, in milliseconds, up to an hour
        #[arg(long, value_parser = crate::number::whole)]
        ms: u64,
    },
    /// Do not apply it; answer with a status
    Answer {
        /// The status: of kv by name (ETMPFAIL) or number (0x86), of the others an HTTP one (503)
        #[arg(long)]
        status: String,
        /// The body to send
        #[arg(long, conflicts_with = "context")]
        body: Option<String>,
        /// The context of an extended error body (kv)
        #[arg(long)]
        context: Option<String>,
    },
    /// Keep it waiting, unapplied, until the rule is removed
    Hold,
    /// Reset the connection as if the request had never been read
    CutBeforeReading,
    /// Close the connection after reading and before applying
    CutBeforeApplying,
    /// Apply it and close the connection without an answer
    CutAfterApplying,
    /// Apply it, send half of the answer, close the connection
    CutMidResponse,
    /// Apply it and damage the answer
    Garble {
        /// What to damage: magic, opaque, length, body [default: magic; of HTTP the body]
        #[arg(long)]
        what: Option<String>,
    },
    /// Never answer anything on that connection again
    Silent,
}

impl Arguments {
    /// The same for the cluster with this control endpoint.
    pub(crate) fn at(self, control: Control) -> Self {
        Self { control, ..self }
    }

    /// Whether it makes sense, as far as that can be told without the cluster.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        match &self.action {
            Action::Add(add) => Fault::try_from(spec(add)).map(|_| ()),
            Action::List | Action::Remove { .. } | Action::Clear => Ok(()),
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let control = arguments.control;
    match arguments.action {
        Action::Add(add) => {
            let spec = spec(&add);
            // The cluster would refuse it as well; this needs no cluster.
            Fault::try_from(spec.clone()).map_err(usage)?;
            let body = serde_json::to_value(spec)?;
            show(&control.call(Method::POST, "/faults", Some(&body)).await?);
        }
        Action::List => {
            let faults = control.call(Method::GET, "/faults", None).await?;
            faults.as_array().into_iter().flatten().for_each(show);
        }
        Action::Remove { id } => {
            control
                .call(Method::DELETE, &format!("/faults/{id}"), None)
                .await?;
        }
        Action::Clear => {
            control
                .call(Method::DELETE, "/faults", Some(&json!({})))
                .await?;
        }
    }
    Ok(())
}

fn show(fault: &Value) {
    let rule = fault["rule"].as_str().unwrap_or_default();
    line(format_args!(
        "{:<4} {rule}    hit {} of {}    seed {}",
        fault["id"].to_string(),
        fault["fired"],
        fault["seen"],
        fault["seed"]
    ));
}

fn spec(add: &Add) -> FaultSpec {
    let mut spec = FaultSpec {
        node: add.node,
        service: add.service,
        opcode: add.opcode.clone(),
        key: add.key.clone(),
        key_prefix: add.key_prefix.clone(),
        bucket: add.bucket.clone(),
        skip: add.skip,
        times: add.times,
        probability: add.probability,
        seed: add.seed,
        ..FaultSpec::default()
    };
    let name = match &add.verdict {
        Verdict::Pass => "pass",
        Verdict::Delay { ms } => {
            spec.delay_ms = Some(*ms);
            "delay"
        }
        Verdict::DelayAnswer { ms } => {
            spec.delay_ms = Some(*ms);
            "delay-answer"
        }
        Verdict::Answer {
            status,
            body,
            context,
        } => {
            spec.status = Some(status.clone());
            (spec.body, spec.context) = (body.clone(), context.clone());
            "answer"
        }
        Verdict::Hold => "hold",
        Verdict::CutBeforeReading => "cut-before-reading",
        Verdict::CutBeforeApplying => "cut-before-applying",
        Verdict::CutAfterApplying => "cut-after-applying",
        Verdict::CutMidResponse => "cut-mid-response",
        Verdict::Garble { what } => {
            spec.garble = what.clone();
            "garble"
        }
        Verdict::Silent => "silent",
    };
    spec.verdict = name.to_owned();
    spec
}

fn parse_service(text: &str) -> Result<Service, String> {
    let known = Service::ALL
        .into_iter()
        .find(|service| service.to_string() == text);
    known.ok_or_else(|| "a service is kv, mgmt, query, analytics, search or views".to_owned())
}

/// A number between 0 and 1, which one that is none is not.
fn chance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(chance),
        Ok(_) | Err(_) => Err("a probability is a number between 0 and 1".to_owned()),
    }
}
