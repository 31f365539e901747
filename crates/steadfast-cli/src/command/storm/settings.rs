//! The flags that choose scenarios and policies.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use steadfast_storm::{Distribution, Policy, Scenario, scenarios};

use crate::duration;

/// The policies of a comparison without flags: one of each kind.
const DEFAULT: [&str; 11] = [
    "no-retry",
    "immediate",
    "full-jitter",
    "grpc",
    "finagle-budget",
    "linkerd",
    "guidance",
    "aws-2.1",
    "adaptive",
    "load-aware",
    "fleet",
];

#[derive(Args)]
pub(super) struct PolicyArgs {
    /// A policy to simulate; repeatable [default: one of each kind]
    #[arg(
        long = "policy",
        visible_alias = "strategy",
        value_name = "POLICY",
        value_parser = PossibleValuesParser::new(Policy::all().iter().map(|it| it.name().to_owned()))
    )]
    named: Vec<String>,
    /// Simulate all policies
    #[arg(long)]
    all_policies: bool,
}

impl PolicyArgs {
    pub(super) fn policies(&self) -> Vec<Policy> {
        let chosen = |name: &str| {
            if self.all_policies {
                true
            } else if self.named.is_empty() {
                DEFAULT.contains(&name)
            } else {
                self.named.iter().any(|named| named == name)
            }
        };
        let all = Policy::all().into_iter();
        all.filter(|policy| chosen(policy.name())).collect()
    }
}

/// The scenario and changes to it. A setting that is not given keeps the scenario's value.
#[derive(Args)]
pub(super) struct ScenarioArgs {
    /// The scenario
    #[arg(
        default_value = "brownout",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(names())
    )]
    scenario: String,
    /// Numbers of clients, each with its own budget and send rate
    #[arg(long, value_delimiter = ',', value_name = "N,N,…", default_values_t = [50, 1000, 10_000])]
    pub(super) clients: Vec<u32>,
    /// Requests per second that all clients together start [default: 1000]
    #[arg(long)]
    rate: Option<f64>,
    /// Skew of the clients' rates; with 2, the busiest eighth sends half of the requests
    /// [default: 0, all are equal]
    #[arg(long)]
    skew: Option<f64>,
    /// Share of idempotent requests, from 0 to 1 [default: 0.8]
    #[arg(long, value_name = "SHARE")]
    idempotent: Option<f64>,
    /// The most attempts of a request, whatever the policy allows
    #[arg(long)]
    attempts: Option<u32>,
    /// Timeout of a request with all its attempts [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Timeout of one attempt [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    attempt_timeout: Option<Duration>,
    /// Network delay in one direction [default: 1ms]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    network_delay: Option<Duration>,
    /// Number of requests that an endpoint processes at the same time [default: 10]
    #[arg(long)]
    workers: Option<u32>,
    /// Mean time that the service works on a request [default: 8ms]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    service_time: Option<Duration>,
    /// Number of requests that may wait at an endpoint; it throttles the rest [default: 2500]
    #[arg(long, value_name = "REQUESTS")]
    queue_limit: Option<usize>,
    /// How long clients start requests, in virtual time; faults start at 20s and end by 60s
    /// [default: 2m]
    #[arg(long, value_parser = duration::parse)]
    duration: Option<Duration>,
}

fn names() -> Vec<String> {
    let all = scenarios::all().into_iter();
    all.map(|scenario| scenario.name).collect()
}

impl ScenarioArgs {
    /// Returns the scenario.
    pub(super) fn scenario(&self) -> Scenario {
        let mut scenario =
            scenarios::by_name(&self.scenario).expect("clap accepts only these names");
        let seconds = |time: Duration| time.as_secs_f64();
        set(&mut scenario.rate, self.rate);
        let clients = &mut scenario.clients;
        set(&mut clients.skew, self.skew);
        set(&mut clients.idempotent, self.idempotent);
        set(&mut clients.attempts, self.attempts);
        set(&mut clients.timeout, self.timeout.map(seconds).map(Some));
        let attempt_timeout = self.attempt_timeout.map(seconds);
        set(&mut clients.attempt_timeout, attempt_timeout.map(Some));
        let delay = self.network_delay.map(seconds);
        set(
            &mut scenario.network_delay,
            delay.map(Distribution::Constant),
        );
        let service = &mut scenario.service;
        set(&mut service.workers, self.workers);
        let time = self.service_time.map(seconds);
        set(
            &mut service.service_time,
            time.map(Distribution::Exponential),
        );
        set(&mut service.queue_limit, self.queue_limit.map(Some));
        set(&mut scenario.duration, self.duration.map(seconds));
        scenario
    }
}

fn set<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}
