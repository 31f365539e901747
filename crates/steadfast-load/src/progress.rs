//! Progress display of a run.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::measure::Sample;
use crate::report::{grouped, millis};

/// Shows the progress of a run.
pub trait Progress: Send {
    /// Shows the state of the run after an interval.
    fn show(&mut self, snapshot: &Snapshot<'_>);
    /// Ends the display.
    fn done(&mut self) {}
}

/// The state of the run after an interval.
pub struct Snapshot<'a> {
    pub(crate) now: Duration,
    /// The planned duration of the run.
    pub(crate) duration: Duration,
    pub(crate) sample: &'a Sample,
    /// The active fault.
    pub(crate) fault: Option<String>,
    /// Whether workers begin no more operations.
    pub(crate) ending: bool,
}

impl Snapshot<'_> {
    /// Returns the fault that is active now.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

/// Shows nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn show(&mut self, _: &Snapshot<'_>) {}
}

/// The longest run that gets a line for each fault.
const SHORT: Duration = Duration::from_secs(120);

/// Writes lines to standard error. On a terminal one line is updated in place. Elsewhere a line
/// appears at intervals and covers the time since the one before; a short run also gets one for
/// each fault.
pub struct Lines {
    terminal: bool,
    memory: bool,
    /// Whether each fault gets a line.
    faults: bool,
    every: Duration,
    last: Option<Instant>,
    last_fault: Option<String>,
    /// The intervals since the last line.
    pending: Option<Sample>,
}

impl Lines {
    /// Creates the display, optionally with the memory of the process.
    pub fn new(duration: Duration, memory: bool) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            memory,
            faults: duration <= SHORT,
            every: (duration / 12).clamp(Duration::from_secs(1), Duration::from_secs(30)),
            last: None,
            last_fault: None,
            pending: None,
        }
    }

    fn is_due(&mut self, snapshot: &Snapshot<'_>) -> bool {
        let new_fault =
            self.faults && snapshot.fault.is_some() && snapshot.fault != self.last_fault;
        self.last_fault.clone_from(&snapshot.fault);
        let due = self.last.is_none_or(|last| last.elapsed() >= self.every);
        if self.terminal || due || new_fault {
            self.last = Some(Instant::now());
            return true;
        }
        false
    }
}

impl Progress for Lines {
    fn show(&mut self, snapshot: &Snapshot<'_>) {
        let due = self.is_due(snapshot);
        let sample = match self.pending.take() {
            Some(mut pending) => {
                pending.merge(snapshot.sample);
                pending
            }
            None => snapshot.sample.clone(),
        };
        if !due {
            self.pending = Some(sample);
            return;
        }
        let width = self.terminal.then(terminal_width);
        let line = line(snapshot, &sample, self.memory, width);
        let mut out = std::io::stderr().lock();
        // A line that cannot be written is not worth an error.
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

/// The width of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;

/// The width of the terminal, without the last column, where some terminals wrap.
fn terminal_width() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let width = size.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
    width.max(20) - 1
}

/// Formats the state of a run. If that is longer than `width`, leaves out what matters least.
fn line(snapshot: &Snapshot<'_>, sample: &Sample, memory: bool, width: Option<usize>) -> String {
    let rate = (sample.ok + sample.failed + sample.read_back) as f64 / sample.length_s.max(0.001);
    let retries: u64 = sample.retries.values().sum();
    let share = snapshot.now.as_secs_f64() / snapshot.duration.as_secs_f64().max(0.001);
    let filled = (share.min(1.0) * 20.0) as usize;
    let left = snapshot.duration.saturating_sub(snapshot.now);
    let p99 = sample.p99_ms.map_or_else(|| "–".to_owned(), millis);
    let now = match (&snapshot.fault, snapshot.ending) {
        (Some(fault), _) => Some(format!("now: {fault}")),
        (None, true) => Some("now: reading back".to_owned()),
        (None, false) => None,
    };
    let resident = sample.resident_bytes.filter(|_| memory);
    // In the order of the line, each with its rank: the highest is left out first.
    let mut parts: Vec<(u8, String)> = [
        (
            0,
            Some(format!(
                "[{}/{}]",
                clock(snapshot.now),
                clock(snapshot.duration)
            )),
        ),
        (
            8,
            width.map(|_| format!("{}{}", "█".repeat(filled), "░".repeat(20 - filled))),
        ),
        (
            2,
            (!snapshot.ending && !left.is_zero()).then(|| format!("{} left", clock(left))),
        ),
        (1, Some(format!("{:>7} op/s", grouped(rate as u64)))),
        (3, Some(format!("p99 {p99:>8}"))),
        (7, Some(format!("in flight {:>3}", sample.in_flight))),
        (5, Some(format!("retries {:>6}", grouped(retries)))),
        (
            4,
            (sample.failed > 0).then(|| format!("failed {}", grouped(sample.failed))),
        ),
        (
            9,
            resident.map(|bytes| format!("memory {} MB", bytes >> 20)),
        ),
        (6, now),
    ]
    .into_iter()
    .filter_map(|(rank, text)| Some((rank, text?)))
    .collect();
    let joined = |parts: &[(u8, String)]| {
        let texts: Vec<&str> = parts.iter().map(|(_, text)| &**text).collect();
        texts.join("  ")
    };
    while let Some(width) = width
        && parts.len() > 1
        && joined(&parts).chars().count() > width
    {
        let last = parts.iter().map(|(rank, _)| *rank).max();
        parts.retain(|(rank, _)| Some(*rank) != last);
    }
    joined(&parts)
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

    fn snapshot<'a>(sample: &'a Sample, fault: &str) -> Snapshot<'a> {
        Snapshot {
            now: Duration::from_secs(61),
            duration: Duration::from_secs(3600),
            sample,
            fault: Some(fault.to_owned()),
            ending: false,
        }
    }

    #[test]
    fn a_short_run_gets_a_line_for_each_fault_and_a_long_one_does_not() {
        let sample = Sample::default();
        let (first, second) = (snapshot(&sample, "a"), snapshot(&sample, "b"));
        for (duration, each_fault) in [(30, true), (3600, false)] {
            let mut lines = Lines::new(Duration::from_secs(duration), false);
            lines.terminal = false;
            assert!(lines.is_due(&first));
            assert!(!lines.is_due(&first));
            assert_eq!(lines.is_due(&second), each_fault, "{duration}");
        }
    }

    #[test]
    fn a_line_covers_the_time_since_the_one_before() {
        let sample = Sample {
            length_s: 2.0,
            ok: 990,
            failed: 10,
            p99_ms: Some(3.0),
            resident_bytes: Some(7 << 20),
            ..Sample::default()
        };
        let mut lines = Lines::new(Duration::from_secs(3600), true);
        lines.terminal = false;
        lines.show(&snapshot(&sample, "a"));
        lines.show(&snapshot(&sample, "a"));
        lines.show(&snapshot(&sample, "b"));
        let pending = lines.pending.unwrap();
        assert_eq!((pending.ok, pending.failed), (2 * 990, 20));
        let text = line(&snapshot(&sample, "a"), &pending, true, None);
        assert_eq!(
            text,
            "[01:01/1:00:00]  58:59 left      500 op/s  p99  3.00 ms  in flight   0  \
             retries      0  failed 20  memory 7 MB  now: a"
        );
    }

    #[test]
    fn a_line_fits_the_terminal_and_keeps_what_matters_most() {
        let sample = Sample {
            length_s: 1.0,
            ok: 123_456,
            failed: 7,
            p99_ms: Some(3.0),
            resident_bytes: Some(7 << 20),
            retries: [("A".to_owned(), 1234)].into(),
            ..Sample::default()
        };
        let snapshot = snapshot(&sample, "node 2 crashed and was failed over");
        let at = |width| line(&snapshot, &sample, true, Some(width));
        for width in [20, 39, 60, 79, 99, 119, 199] {
            let text = at(width);
            assert!(text.chars().count() <= width, "{width}: {text}");
            assert!(text.starts_with("[01:01/1:00:00]"), "{width}: {text}");
        }
        assert_eq!(
            at(79),
            "[01:01/1:00:00]  58:59 left  123 463 op/s  p99  3.00 ms  failed 7"
        );
        let wide = at(199);
        for part in ["░", "memory 7 MB", "in flight", "now: node 2"] {
            assert!(wide.contains(part), "{part}: {wide}");
        }
    }

    #[test]
    fn an_interval_without_operations_has_no_latency() {
        let sample = Sample::default();
        let text = line(&snapshot(&sample, "a"), &sample, false, None);
        assert!(text.contains("p99        –"), "{text}");
    }
}
