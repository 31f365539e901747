//! A fleet and the service that it depends on.

use std::error::Error;
use std::fmt;
use std::thread;

use serde::Serialize;

use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::run::Run;
use crate::weather::{Trouble, Weather};

/// The most requests that a run may have, all policies alike: more than this would take
/// minutes and gigabytes to say the same.
const MOST_REQUESTS: f64 = 20e6;
/// The fewest that say anything.
const FEWEST_REQUESTS: f64 = 10.0;
/// The most that may be under way at a time: some hundred megabytes.
const MOST_UNDER_WAY: f64 = 5e5;
const MOST_CLIENTS: u32 = 100_000;
const LONGEST_QUEUE: usize = 1_000_000;

/// A fleet, a service and the weather. The fields are what one turns; [`Storm::compare`]
/// says if they do not fit together.
#[derive(Clone, Debug, Serialize)]
pub struct Storm {
    /// How many clients there are. Each has a strategy of its own.
    pub clients: u32,
    /// How many requests all clients together begin in a second.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// The share of the requests that are idempotent, from 0 to 1.
    #[serde(rename = "idempotent_share")]
    pub idempotent: f64,
    /// How long a request may take, in seconds.
    #[serde(rename = "timeout_s")]
    pub timeout: f64,
    /// How long an attempt may take.
    #[serde(rename = "attempt_timeout_s")]
    pub attempt_timeout: f64,
    /// How long a message is on its way.
    #[serde(rename = "network_s")]
    pub network: f64,
    /// How many requests the service works on at a time.
    pub workers: u32,
    /// How long it works on one, in the mean.
    #[serde(rename = "service_time_s")]
    pub service_time: f64,
    /// How many requests may wait there. When it is full, the service says that it is busy.
    pub queue: usize,
    /// What befalls the service.
    pub weather: Weather,
    /// How long requests are begun.
    #[serde(rename = "duration_s")]
    pub length: f64,
    /// Decides arrivals, service times and jitter.
    pub seed: u64,
}

impl Default for Storm {
    /// Fifty clients ask for four fifths of what the service can do, and nothing happens.
    fn default() -> Self {
        Self {
            clients: 50,
            rate: 1000.0,
            idempotent: 0.8,
            timeout: 5.0,
            attempt_timeout: 1.0,
            network: 0.001,
            workers: 10,
            service_time: 0.008,
            queue: 2500,
            weather: Weather::calm(),
            length: 120.0,
            seed: 4711,
        }
    }
}

impl Storm {
    /// The same in this weather.
    #[must_use]
    pub fn in_weather(self, weather: Weather) -> Self {
        Self { weather, ..self }
    }

    /// The same for so many seconds.
    #[must_use]
    pub fn lasting(self, length: f64) -> Self {
        Self { length, ..self }
    }

    /// The same with other dice.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// What the service can do in a second, when nothing is the matter.
    pub fn capacity(&self) -> f64 {
        f64::from(self.workers) / self.service_time
    }

    /// Runs the same storm under each policy: the same requests arrive at the same times.
    ///
    /// # Errors
    /// If the numbers do not make a storm, and which.
    pub fn compare(&self, policies: &[Policy]) -> Result<Vec<Outcome>, Unfit> {
        self.check()?;
        Ok(thread::scope(|scope| {
            let runs: Vec<_> = policies
                .iter()
                .map(|policy| scope.spawn(|| Run::new(self, policy).finish()))
                .collect();
            let outcomes = runs.into_iter().map(|run| match run.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            outcomes.collect()
        }))
    }

    fn check(&self) -> Result<(), Unfit> {
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let share = |number: f64| (0.0..=1.0).contains(&number);
        let unless = |fits: bool, problem: &'static str| match fits {
            true => Ok(()),
            false => Err(Unfit(problem)),
        };
        let day = |seconds: f64| seconds <= 86_400.0;
        let time = |seconds: f64| positive(seconds) && day(seconds);
        unless(
            (1..=MOST_CLIENTS).contains(&self.clients),
            "there are 1 to 100000 clients",
        )?;
        unless(positive(self.rate), "the rate must be a number above 0")?;
        unless(
            share(self.idempotent),
            "the idempotent share is from 0 to 1",
        )?;
        unless(time(self.timeout), "the timeout is above 0 s, up to a day")?;
        unless(
            time(self.attempt_timeout),
            "the attempt timeout is above 0 s, up to a day",
        )?;
        unless(
            self.network >= 0.0 && day(self.network),
            "the network delay is 0 s or more, up to a day",
        )?;
        unless(
            self.workers > 0,
            "there must be at least one of the workers",
        )?;
        unless(
            time(self.service_time),
            "the service time is above 0 s, up to a day",
        )?;
        unless(
            self.queue <= LONGEST_QUEUE,
            "the queue has room for a million at most",
        )?;
        unless(time(self.length), "the duration is above 0 s, up to a day")?;
        let requests = self.rate * self.length;
        unless(
            requests <= MOST_REQUESTS,
            "this would be more than 20 million requests: take a lower rate or a shorter duration",
        )?;
        unless(
            requests >= FEWEST_REQUESTS,
            "this would be fewer than 10 requests: take a higher rate or a longer duration",
        )?;
        unless(
            self.rate * self.timeout.min(self.length) <= MOST_UNDER_WAY,
            "more than 500000 requests could be under way: take a lower rate or a shorter timeout",
        )?;
        self.weather.spells().iter().try_for_each(|spell| {
            let in_order = spell.from >= 0.0 && spell.from < spell.until && spell.until.is_finite();
            unless(in_order, "a trouble must end after it begins")?;
            match spell.trouble {
                Trouble::Refusing | Trouble::Silent => Ok(()),
                Trouble::Failing { share: failing } => {
                    unless(share(failing), "the share of failures is from 0 to 1")
                }
                Trouble::Slow { factor } => unless(
                    (1.0..=1e6).contains(&factor),
                    "what is slow takes 1 to a million times as long",
                ),
                Trouble::Throttling {
                    share: let_in,
                    hint,
                } => {
                    unless(share(let_in), "the share that is let in is from 0 to 1")?;
                    let hint = hint.unwrap_or_default();
                    unless(
                        (0.0..=86_400.0).contains(&hint),
                        "a hint is from 0 s to a day",
                    )
                }
            }
        })
    }
}

/// Why there can be no such storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit(&'static str);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Unfit {}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(storm: Storm) -> Option<String> {
        storm.check().err().map(|unfit| unfit.to_string())
    }

    #[test]
    fn numbers_that_make_no_storm_are_told() {
        assert_eq!(problem(Storm::default()), None);
        let base = Storm::default;
        for (storm, word) in [
            (
                Storm {
                    clients: 0,
                    ..base()
                },
                "client",
            ),
            (
                Storm {
                    clients: 1_000_000_000,
                    ..base()
                },
                "client",
            ),
            (
                Storm {
                    rate: 1e-25,
                    ..base()
                },
                "fewer than 10",
            ),
            (
                Storm {
                    rate: 50_000.0,
                    timeout: 86_400.0,
                    ..base()
                },
                "under way",
            ),
            (
                Storm {
                    queue: 99_999_999,
                    ..base()
                },
                "queue",
            ),
            (
                Storm {
                    rate: f64::NAN,
                    ..base()
                },
                "rate",
            ),
            (
                Storm {
                    idempotent: 1.5,
                    ..base()
                },
                "idempotent",
            ),
            (
                Storm {
                    timeout: 0.0,
                    ..base()
                },
                "timeout",
            ),
            (
                Storm {
                    attempt_timeout: -1.0,
                    ..base()
                },
                "attempt",
            ),
            (
                Storm {
                    network: f64::INFINITY,
                    ..base()
                },
                "network",
            ),
            (
                Storm {
                    workers: 0,
                    ..base()
                },
                "worker",
            ),
            (
                Storm {
                    service_time: 0.0,
                    ..base()
                },
                "service",
            ),
            (
                Storm {
                    length: 1e9,
                    ..base()
                },
                "day",
            ),
            (
                Storm {
                    rate: 1e9,
                    ..base()
                },
                "20 million",
            ),
            (
                base().in_weather(Weather::calm().with(5.0, 5.0, Trouble::Silent)),
                "end after",
            ),
            (
                base().in_weather(Weather::calm().with(0.0, 1.0, Trouble::Slow { factor: 0.5 })),
                "slow",
            ),
        ] {
            let found = problem(storm).unwrap_or_default();
            assert!(found.contains(word), "{found:?} does not speak of {word:?}");
        }
    }
}
