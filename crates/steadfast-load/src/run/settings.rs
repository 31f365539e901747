//! Settings of a run.

use std::time::Duration;

use steadfast_cluster::fault::Schedule;

use crate::embedded::Embedded;
use crate::faults::{ScheduledFault, schedule};

/// The longest schedule. A longer run plays several, so that no fault lasts for minutes.
const ROUND: Duration = Duration::from_secs(40);

/// The shortest time after its end in which a write may still be applied.
const LATE: Duration = Duration::from_secs(15);

/// The shortest time for reading back after the end. It is shorter with a given cluster, because
/// reading and removing together may take half a minute.
const READ_BACK: Duration = Duration::from_secs(30);
const READ_BACK_GIVEN: Duration = Duration::from_secs(20);

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Determines the workload and the schedule of faults.
    pub seed: u64,
    /// How long workers begin operations.
    pub duration: Duration,
    /// The number of workers, each with one operation under way at most.
    pub concurrency: u16,
    /// The operations that begin per second, whatever became of those before. If none, every
    /// worker begins an operation when its last one has ended.
    pub rate: Option<u32>,
    /// The timeout of an operation.
    pub timeout: Duration,
    /// The number of nodes of an embedded cluster.
    pub nodes: usize,
    /// Whether the connections to an embedded cluster use TLS.
    pub tls: bool,
    /// Faults that the schedule leaves out, by their index. A simulation shrinks a run with it.
    pub left_out: Vec<usize>,
    /// Whether operations must be as fast as before while the cluster holds others of their
    /// connection. Faults that the run does not know of, such as those of a network, slow them too.
    pub neighbours: bool,
    /// The name of the client, for the report.
    pub client: String,
    /// The name of the retry strategy, for the report.
    pub strategy: String,
    /// The command that repeats the run.
    pub replay: String,
}

impl Default for Settings {
    /// Half a minute on three nodes, with the seed 0.
    fn default() -> Self {
        Self {
            seed: 0,
            duration: Duration::from_secs(30),
            concurrency: 128,
            rate: None,
            timeout: Duration::from_millis(2500),
            nodes: 3,
            tls: false,
            left_out: Vec::new(),
            neighbours: true,
            client: "steadfast-couchbase".to_owned(),
            strategy: "default".to_owned(),
            replay: String::new(),
        }
    }
}

/// The cluster that the workload runs against.
pub enum Target {
    /// A cluster in this process, with a journal and faults.
    Embedded(Embedded),
    /// An existing cluster, by its address, without either.
    Given(String),
}

impl Settings {
    /// Returns how long after its end a write may still be applied. A server works on a durable
    /// write for as long as its client waits, which is twice the timeout; the rest is reserve.
    pub(super) fn late(&self) -> Duration {
        (self.timeout * 2 + Duration::from_secs(5)).max(LATE)
    }

    /// Returns how long after the end documents are read back.
    pub(super) fn read_back_time(&self, target: &Target) -> Duration {
        let least = match target {
            Target::Embedded(_) => READ_BACK,
            Target::Given(_) => READ_BACK_GIVEN,
        };
        self.late().max(least)
    }

    /// Returns how long operations began, in a run that ended at this time.
    pub(crate) fn load_time(&self, ended: Duration) -> Duration {
        match self.rate {
            Some(_) => ended.min(self.duration),
            None => ended,
        }
    }

    /// Returns the length of an interval of the timeline.
    pub(super) fn interval(&self) -> Duration {
        let shortest = Duration::from_millis(100);
        (self.duration / 150).clamp(shortest, Duration::from_secs(1))
    }

    /// Returns the number of schedules, and the length of each.
    pub(super) fn rounds(&self) -> (u32, Duration) {
        let rounds = self.duration.as_secs_f64() / ROUND.as_secs_f64();
        let rounds = rounds.ceil().clamp(1.0, f64::from(u32::MAX)) as u32;
        (rounds, self.duration / rounds)
    }

    /// Returns the schedule of a round.
    pub(super) fn schedule(&self, round: u32) -> Schedule<ScheduledFault> {
        let (_, length) = self.rounds();
        let seed = self.seed.wrapping_add(u64::from(round));
        let cluster = (self.nodes, self.tls);
        let all = schedule(seed, length, cluster, self.timeout);
        let mut kept = Schedule::default();
        for (index, (at, fault)) in all.iter().enumerate() {
            if !self.left_out.contains(&index) {
                let in_order = kept.push(*at, fault.clone());
                debug_assert!(in_order, "they were in order before");
            }
        }
        kept
    }
}

impl Target {
    pub(crate) fn embedded(&self) -> Option<&Embedded> {
        match self {
            Self::Embedded(embedded) => Some(embedded),
            Self::Given(_) => None,
        }
    }

    /// Returns the prefix of all keys of a run, which is unique in an existing cluster.
    pub fn key_prefix(&self, seed: u64) -> String {
        match self {
            Self::Embedded(_) => String::new(),
            Self::Given(_) => format!("steadfast:load:{seed:x}:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(seconds: u64) -> Settings {
        Settings {
            duration: Duration::from_secs(seconds),
            concurrency: 100,
            rate: Some(1000),
            timeout: Duration::from_secs(1),
            ..Settings::default()
        }
    }

    #[test]
    fn a_long_run_plays_several_schedules_and_each_is_different() {
        assert_eq!(settings(30).rounds(), (1, Duration::from_secs(30)));
        let long = settings(3600);
        assert_eq!(long.rounds(), (90, Duration::from_secs(40)));
        assert_ne!(long.schedule(0), long.schedule(1));
        assert_eq!(long.schedule(7), long.schedule(7));
    }

    #[test]
    fn a_write_may_be_late_by_more_than_the_longest_timeout() {
        assert_eq!(settings(1).late(), LATE);
        let patient = Settings {
            timeout: Duration::from_secs(60),
            ..settings(1)
        };
        assert!(patient.late() > patient.timeout * 2);
    }
}
