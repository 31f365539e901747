//! Rejection of invalid scenarios.

use std::error::Error;
use std::fmt;

use super::Scenario;

/// The most requests of a run. More would take minutes and gigabytes without changing
/// the result.
const MAX_REQUESTS: f64 = 20e6;
/// The fewest requests whose shares mean anything.
const MIN_REQUESTS: f64 = 10.0;
/// The most requests that may be open at the same time: some hundred megabytes.
const MAX_OPEN_REQUESTS: f64 = 5e5;
const MAX_CLIENTS: u32 = 2_000_000;
const DAY_SECONDS: f64 = 86_400.0;

/// A setting of a scenario that is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidScenario(&'static str);

impl fmt::Display for InvalidScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for InvalidScenario {}

impl Scenario {
    /// Checks every setting.
    ///
    /// # Errors
    /// If a setting is invalid; the error names it.
    pub fn check(&self) -> Result<(), InvalidScenario> {
        let Self {
            clients, service, ..
        } = self;
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let share = |number: f64| (0.0..=1.0).contains(&number);
        let time = |seconds: f64| positive(seconds) && seconds <= DAY_SECONDS;
        let maybe_time = |seconds: Option<f64>| seconds.is_none_or(time);
        let requests = self.rate * self.duration;
        let open_requests = self.rate * clients.timeout.unwrap_or(0.0).min(self.duration);
        #[rustfmt::skip]
        let rules = [
            ((1..=MAX_CLIENTS).contains(&clients.count), "the number of clients must be from 1 to 2000000"),
            ((0.0..=10.0).contains(&clients.skew), "the skew of the clients must be from 0 to 10"),
            (positive(self.rate), "the arrival rate must be above 0"),
            (share(clients.idempotent), "the idempotent share must be from 0 to 1"),
            (maybe_time(clients.timeout), "the timeout must be above 0 s and at most a day"),
            (maybe_time(clients.attempt_timeout), "the attempt timeout must be above 0 s and at most a day"),
            (clients.attempts > 0, "the most attempts must be at least 1"),
            (self.network_delay.is_valid(), "the network delay must be from 0 s to a day"),
            (service.workers > 0, "the number of workers must be at least 1"),
            ((1..=10_000).contains(&service.endpoints), "the number of endpoints must be from 1 to 10000"),
            (service.service_time.is_valid(), "the service time must be from 0 s to a day"),
            (service.contention.is_none_or(positive), "the contention must be above 0 requests"),
            (service.queue_limit.is_none_or(|limit| limit <= 1_000_000), "the queue limit must be at most 1000000"),
            (time(self.duration), "the duration must be above 0 s and at most a day"),
            (requests <= MAX_REQUESTS, "the run would have more than 20 million requests: lower the rate or the duration"),
            (requests >= MIN_REQUESTS, "the run would have fewer than 10 requests: raise the rate or the duration"),
            (open_requests <= MAX_OPEN_REQUESTS, "more than 500000 requests could be open at once: lower the rate or the timeout"),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        let problem = broken.map(|(_, problem)| problem);
        match problem.or_else(|| self.faults.iter().find_map(|fault| fault.problem())) {
            Some(problem) => Err(InvalidScenario(problem)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Distribution, FaultEffect, Scenario, ServiceFault};

    #[test]
    fn the_default_is_valid() {
        assert_eq!(Scenario::default().check(), Ok(()));
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        let fault = |from, until, effect| vec![ServiceFault::new(from, until, effect)];
        type Change<'a> = &'a dyn Fn(&mut Scenario);
        let cases: [(Change<'_>, &str); 18] = [
            (&|it| it.clients.count = 0, "clients"),
            (&|it| it.clients.count = 1_000_000_000, "clients"),
            (&|it| it.rate = 1e-25, "fewer than 10"),
            (&|it| it.rate = f64::NAN, "arrival rate"),
            (&|it| it.rate = 1e9, "20 million"),
            (
                &|it| {
                    it.rate = 50_000.0;
                    it.clients.timeout = Some(86_400.0);
                },
                "open",
            ),
            (&|it| it.service.queue_limit = Some(99_999_999), "queue"),
            (&|it| it.clients.idempotent = 1.5, "idempotent"),
            (&|it| it.clients.timeout = Some(0.0), "timeout"),
            (&|it| it.clients.attempt_timeout = Some(-1.0), "attempt"),
            (&|it| it.clients.attempts = 0, "attempts"),
            (
                &|it| it.network_delay = Distribution::Constant(f64::INFINITY),
                "network",
            ),
            (&|it| it.service.workers = 0, "workers"),
            (
                &|it| it.service.service_time = Distribution::Exponential(-1.0),
                "service",
            ),
            (&|it| it.duration = 1e9, "duration"),
            (
                &|it| it.faults = fault(5.0, 5.0, FaultEffect::NoResponse),
                "end after",
            ),
            (
                &|it| it.faults = fault(0.0, 1.0, FaultEffect::Slow { factor: 0.5 }),
                "slow",
            ),
            (
                &|it| it.faults = fault(0.0, 1.0, FaultEffect::Load { factor: 0.0 }),
                "load",
            ),
        ];
        for (change, word) in cases {
            let mut scenario = Scenario::default();
            change(&mut scenario);
            let error = scenario.check().expect_err(word).to_string();
            assert!(error.contains(word), "{error:?} does not mention {word:?}");
        }
    }
}
