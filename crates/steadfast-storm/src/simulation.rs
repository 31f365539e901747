//! The model: clients, their requests, the network, the service and its faults.

use std::error::Error;
use std::fmt;
use std::thread;

use serde::Serialize;

use crate::candidate::Candidate;
use crate::faults::{FaultEffect, FaultSchedule};
use crate::run::Run;
use crate::summary::Summary;

/// The most requests of a run. More would take minutes and gigabytes without changing
/// the result.
const MAX_REQUESTS: f64 = 20e6;
/// The fewest requests whose shares mean anything.
const MIN_REQUESTS: f64 = 10.0;
/// The most requests that may be open at the same time: some hundred megabytes.
const MAX_OPEN_REQUESTS: f64 = 5e5;
const MAX_CLIENTS: u32 = 100_000;
const MAX_QUEUE: usize = 1_000_000;
const DAY_SECONDS: f64 = 86_400.0;

/// A fleet of clients, the service that it uses, and the service's faults.
///
/// Set the fields as needed; [`Simulation::compare`] rejects invalid combinations.
/// All times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// The number of clients. Each has a strategy of its own.
    pub clients: u32,
    /// The number of requests that all clients together start in a second.
    #[serde(rename = "arrival_rate_per_s")]
    pub arrival_rate: f64,
    /// The share of idempotent requests, from 0 to 1.
    #[serde(rename = "idempotent_share")]
    pub idempotent: f64,
    /// The timeout of a request with all its attempts.
    #[serde(rename = "timeout_s")]
    pub timeout: f64,
    /// The timeout of one attempt.
    #[serde(rename = "attempt_timeout_s")]
    pub attempt_timeout: f64,
    /// The delay of a message in one direction.
    #[serde(rename = "network_delay_s")]
    pub network_delay: f64,
    /// The number of requests that the service processes at the same time.
    pub workers: u32,
    /// The mean time that a worker spends on a request.
    #[serde(rename = "service_time_s")]
    pub service_time: f64,
    /// The most requests that wait for a worker. The service throttles what exceeds it.
    pub queue_limit: usize,
    /// The faults of the service.
    #[serde(rename = "fault_schedule")]
    pub faults: FaultSchedule,
    /// How long clients start requests.
    #[serde(rename = "duration_s")]
    pub duration: f64,
    /// The seed of arrivals, service times and jitter.
    pub seed: u64,
}

impl Default for Simulation {
    /// Fifty clients that use 80 % of the capacity of a healthy service.
    fn default() -> Self {
        Self {
            clients: 50,
            arrival_rate: 1000.0,
            idempotent: 0.8,
            timeout: 5.0,
            attempt_timeout: 1.0,
            network_delay: 0.001,
            workers: 10,
            service_time: 0.008,
            queue_limit: 2500,
            faults: FaultSchedule::healthy(),
            duration: 120.0,
            seed: 4711,
        }
    }
}

impl Simulation {
    /// Replaces the faults.
    #[must_use]
    pub fn with_faults(self, faults: FaultSchedule) -> Self {
        Self { faults, ..self }
    }

    /// Replaces the duration.
    #[must_use]
    pub fn with_duration(self, duration: f64) -> Self {
        Self { duration, ..self }
    }

    /// Replaces the seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Returns the number of requests that the healthy service can process in a second.
    pub fn capacity(&self) -> f64 {
        f64::from(self.workers) / self.service_time
    }

    /// Runs the simulation once for each candidate, with the same requests at the same
    /// times.
    ///
    /// # Errors
    /// If a setting is invalid; the error names it.
    pub fn compare(&self, candidates: &[Candidate]) -> Result<Vec<Summary>, InvalidSimulation> {
        self.check()?;
        Ok(thread::scope(|scope| {
            let runs: Vec<_> = candidates
                .iter()
                .map(|candidate| scope.spawn(|| Run::new(self, candidate).finish()))
                .collect();
            let summaries = runs.into_iter().map(|run| match run.join() {
                Ok(summary) => summary,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            summaries.collect()
        }))
    }

    fn check(&self) -> Result<(), InvalidSimulation> {
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let share = |number: f64| (0.0..=1.0).contains(&number);
        let time = |seconds: f64| positive(seconds) && seconds <= DAY_SECONDS;
        let time_or_zero = |seconds: f64| (0.0..=DAY_SECONDS).contains(&seconds);
        let requests = self.arrival_rate * self.duration;
        let open_requests = self.arrival_rate * self.timeout.min(self.duration);
        #[rustfmt::skip]
        let rules = [
            ((1..=MAX_CLIENTS).contains(&self.clients), "the number of clients must be from 1 to 100000"),
            (positive(self.arrival_rate), "the arrival rate must be above 0"),
            (share(self.idempotent), "the idempotent share must be from 0 to 1"),
            (time(self.timeout), "the timeout must be above 0 s and at most a day"),
            (time(self.attempt_timeout), "the attempt timeout must be above 0 s and at most a day"),
            (time_or_zero(self.network_delay), "the network delay must be from 0 s to a day"),
            (self.workers > 0, "the number of workers must be at least 1"),
            (time(self.service_time), "the service time must be above 0 s and at most a day"),
            (self.queue_limit <= MAX_QUEUE, "the queue limit must be at most 1000000"),
            (time(self.duration), "the duration must be above 0 s and at most a day"),
            (requests <= MAX_REQUESTS, "the run would have more than 20 million requests: lower the rate or the duration"),
            (requests >= MIN_REQUESTS, "the run would have fewer than 10 requests: raise the rate or the duration"),
            (open_requests <= MAX_OPEN_REQUESTS, "more than 500000 requests could be open at once: lower the rate or the timeout"),
        ];
        let faults = self.faults.faults().iter().flat_map(|fault| {
            let in_order = fault.from >= 0.0 && fault.from < fault.until && fault.until.is_finite();
            let effect = match fault.effect {
                FaultEffect::RefuseConnections | FaultEffect::NoResponse => (true, ""),
                FaultEffect::Fail { share: failing } => {
                    (share(failing), "the share of failures must be from 0 to 1")
                }
                FaultEffect::Slow { factor } => (
                    (1.0..=1e6).contains(&factor),
                    "the factor of a slow service must be from 1 to 1000000",
                ),
                FaultEffect::Throttle { share: admitted, hint } => (
                    share(admitted) && time_or_zero(hint.unwrap_or_default()),
                    "a throttled service must admit a share from 0 to 1, with a hint of at most a day",
                ),
            };
            [(in_order, "a fault must end after it starts"), effect]
        });
        let broken = rules.into_iter().chain(faults).find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, problem)| Err(InvalidSimulation(problem)))
    }
}

/// A setting of a simulation that is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSimulation(&'static str);

impl fmt::Display for InvalidSimulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for InvalidSimulation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(Simulation::default().check(), Ok(()));
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        let empty = FaultSchedule::healthy().with(5.0, 5.0, FaultEffect::NoResponse);
        let faster = FaultSchedule::healthy().with(0.0, 1.0, FaultEffect::Slow { factor: 0.5 });
        type Change<'a> = &'a dyn Fn(&mut Simulation);
        let cases: [(Change<'_>, &str); 16] = [
            (&|it| it.clients = 0, "clients"),
            (&|it| it.clients = 1_000_000_000, "clients"),
            (&|it| it.arrival_rate = 1e-25, "fewer than 10"),
            (&|it| it.arrival_rate = f64::NAN, "arrival rate"),
            (&|it| it.arrival_rate = 1e9, "20 million"),
            (
                &|it| (it.arrival_rate, it.timeout) = (50_000.0, 86_400.0),
                "open",
            ),
            (&|it| it.queue_limit = 99_999_999, "queue"),
            (&|it| it.idempotent = 1.5, "idempotent"),
            (&|it| it.timeout = 0.0, "timeout"),
            (&|it| it.attempt_timeout = -1.0, "attempt"),
            (&|it| it.network_delay = f64::INFINITY, "network"),
            (&|it| it.workers = 0, "workers"),
            (&|it| it.service_time = 0.0, "service"),
            (&|it| it.duration = 1e9, "duration"),
            (&|it| it.faults = empty.clone(), "end after"),
            (&|it| it.faults = faster.clone(), "slow"),
        ];
        for (change, word) in cases {
            let mut simulation = Simulation::default();
            change(&mut simulation);
            let error = simulation.check().expect_err(word).to_string();
            assert!(error.contains(word), "{error:?} does not mention {word:?}");
        }
    }
}
