//! `steadfast storm`: what a policy does to a fleet in an outage.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use steadfast_storm::{Policy, Report, Storm, Weather};

use crate::duration;
use crate::exit::usage;
use crate::output::line;

/// See what a retry policy does to a fleet in an outage, in virtual time
///
/// Simulates clients that send requests to a service in trouble, once under each policy, with
/// the same requests. The clients run the very code that decides in production; the service
/// queues, slows down, refuses or falls silent. Shows how many requests succeed, how much more
/// load the policy puts on the service when it is least able to bear it, and how long after the
/// trouble everything works again, if ever.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast storm                                 a brownout, under every policy
  steadfast storm outage --policy guidance --policy best-effort
  steadfast storm silence --rate 500 --attempt-timeout 250ms
  steadfast storm throttling --json

Policies:
  fail-fast    no retries
  at-once      three attempts one right after the other, as a loop of a few lines has it
  best-effort  until the deadline, after 1, 2, 4 … 500 ms (RFC 0049; Couchbase clients, also as
               fast-fail, which differs only where waiting does not help)
  guidance     Smithy's guidance: five attempts, full jitter, a budget
  aws-2.0      the AWS SDKs' standard mode before 2.1: three attempts, a budget
  aws-2.1      the AWS SDKs' standard mode, 2.1: three attempts, shorter delays, a budget
  adaptive     guidance with a send rate that follows the throttling

In the table: 'in trouble' is the share of the requests begun then that succeeded; 'load then'
the attempts for each request while it lasted; 'back after' how long after the trouble it took
until 99 of 100 requests succeed again; 'work for nobody' the share of the service's work
for requests whose client had stopped waiting.")]
pub(crate) struct Arguments {
    /// What befalls the service
    #[arg(default_value = "brownout", value_parser = PossibleValuesParser::new(weathers()))]
    weather: String,
    /// A policy to run under; may be given more than once [default: all]
    #[arg(long = "policy", value_parser = PossibleValuesParser::new(Policy::NAMES))]
    policies: Vec<String>,
    /// How many clients there are, each with a budget and a send rate of its own
    #[arg(long, default_value_t = 50)]
    clients: u32,
    /// How many requests all of them begin in a second
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// The share of the requests that are idempotent, from 0 to 1
    #[arg(long, default_value_t = 0.8)]
    idempotent: f64,
    /// How long a request may take
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    timeout: Duration,
    /// How long an attempt may take
    #[arg(long, default_value = "1s", value_parser = duration::parse)]
    attempt_timeout: Duration,
    /// How long a message is on its way
    #[arg(long, default_value = "1ms", value_parser = duration::parse)]
    network: Duration,
    /// How many requests the service works on at a time
    #[arg(long, default_value_t = 10)]
    workers: u32,
    /// How long it works on one, in the mean
    #[arg(long, default_value = "8ms", value_parser = duration::parse)]
    service_time: Duration,
    /// How many requests may wait there before it says that it is busy
    #[arg(long, default_value_t = 2500)]
    queue: usize,
    /// How long requests are begun, in virtual time; troubles are from 20s to 60s at most
    #[arg(long, default_value = "2m", value_parser = duration::parse)]
    duration: Duration,
    /// Decides arrivals, service times and jitter
    #[arg(long, default_value_t = 4711)]
    seed: u64,
    /// For machines, with every second
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut weathers = Weather::all().into_iter();
    let weather = weathers
        .find(|weather| weather.name() == arguments.weather)
        .expect("clap lets only these names through");
    let mut names = arguments.policies;
    if names.is_empty() {
        names.extend(Policy::NAMES.map(str::to_owned));
    }
    let policies: Vec<_> = names
        .iter()
        .filter_map(|name| Policy::named(name))
        .collect();
    let storm = Storm {
        clients: arguments.clients,
        rate: arguments.rate,
        idempotent: arguments.idempotent,
        timeout: arguments.timeout.as_secs_f64(),
        attempt_timeout: arguments.attempt_timeout.as_secs_f64(),
        network: arguments.network.as_secs_f64(),
        workers: arguments.workers,
        service_time: arguments.service_time.as_secs_f64(),
        queue: arguments.queue,
        weather,
        length: arguments.duration.as_secs_f64(),
        seed: arguments.seed,
    };
    let outcomes = storm.compare(&policies).map_err(usage)?;
    let report = Report::new(&storm, outcomes);
    if arguments.json {
        line(serde_json::to_string_pretty(&report)?);
    } else {
        line(report);
    }
    Ok(())
}

fn weathers() -> Vec<&'static str> {
    Weather::all().iter().map(Weather::name).collect()
}
