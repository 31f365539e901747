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

/// Shows a line on standard error: one that is written again and again on a terminal, and else
/// one now and then, and for each act.
pub struct Lines {
    terminal: bool,
    memory: bool,
    every: Duration,
    last: Option<Instant>,
    last_act: Option<String>,
}

impl Lines {
    /// For whoever reads standard error; with the memory of the process if so asked.
    pub fn new(duration: Duration, memory: bool) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            memory,
            every: (duration / 12).clamp(Duration::from_secs(1), Duration::from_secs(20)),
            last: None,
            last_act: None,
        }
    }

    fn is_due(&mut self, moment: &Moment<'_>) -> bool {
        let new_act = moment.act.is_some() && moment.act != self.last_act;
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
        if !self.is_due(moment) {
            return;
        }
        let line = line(moment, self.memory, self.terminal);
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

fn line(moment: &Moment<'_>, memory: bool, bar: bool) -> String {
    let sample = moment.sample;
    let rate = (sample.ok + sample.failed) as f64 / sample.length.max(0.001);
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
    if let (true, Some(resident)) = (memory, sample.resident) {
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
