//! What one sees while it runs.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::measure::Sample;
use crate::report::{grouped, millis};

/// Shows how a run goes.
pub trait Progress: Send {
    /// Shows a moment of the run.
    fn show(&mut self, moment: &Moment<'_>);
    /// The run is over.
    fn done(&mut self) {}
}

/// A moment of the run.
pub struct Moment<'a> {
    /// When it is.
    pub now: Duration,
    /// How long the run lasts.
    pub duration: Duration,
    /// The last interval.
    pub sample: &'a Sample,
    /// What befalls the cluster.
    pub act: Option<String>,
    /// Whether no more operations are begun.
    pub ending: bool,
}

/// Shows nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn show(&mut self, _: &Moment<'_>) {}
}

/// The longest run of which each act gets a line of its own. Of a longer one they would be all
/// that one sees.
const SHORT: Duration = Duration::from_secs(120);

/// Shows a line on standard error: one that is written again and again on a terminal, and else
/// one now and then, about all since the one before; of a short run also one for each act.
pub struct Lines {
    terminal: bool,
    memory: bool,
    /// Whether each act gets a line.
    acts: bool,
    every: Duration,
    last: Option<Instant>,
    last_act: Option<String>,
    /// What was not shown yet.
    unseen: Option<Sample>,
}

impl Lines {
    /// For whoever reads standard error; with the memory of the process if so asked.
    pub fn new(duration: Duration, memory: bool) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            memory,
            acts: duration <= SHORT,
            every: (duration / 12).clamp(Duration::from_secs(1), Duration::from_secs(30)),
            last: None,
            last_act: None,
            unseen: None,
        }
    }

    fn is_due(&mut self, moment: &Moment<'_>) -> bool {
        let new_act = self.acts && moment.act.is_some() && moment.act != self.last_act;
        self.last_act.clone_from(&moment.act);
        let due = self.last.is_none_or(|last| last.elapsed() >= self.every);
        if self.terminal || due || new_act {
            self.last = Some(Instant::now());
            return true;
        }
        false
    }
}

impl Progress for Lines {
    fn show(&mut self, moment: &Moment<'_>) {
        let due = self.is_due(moment);
        let sample = match self.unseen.take() {
            Some(mut unseen) => {
                unseen.merge(moment.sample);
                unseen
            }
            None => moment.sample.clone(),
        };
        if !due {
            self.unseen = Some(sample);
            return;
        }
        let line = line(moment, &sample, self.memory, self.terminal);
        let mut out = std::io::stderr().lock();
        // Whoever does not read it misses nothing that the report does not say.
        let _ = if self.terminal {
            write!(out, "\r\x1b[2K{line}").and_then(|()| out.flush())
        } else {
            writeln!(out, "{line}")
        };
    }

    fn done(&mut self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

fn line(moment: &Moment<'_>, sample: &Sample, memory: bool, bar: bool) -> String {
    let rate = (sample.ok + sample.failed) as f64 / sample.length_s.max(0.001);
    let retries: u64 = sample.retries.values().sum();
    let mut line = format!("[{}/{}] ", clock(moment.now), clock(moment.duration));
    if bar {
        let share = moment.now.as_secs_f64() / moment.duration.as_secs_f64().max(0.001);
        let filled = (share.min(1.0) * 20.0) as usize;
        line += &format!("{}{} ", "█".repeat(filled), "░".repeat(20 - filled));
    }
    line += &format!(
        "{:>7} op/s   p99 {:>8}   in flight {:>3}   retries {:>6}",
        grouped(rate as u64),
        millis(sample.p99_ms),
        sample.in_flight,
        grouped(retries),
    );
    if sample.failed > 0 {
        line += &format!("   failed {}", grouped(sample.failed));
    }
    if let (true, Some(resident)) = (memory, sample.resident_bytes) {
        line += &format!("   memory {} MB", resident >> 20);
    }
    match (&moment.act, moment.ending) {
        (Some(act), _) => line += &format!("   now: {act}"),
        (None, true) => line += "   now: reading back",
        (None, false) => {}
    }
    line
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{:02}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment<'a>(sample: &'a Sample, act: &str) -> Moment<'a> {
        Moment {
            now: Duration::from_secs(61),
            duration: Duration::from_secs(3600),
            sample,
            act: Some(act.to_owned()),
            ending: false,
        }
    }

    #[test]
    fn a_long_run_has_a_line_now_and_then_and_a_short_one_for_each_act() {
        let sample = Sample::default();
        let (first, second) = (moment(&sample, "a"), moment(&sample, "b"));
        for (duration, each_act) in [(30, true), (3600, false)] {
            let mut lines = Lines::new(Duration::from_secs(duration), false);
            lines.terminal = false;
            assert!(lines.is_due(&first));
            assert!(!lines.is_due(&first));
            assert_eq!(lines.is_due(&second), each_act, "{duration}");
        }
    }

    #[test]
    fn a_line_is_about_the_whole_time_since_the_one_before() {
        let sample = Sample {
            length_s: 2.0,
            ok: 990,
            failed: 10,
            p99_ms: 3.0,
            resident_bytes: Some(7 << 20),
            ..Sample::default()
        };
        let mut lines = Lines::new(Duration::from_secs(3600), true);
        lines.terminal = false;
        lines.show(&moment(&sample, "a"));
        lines.show(&moment(&sample, "a"));
        lines.show(&moment(&sample, "b"));
        let unseen = lines.unseen.unwrap();
        assert_eq!((unseen.ok, unseen.failed), (2 * 990, 20));
        let text = line(&moment(&sample, "a"), &unseen, true, false);
        assert_eq!(
            text,
            "[01:01/1:00:00]     500 op/s   p99  3.00 ms   in flight   0   retries      0   \
             failed 20   memory 7 MB   now: a"
        );
    }
}
