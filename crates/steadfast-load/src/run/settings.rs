//! How a run is to be.

use std::time::Duration;

use crate::embedded::Embedded;

/// The longest that one script lasts. A longer run plays one after the other, so that a crash
/// does not last for minutes.
const ROUND: Duration = Duration::from_secs(40);

/// The least time after its end in which a write may still be applied.
const LATE: Duration = Duration::from_secs(15);

/// How long after the end documents are read back, at least. In a cluster of the user's there is
/// less time for it, because they are also removed, and both together take half a minute.
const READ_BACK: Duration = Duration::from_secs(30);
const READ_BACK_GIVEN: Duration = Duration::from_secs(20);

/// How a run is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Decides the workload and the script.
    pub seed: u64,
    /// How long operations are begun.
    pub duration: Duration,
    /// How many workers there are, each with one operation under way.
    pub concurrency: u16,
    /// How many operations all workers together begin in a second; as many as they can without.
    pub rate: Option<u32>,
    /// How long an operation may take.
    pub timeout: Duration,
    /// How many nodes an embedded cluster has.
    pub nodes: usize,
    /// What the client is called in the report.
    pub client: String,
    /// What the strategy is called in the report.
    pub strategy: String,
    /// The command that repeats the run.
    pub replay: String,
}

/// What the workload runs against.
pub enum Target {
    /// A cluster in this process, with a journal and a calamity.
    Embedded(Embedded),
    /// A cluster of the user's, by its address, without either.
    Given(String),
}

impl Settings {
    /// How long a worker waits from one step to the next.
    pub(super) fn pace(&self) -> Option<Duration> {
        let rate = self.rate?.max(1);
        Some(Duration::from_secs(1) * u32::from(self.concurrency) / rate)
    }

    /// How long after its end a write may still be applied. A server works on a durable write
    /// for as long as its client waits for it, which is twice the timeout; the rest is for
    /// whatever is slow besides.
    pub(super) fn late(&self) -> Duration {
        (self.timeout * 2 + Duration::from_secs(5)).max(LATE)
    }

    /// How long after the end documents are read back.
    pub(super) fn patience(&self, target: &Target) -> Duration {
        let least = match target {
            Target::Embedded(_) => READ_BACK,
            Target::Given(_) => READ_BACK_GIVEN,
        };
        self.late().max(least)
    }

    /// How long an interval of the timeline is.
    pub(super) fn interval(&self) -> Duration {
        let shortest = Duration::from_millis(100);
        (self.duration / 150).clamp(shortest, Duration::from_secs(1))
    }

    /// How many scripts are played, and how long each is.
    pub fn rounds(&self) -> (u32, Duration) {
        let rounds = self.duration.as_secs_f64() / ROUND.as_secs_f64();
        let rounds = rounds.ceil().clamp(1.0, f64::from(u32::MAX)) as u32;
        (rounds, self.duration / rounds)
    }
}

impl Target {
    /// The cluster in this process, if it is one.
    pub fn embedded(&self) -> Option<&Embedded> {
        match self {
            Self::Embedded(embedded) => Some(embedded),
            Self::Given(_) => None,
        }
    }

    /// What all keys start with: something that nobody else uses, in a bucket of the user's.
    pub fn prefix(&self, seed: u64) -> String {
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
            seed: 1,
            duration: Duration::from_secs(seconds),
            concurrency: 100,
            rate: Some(1000),
            timeout: Duration::from_secs(1),
            nodes: 3,
            client: String::new(),
            strategy: String::new(),
            replay: String::new(),
        }
    }

    #[test]
    fn a_long_run_plays_one_script_after_the_other_and_each_is_another() {
        assert_eq!(settings(30).rounds(), (1, Duration::from_secs(30)));
        let long = settings(3600);
        assert_eq!(long.rounds(), (90, Duration::from_secs(40)));
        assert_ne!(long.script(0), long.script(1));
        assert_eq!(long.script(7), long.script(7));
    }

    #[test]
    fn a_write_is_waited_for_longer_than_the_longest_timeout() {
        assert_eq!(settings(1).late(), LATE);
        let patient = Settings {
            timeout: Duration::from_secs(60),
            ..settings(1)
        };
        assert!(patient.late() > patient.timeout * 2);
    }

    #[test]
    fn all_workers_together_keep_to_the_rate() {
        assert_eq!(settings(1).pace(), Some(Duration::from_millis(100)));
    }
}
