//! Plan of a run: every decision that the seed makes, as an explicit list.
//!
//! A failing plan is shrunk by removing entries from it, which a seed alone does not allow.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::network_fault::NetworkFault;

/// What a run does. The seed determines the workload and the cluster's faults; the other fields
/// start as the seed's choice and can be changed one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The seed.
    pub seed: u64,
    /// The length of the schedule of faults, in virtual milliseconds.
    pub duration_ms: u64,
    /// When the run ends early, in virtual milliseconds.
    #[serde(default)]
    pub stop_after_ms: Option<u64>,
    /// How many operations are under way at a time.
    pub workers: u16,
    /// Operations per second.
    pub rate: u32,
    /// The timeout of an operation, in milliseconds.
    pub timeout_ms: u64,
    /// The number of nodes at the start.
    pub nodes: usize,
    /// Whether connections use TLS. No seed chooses it: the keys of TLS come from the kernel, so
    /// its bytes differ from run to run.
    pub tls: bool,
    /// The shortest time of travel, in microseconds.
    pub latency_us: u64,
    /// The most that is added to it, in microseconds.
    pub jitter_us: u64,
    /// Faults of the network.
    pub network_faults: Vec<NetworkFault>,
    /// Faults of the cluster's schedule that are left out, by their index.
    #[serde(default)]
    pub left_out: Vec<usize>,
}

impl RunPlan {
    /// Returns the plan of a seed.
    pub fn new(seed: u64, duration: Duration, rate: u32) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5172_0b5e_55ed_c0de);
        let faults = random.usize(..=10);
        let network_faults = std::iter::repeat_with(|| NetworkFault::draw(&mut random, duration));
        let mut network_faults: Vec<_> = network_faults.take(faults).collect();
        network_faults.sort_by_key(|fault| fault.at_ms);
        Self {
            seed,
            duration_ms: duration.as_millis() as u64,
            stop_after_ms: None,
            workers: *random.choice(&[2, 4, 8, 16, 32]).unwrap_or(&8),
            rate,
            timeout_ms: random.u64(200..2500),
            nodes: random.usize(1..=4),
            tls: false,
            latency_us: random.u64(..1500),
            jitter_us: random.u64(..1500),
            network_faults,
            left_out: Vec::new(),
        }
    }
}

impl fmt::Display for RunPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.stop_after_ms.unwrap_or(self.duration_ms);
        writeln!(
            f,
            "seed {}: {} workers, {} operations/s for {length} ms, timeout {} ms, {} nodes{}",
            self.seed,
            self.workers,
            self.rate,
            self.timeout_ms,
            self.nodes,
            if self.tls { ", TLS" } else { "" }
        )?;
        for fault in &self.network_faults {
            writeln!(f, "  {fault}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_depends_on_its_seed_and_survives_json() {
        let plan = |seed| RunPlan::new(seed, Duration::from_secs(20), 500);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7).network_faults, plan(8).network_faults);
        let json = serde_json::to_string(&plan(7)).unwrap();
        assert_eq!(serde_json::from_str::<RunPlan>(&json).unwrap(), plan(7));
    }

    #[test]
    fn network_faults_are_over_before_the_run_settles() {
        for seed in 0..500 {
            let plan = RunPlan::new(seed, Duration::from_secs(20), 500);
            let last = |fault: &NetworkFault| fault.at_ms + fault.lasts_ms;
            assert!(plan.network_faults.iter().all(|fault| last(fault) < 18_000));
        }
    }
}
