//! `steadfast storm`: compares strategies in a simulated outage.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use steadfast_storm::{Candidate, Comparison, FaultSchedule, Simulation};

use crate::duration;
use crate::exit::usage;
use crate::output::line;

/// Simulate what retry strategies do to a service during an outage
///
/// Simulates clients and a faulty service in virtual time, once for each strategy and with
/// the same requests. The clients run the code that decides in production. The service
/// queues, slows down, rejects requests or does not respond.
///
/// The report shows how many requests succeed, how much load each strategy adds while the
/// service is faulty, and how long the fleet needs to recover afterwards.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast storm                                 a brownout, with every strategy
  steadfast storm outage --strategy guidance --strategy best-effort
  steadfast storm unresponsive --rate 500 --attempt-timeout 250ms
  steadfast storm throttling --json

Faults:
  healthy       none
  blip          connections are refused for 1 s
  outage        connections are refused for 20 s
  unresponsive  requests get no response for 20 s
  brownout      requests take three times as long for 20 s
  errors        30 % of the requests fail for 40 s
  throttling    40 % of the capacity is admitted for 20 s, the others wait 2 s

Strategies:
  no-retry     one attempt
  immediate    three attempts without delays: a typical hand-written loop
  best-effort  until the deadline, after 1, 2, 4 … 500 ms (RFC 0049, Couchbase clients)
  guidance     Smithy's guidance: five attempts, full jitter, a budget
  aws-2.0      the AWS SDKs' standard mode before 2.1: three attempts, a budget
  aws-2.1      the AWS SDKs' standard mode, 2.1: three attempts, shorter delays, a budget
  adaptive     guidance with a send rate that adapts to throttling

Columns:
  succeeded        share of all requests that succeeded
  in faults        the same, of the requests that started during the fault
  load in faults   attempts per request during the fault
  peak load        attempts in the busiest second, as a multiple of the arrival rate
  recovered after  time from the end of the fault until 99 % of the requests succeed
  wasted work      share of the service's work for clients that had stopped waiting
  p50, p99         latency of successful requests")]
pub(crate) struct StormArgs {
    /// The fault of the service
    #[arg(
        default_value = "brownout",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(FaultSchedule::all().iter().map(FaultSchedule::name))
    )]
    fault: String,
    /// A strategy to simulate; repeatable [default: all]
    #[arg(
        long = "strategy",
        value_name = "STRATEGY",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(Candidate::all().iter().map(|it| it.name().to_owned()))
    )]
    strategies: Vec<String>,
    /// Number of clients, each with its own budget and send rate
    #[arg(long, default_value_t = 50)]
    clients: u32,
    /// Requests per second that all clients together start
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// Share of idempotent requests, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    idempotent: f64,
    /// Timeout of a request with all its attempts
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    timeout: Duration,
    /// Timeout of one attempt
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    attempt_timeout: Duration,
    /// Network delay in one direction
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = duration::parse)]
    network_delay: Duration,
    /// Number of requests that the service processes at the same time
    #[arg(long, default_value_t = 10)]
    workers: u32,
    /// Mean time that the service works on a request
    #[arg(long, value_name = "DURATION", default_value = "8ms", value_parser = duration::parse)]
    service_time: Duration,
    /// Number of requests that may wait at the service; it throttles the rest
    #[arg(long, value_name = "REQUESTS", default_value_t = 2500)]
    queue_limit: usize,
    /// How long clients start requests, in virtual time; faults start at 20s and end by 60s
    #[arg(long, default_value = "2m", value_parser = duration::parse)]
    duration: Duration,
    /// Seed of arrivals, service times and jitter
    #[arg(long, default_value_t = 4711)]
    seed: u64,
    /// Print JSON, with every second
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: StormArgs) -> anyhow::Result<()> {
    let faults = FaultSchedule::all()
        .into_iter()
        .find(|faults| faults.name() == args.fault)
        .expect("clap accepts only these names");
    let mut candidates = Candidate::all();
    if !args.strategies.is_empty() {
        let named = args.strategies.iter();
        candidates = named.filter_map(|name| Candidate::by_name(name)).collect();
    }
    let simulation = Simulation {
        clients: args.clients,
        arrival_rate: args.rate,
        idempotent: args.idempotent,
        timeout: args.timeout.as_secs_f64(),
        attempt_timeout: args.attempt_timeout.as_secs_f64(),
        network_delay: args.network_delay.as_secs_f64(),
        workers: args.workers,
        service_time: args.service_time.as_secs_f64(),
        queue_limit: args.queue_limit,
        faults,
        duration: args.duration.as_secs_f64(),
        seed: args.seed,
    };
    let summaries = simulation.compare(&candidates).map_err(usage)?;
    let comparison = Comparison::new(&simulation, summaries);
    if args.json {
        line(serde_json::to_string_pretty(&comparison)?);
    } else {
        line(comparison);
    }
    Ok(())
}
