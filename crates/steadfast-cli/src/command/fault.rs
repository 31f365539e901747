//! `steadfast fault`: injects faults into a running cluster.

use clap::{Args, Subcommand};
use hyper::Method;
use serde::Serialize;
use serde_json::{Value, json};
use steadfast_cluster::Service;
use steadfast_cluster::fault::{self, Fault};
use steadfast_cluster::suggest;

use crate::control::ControlArgs;
use crate::exit::usage;
use crate::output::{line, wrapped_on_terminals};

/// Inject faults into a running cluster
///
/// A fault is a rule: a condition selects requests, and an effect says what happens to
/// them. Rules are tried in the order in which they were added; the first match wins.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast fault add --opcode SET --key user:42 --times 3 answer --status ETMPFAIL
  steadfast fault add --key-prefix order: --probability 0.1 --seed 7 cut-after-applying
  steadfast fault add --node 1 delay --ms 200
  steadfast fault add --service query --times 1 answer --status 503
  steadfast fault list
  steadfast fault remove 0

", crate::exit::control_statuses!()))]
pub(crate) struct FaultArgs {
    #[command(flatten)]
    control: ControlArgs,
    #[command(subcommand)]
    action: FaultAction,
}

#[derive(Subcommand)]
enum FaultAction {
    /// Add a rule behind the others
    Add(Box<AddArgs>),
    /// List the rules and how often each has hit
    List,
    /// Remove a rule and release the requests that it holds
    Remove {
        /// The number that `add` and `list` show
        #[arg(value_parser = crate::number::whole)]
        id: u64,
    },
    /// Remove all rules
    Clear,
}

/// A fault. The fields have the names of its JSON form.
#[derive(Args, Serialize)]
struct AddArgs {
    /// Only on this node
    #[arg(long, value_parser = crate::number::node)]
    node: Option<u64>,
    /// Only for this service: kv, mgmt, query, analytics, search, views. The default is every
    /// service, or kv with --opcode or answer
    #[arg(long, value_parser = parse_service)]
    service: Option<Service>,
    /// Only for this command, by name (SET) or number (0x01)
    #[arg(long, value_parser = opcode)]
    opcode: Option<String>,
    /// Only for this key; for an HTTP service, this path, such as /query/service
    #[arg(long, conflicts_with = "key_prefix")]
    key: Option<String>,
    /// Only for keys or paths with this prefix
    #[arg(long)]
    key_prefix: Option<String>,
    /// Only in this bucket (kv)
    #[arg(long)]
    bucket: Option<String>,
    /// Spare this many matching requests first
    #[arg(long, value_parser = crate::number::whole)]
    skip: Option<u64>,
    /// Hit at most this many requests, 1 or more
    #[arg(long, value_parser = crate::number::at_least_one)]
    times: Option<u64>,
    /// Hit each request with this probability, 0 to 1
    #[arg(long, value_parser = probability)]
    probability: Option<f64>,
    /// The seed of the random choices, to replay them
    #[arg(long, value_parser = crate::number::whole)]
    seed: Option<u64>,
    #[command(subcommand)]
    #[serde(flatten)]
    effect: EffectArgs,
}

#[derive(Subcommand, Serialize)]
#[serde(tag = "effect", rename_all = "kebab-case")]
enum EffectArgs {
    /// Let the request pass, whatever later rules say
    Pass,
    /// Delay the request before it is applied
    Delay {
        /// The length in milliseconds, up to an hour
        #[arg(long, value_parser = crate::number::whole)]
        #[serde(rename = "delay_ms")]
        ms: u64,
    },
    /// Apply the request at once and delay its answer
    DelayAnswer {
        /// The length in milliseconds, up to an hour
        #[arg(long, value_parser = crate::number::whole)]
        #[serde(rename = "delay_ms")]
        ms: u64,
    },
    /// Answer with a status and do not apply the request
    Answer {
        /// The status: for kv a name (ETMPFAIL) or number (0x86), for the others an HTTP status (503)
        #[arg(long, value_parser = status)]
        status: String,
        /// The body to send
        #[arg(long, conflicts_with = "context")]
        body: Option<String>,
        /// The context of an extended error body (kv)
        #[arg(long)]
        context: Option<String>,
    },
    /// Hold the request, unapplied, until the rule is removed
    Hold,
    /// Reset the connection as if the request had never been read
    CutBeforeReading,
    /// Close the connection after reading the request and before applying it
    CutBeforeApplying,
    /// Apply the request and close the connection without an answer
    CutAfterApplying,
    /// Apply the request, send half of the answer, close the connection
    CutMidResponse,
    /// Apply the request and damage the answer
    Garble {
        /// The part to damage: magic, opaque, length, body [default: magic; for HTTP the body]
        #[arg(long)]
        #[serde(rename = "garble")]
        what: Option<String>,
    },
    /// Never answer anything on that connection again
    Silent,
    /// Apply everything on that connection, and never answer again
    Mute,
}

impl FaultArgs {
    /// Directs the command to the cluster with this control endpoint.
    pub(crate) fn at(self, address: &str, json: bool) -> Self {
        let control = self.control.at(address, json);
        Self { control, ..self }
    }

    /// Rejects an invalid fault, without asking the cluster.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match &self.action {
            FaultAction::Add(add) => add.check().map(|_| ()),
            FaultAction::List | FaultAction::Remove { .. } | FaultAction::Clear => Ok(()),
        }
    }
}

impl AddArgs {
    /// Returns the body of the request, if the fault is valid. The cluster checks it as well; this
    /// needs no cluster.
    fn check(&self) -> anyhow::Result<Value> {
        let body = serde_json::to_value(self)?;
        serde_json::from_value::<Fault>(body.clone()).map_err(usage)?;
        Ok(body)
    }
}

pub(crate) async fn run(args: FaultArgs) -> anyhow::Result<()> {
    let control = args.control;
    match args.action {
        FaultAction::Add(add) => {
            let body = add.check()?;
            let fault = control.call(Method::POST, "/faults", Some(&body)).await?;
            print(&control, &fault, show);
        }
        FaultAction::List => {
            let faults = control.call(Method::GET, "/faults", None).await?;
            print(&control, &faults, |faults| {
                faults.as_array().into_iter().flatten().for_each(show);
            });
        }
        FaultAction::Remove { id } => {
            let path = format!("/faults/{id}");
            let removed = control.call(Method::DELETE, &path, None).await?;
            print(&control, &removed, |_| {});
        }
        FaultAction::Clear => {
            let path = "/faults";
            let cleared = control.call(Method::DELETE, path, Some(&json!({}))).await?;
            print(&control, &cleared, |_| {});
        }
    }
    Ok(())
}

/// Prints a response as JSON, or for people.
fn print(control: &ControlArgs, response: &Value, show: impl Fn(&Value)) {
    match control.json {
        true => line(response),
        false => show(response),
    }
}

fn show(fault: &Value) {
    let rule = fault["rule"].as_str().unwrap_or_default();
    let (fired, seen, seed) = (&fault["fired"], &fault["seen"], &fault["seed"]);
    let text = format!("{rule}    hit {fired} of {seen}    seed {seed}");
    line(format_args!(
        "{:<4} {}",
        fault["id"].to_string(),
        wrapped_on_terminals(&text, 5)
    ));
}

/// Checks an opcode, so that a wrong one gets a suggestion.
fn opcode(text: &str) -> Result<String, String> {
    fault::parse_opcode(text).map(|_| text.to_owned())
}

/// Checks a status like [`opcode`]. The service decides which statuses it has.
fn status(text: &str) -> Result<String, String> {
    fault::parse_status(text).map(|_| text.to_owned())
}

fn parse_service(text: &str) -> Result<Service, String> {
    let known = Service::ALL
        .into_iter()
        .find(|service| service.to_string() == text);
    let names: Vec<String> = Service::ALL.iter().map(ToString::to_string).collect();
    known.ok_or_else(|| suggest::unknown(text, "a service", names.iter().map(|name| &**name)))
}

/// Parses a number between 0 and 1; NaN is rejected.
fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err("a probability is a number between 0 and 1".to_owned()),
    }
}
