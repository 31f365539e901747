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

/// Writes lines to standard error. On a terminal one line is updated in place. Elsewhere a line
/// appears at intervals and covers the time since the one before.
pub struct Lines {
    terminal: bool,
    every: Duration,
    last: Option<Instant>,
    /// The intervals since the last line.
    pending: Option<Sample>,
}

impl Lines {
    /// Creates the display of a run of this length.
    pub fn new(duration: Duration) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            every: (duration / 12).clamp(Duration::from_secs(1), Duration::from_secs(30)),
            last: None,
            pending: None,
        }
    }
}

impl Progress for Lines {
    fn show(&mut self, snapshot: &Snapshot<'_>) {
        let mut sample = snapshot.sample.clone();
        if let Some(mut pending) = self.pending.take() {
            pending.merge(&sample);
            sample = pending;
        }
        if !self.terminal && self.last.is_some_and(|last| last.elapsed() < self.every) {
            self.pending = Some(sample);
            return;
        }
        self.last = Some(Instant::now());
        let line = line(snapshot, &sample);
        let mut out = std::io::stderr().lock();
        // A line that cannot be written is not worth an error.
        let _ = if self.terminal {
            let line: String = line.chars().take(terminal_width()).collect();
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

/// Returns the width of the terminal without the last column, where some terminals wrap.
fn terminal_width() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let width = size.map_or(80, |(width, _)| usize::from(width.0));
    width.max(20) - 1
}

/// Formats the state of a run. What matters most comes first.
fn line(snapshot: &Snapshot<'_>, sample: &Sample) -> String {
    let operations = sample.ok + sample.failed + sample.read_back;
    let mut line = format!(
        "[{}/{}]  {:>7} op/s  p99 {:>8}  retries {:>6}",
        clock(snapshot.now),
        clock(snapshot.duration),
        grouped((operations as f64 / sample.length_s.max(0.001)) as u64),
        sample.p99_ms.map_or_else(|| "–".to_owned(), millis),
        grouped(sample.retries.values().sum()),
    );
    if sample.failed > 0 {
        line += &format!("  failed {}", grouped(sample.failed));
    }
    match &snapshot.fault {
        Some(fault) => line += &format!("  now: {fault}"),
        None if snapshot.ending => line += "  now: reading back",
        None => {}
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

    #[test]
    fn a_line_covers_the_time_since_the_one_before() {
        let sample = Sample {
            length_s: 2.0,
            ok: 990,
            failed: 10,
            p99_ms: Some(3.0),
            ..Sample::default()
        };
        let snapshot = |fault: Option<&str>| Snapshot {
            now: Duration::from_secs(61),
            duration: Duration::from_secs(3600),
            sample: &sample,
            fault: fault.map(str::to_owned),
            ending: true,
        };
        let mut lines = Lines::new(Duration::from_secs(3600));
        lines.terminal = false;
        for _ in 0..3 {
            lines.show(&snapshot(None));
        }
        let pending = lines.pending.unwrap();
        assert_eq!((pending.ok, pending.failed), (2 * 990, 20));
        assert_eq!(
            line(&snapshot(Some("a crash")), &pending),
            "[01:01/1:00:00]      500 op/s  p99  3.00 ms  retries      0  failed 20  now: a crash"
        );
        let text = line(&snapshot(None), &Sample::default());
        assert!(
            text.contains("p99        –") && text.ends_with("now: reading back"),
            "{text}"
        );
    }
}
