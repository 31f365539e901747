//! The times at which requests start.

use fastrand::Rng;

use super::{SECOND, nanos};
use crate::model::{FaultEffect, Scenario, exponential};

/// Draws when requests start, and what they are.
pub(super) struct ArrivalTimes {
    rng: Rng,
    rate: f64,
    duration: f64,
    clients: u32,
    skew: f64,
    /// The number of clients that send half of the requests: they have the first numbers.
    busiest: f64,
    idempotent: f64,
    endpoints: u32,
    /// The factors of the load, with the time at which each begins.
    loads: Vec<(f64, f64)>,
    over: bool,
}

/// A request, as its user starts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub(super) client: u32,
    pub(super) endpoint: u32,
    pub(super) idempotent: bool,
}

impl ArrivalTimes {
    pub(super) fn new(scenario: &Scenario, rng: Rng) -> Self {
        let clients = &scenario.clients;
        Self {
            rng,
            rate: scenario.rate,
            duration: scenario.duration,
            clients: clients.count,
            skew: clients.skew,
            busiest: f64::from(clients.count) * 0.5_f64.powf(1.0 + clients.skew),
            idempotent: clients.idempotent,
            endpoints: scenario.service.endpoints,
            loads: loads(scenario),
            over: false,
        }
    }

    /// Draws the time of the next request. None after the last one.
    pub(super) fn next(&mut self, now: u64) -> Option<u64> {
        let mut at = now as f64 / SECOND;
        loop {
            let (factor, until) = self.load(at);
            let next = at + exponential(&mut self.rng, 1.0 / (self.rate * factor));
            if next < until {
                at = next;
                break;
            }
            // Arrivals have no memory: at the new rate, the draw starts again.
            at = until;
            if at >= self.duration {
                break;
            }
        }
        self.over = at >= self.duration;
        (!self.over).then(|| nanos(at))
    }

    /// Draws who starts a request, and what it is.
    pub(super) fn started(&mut self) -> Started {
        // The power of a uniform number is skewed, and costs no table.
        let share = self.rng.f64().powf(1.0 + self.skew);
        let client = (share * f64::from(self.clients)) as u32;
        let idempotent = self.rng.f64() < self.idempotent;
        let endpoint = match self.endpoints {
            1 => 0,
            endpoints => self.rng.u32(..endpoints),
        };
        Started {
            client,
            endpoint,
            idempotent,
        }
    }

    /// Returns whether a client is not one of the busiest, which send half of the requests.
    pub(super) fn is_quiet(&self, client: u32) -> bool {
        f64::from(client) >= self.busiest
    }

    pub(super) fn are_over(&self) -> bool {
        self.over
    }

    /// Returns the factor of the load, and until when it holds.
    fn load(&self, at: f64) -> (f64, f64) {
        let next = self.loads.partition_point(|(from, _)| *from <= at);
        let until = self
            .loads
            .get(next)
            .map_or(self.duration, |(from, _)| *from);
        (self.loads[next - 1].1, until.min(self.duration))
    }
}

/// Returns the factors of the load in the order of time. The first begins at 0.
fn loads(scenario: &Scenario) -> Vec<(f64, f64)> {
    let triggers = || {
        scenario
            .faults
            .iter()
            .filter_map(|fault| match fault.effect {
                FaultEffect::Load { factor } => Some((fault, factor)),
                _ => None,
            })
    };
    let mut edges: Vec<f64> = triggers()
        .flat_map(|(fault, _)| [fault.from, fault.until])
        .chain([0.0])
        .collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let factor_at = |at: f64| {
        let active = triggers().filter(|(fault, _)| fault.is_active(at));
        active.map(|(_, factor)| factor).product::<f64>()
    };
    edges.into_iter().map(|at| (at, factor_at(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServiceFault;

    #[test]
    fn a_load_fault_multiplies_the_arrivals_of_its_time_only() {
        let scenario = Scenario {
            rate: 1000.0,
            duration: 30.0,
            ..Scenario::default()
        };
        let scenario = scenario.with_fault(ServiceFault::new(
            10.0,
            20.0,
            FaultEffect::Load { factor: 3.0 },
        ));
        let mut arrivals = ArrivalTimes::new(&scenario, Rng::with_seed(1));
        let mut counts = [0u32; 3];
        let mut now = 0;
        while let Some(next) = arrivals.next(now) {
            counts[(next / 10_000_000_000) as usize] += 1;
            now = next;
        }
        assert!(arrivals.are_over());
        for (count, expected) in counts.into_iter().zip([10_000, 30_000, 10_000]) {
            let deviations = (f64::from(count) - f64::from(expected)) / f64::from(expected).sqrt();
            assert!(deviations.abs() < 4.0, "{count}, expected {expected}");
        }
    }

    #[test]
    fn skewed_clients_send_most_of_the_requests() {
        let mut scenario = Scenario::default().with_clients(1000);
        scenario.clients.skew = 2.0;
        let mut arrivals = ArrivalTimes::new(&scenario, Rng::with_seed(1));
        let busiest = (0..10_000)
            .filter(|_| arrivals.started().client < 100)
            .count();
        assert!((4500..4800).contains(&busiest), "{busiest} of 10000");
    }
}
