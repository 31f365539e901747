//! Faults: the triggers of a storm, each with its time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::run::nanos;

/// An effect on the service, the network or the load, and when it is active.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceFault {
    /// The start, in seconds.
    #[serde(rename = "from_s")]
    pub from: f64,
    /// The end, in seconds.
    #[serde(rename = "until_s")]
    pub until: f64,
    /// The effect.
    pub effect: FaultEffect,
    /// The share of the endpoints that it affects, from 0 to 1. At least one is affected.
    #[serde(default = "all")]
    pub endpoints: f64,
}

fn all() -> f64 {
    1.0
}

/// An effect of a fault. Effects of the same time combine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum FaultEffect {
    /// Refuses connections: no byte of a request is sent.
    RefuseConnections,
    /// Accepts requests and never responds.
    NoResponse,
    /// Holds messages back in the network and delivers them at the end of the fault, as a
    /// network does that retransmits lost packets.
    Hold,
    /// Processes this share of the requests and responds with an error.
    Fail {
        /// From 0 to 1.
        share: f64,
    },
    /// Multiplies service times by this factor.
    Slow {
        /// At least 1.
        factor: f64,
    },
    /// Admits requests at this share of the service's capacity and throttles the others.
    Throttle {
        /// From 0 to 1.
        share: f64,
        /// When throttled clients shall come back, in seconds, if the service says so.
        #[serde(rename = "hint_s", default)]
        hint: Option<f64>,
    },
    /// Multiplies the rate of new requests by this factor.
    Load {
        /// Above 0.
        factor: f64,
    },
}

impl ServiceFault {
    /// Creates a fault of all endpoints.
    pub const fn new(from: f64, until: f64, effect: FaultEffect) -> Self {
        Self {
            from,
            until,
            effect,
            endpoints: 1.0,
        }
    }

    /// Limits the fault to a share of the endpoints.
    #[must_use]
    pub const fn of_endpoints(mut self, share: f64) -> Self {
        self.endpoints = share;
        self
    }

    /// Returns whether it is active at a time in nanoseconds, at one of a number of endpoints.
    pub(crate) fn affects(&self, now: u64, endpoint: u32, endpoints: u32) -> bool {
        // In nanoseconds, as the times of events are: a message that is held back until the
        // end must not arrive before it.
        let active = nanos(self.from)..nanos(self.until);
        active.contains(&now) && f64::from(endpoint) < self.affected(endpoints)
    }

    pub(crate) fn is_active(&self, seconds: f64) -> bool {
        (self.from..self.until).contains(&seconds)
    }

    fn affected(&self, endpoints: u32) -> f64 {
        (self.endpoints * f64::from(endpoints)).round().max(1.0)
    }

    /// Returns what is wrong with it.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let share = |number: f64| (0.0..=1.0).contains(&number);
        let time = |seconds: f64| (0.0..=86_400.0).contains(&seconds);
        let (valid, problem) = match self.effect {
            FaultEffect::RefuseConnections | FaultEffect::NoResponse | FaultEffect::Hold => {
                (true, "")
            }
            FaultEffect::Fail { share: failing } => {
                (share(failing), "the share of failures must be from 0 to 1")
            }
            FaultEffect::Slow { factor } => (
                (1.0..=1e6).contains(&factor),
                "the factor of a slow service must be from 1 to 1000000",
            ),
            FaultEffect::Throttle {
                share: admitted,
                hint,
            } => (
                share(admitted) && time(hint.unwrap_or_default()),
                "a throttled service must admit a share from 0 to 1, with a hint of at most a day",
            ),
            FaultEffect::Load { factor } => (
                factor > 0.0 && factor <= 1000.0,
                "the factor of the load must be above 0 and at most 1000",
            ),
        };
        let in_order = self.from >= 0.0 && self.from < self.until && time(self.until);
        if !in_order {
            Some("a fault must end after it starts, within a day")
        } else if !share(self.endpoints) {
            Some("the share of endpoints must be from 0 to 1")
        } else {
            (!valid).then_some(problem)
        }
    }
}

impl fmt::Display for ServiceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = (short(self.from), short(self.until));
        write!(f, "{}, from {from} s to {until} s", self.effect)?;
        if self.endpoints < 1.0 {
            write!(f, ", at {:.0} % of the endpoints", self.endpoints * 100.0)?;
        }
        Ok(())
    }
}

impl fmt::Display for FaultEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefuseConnections => f.write_str("connections are refused"),
            Self::NoResponse => f.write_str("no responses"),
            Self::Hold => f.write_str("messages are held back"),
            Self::Fail { share } => write!(f, "{:.0} % of the requests fail", share * 100.0),
            Self::Slow { factor } => write!(f, "requests take {} times as long", short(*factor)),
            Self::Throttle { share, hint } => {
                let percent = share * 100.0;
                write!(f, "throttled to {percent:.0} % of the capacity")?;
                match hint {
                    Some(hint) => write!(f, ", rejected clients wait {hint} s"),
                    None => Ok(()),
                }
            }
            Self::Load { factor } => write!(f, "{} times the load", short(*factor)),
        }
    }
}

/// Rounds a number for people.
fn short(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, Scenario};

    /// Ends that are not a whole number of nanoseconds in binary, among others.
    fn ends() -> impl Iterator<Item = f64> {
        (11..400).map(|tenths| f64::from(tenths) / 10.0 * 1.000_000_001)
    }

    #[test]
    fn a_fault_is_over_at_the_time_to_which_messages_are_held_back() {
        for until in ends() {
            let fault = ServiceFault::new(1.0, until, FaultEffect::Hold);
            let end = nanos(until);
            assert!(fault.affects(end - 1, 0, 1), "{until}");
            assert!(!fault.affects(end, 0, 1), "{until}");
        }
    }

    /// A message that was held back once more at the end was held back for ever.
    #[test]
    fn held_messages_are_delivered_whenever_the_fault_ends() {
        for until in ends().take(40) {
            let mut scenario = Scenario::default()
                .with_clients(1)
                .with_fault(ServiceFault::new(1.0, until, FaultEffect::Hold))
                .with_duration(2.0);
            scenario.rate = 20.0;
            scenario.clients.timeout = Some(10.0);
            scenario.clients.attempt_timeout = Some(10.0);
            let run = scenario.run(&Policy::no_retry(), 1).expect("it is valid");
            assert_eq!(run.succeeded, run.requests, "{until}");
        }
    }
}
