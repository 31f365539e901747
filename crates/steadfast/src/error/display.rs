//! The error as text: one line, or the history with `{:#}`.

use std::fmt;
use std::time::Duration;

use super::Error;
use crate::failure::{Failure, Stage};
use crate::report::{AttemptRecord, Outcome, Report};

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report();
        headline(f, report)?;
        if f.alternate() {
            history(f, report)
        } else {
            summary(f, report)
        }?;
        match (self.raised(), self.last_error()) {
            (Some(raised), _) => tail(f, raised),
            (None, Some(last)) => tail(f, last),
            (None, None) => Ok(()),
        }
    }
}

fn headline(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let (request, verdict) = (report.request(), report.verdict());
    if !request.service().is_empty() {
        write!(f, "{} ", request.service())?;
    }
    write!(f, "{} {verdict}", request.operation())?;
    if let (true, Some(elapsed)) = (verdict.is_timeout(), report.elapsed()) {
        write!(f, " after {}", Time(elapsed))?;
    }
    if verdict.is_ambiguous() {
        f.write_str(", may have been applied")
    } else if !request.is_idempotent() && surely_not_applied(report) {
        f.write_str(", was not applied")
    } else {
        Ok(())
    }
}

/// An error answer does not prove by itself that nothing was done; only what
/// was never sent, and reasons that say so, do. Attempts before the last one
/// were retried, so they prove it.
fn surely_not_applied(report: &Report) -> bool {
    report
        .history()
        .last()
        .is_none_or(|record| match record.failure.stage {
            Stage::NotSent => true,
            Stage::InFlight | Stage::Inconclusive => false,
            Stage::Responded => record.failure.reason.allows_non_idempotent_retry(),
        })
}

fn summary(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let attempts = report.attempts();
    write!(
        f,
        ": {attempts} attempt{}",
        if attempts == 1 { "" } else { "s" }
    )?;
    for (reason, times) in report.all_reasons().counted() {
        match times {
            1 => write!(f, ", {reason}")?,
            _ => write!(f, ", {reason} ×{times}")?,
        }
    }
    if let Some(peer) = report
        .history()
        .records()
        .rev()
        .find_map(|record| record.failure.peer())
    {
        write!(f, "; last node {peer}")?;
    }
    if let Some(refusal) = report.refusal() {
        write!(f, "; not retried: {}", refusal.cause())?;
    }
    Ok(())
}

fn history(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let idempotent = if report.request().is_idempotent() {
        "idempotent"
    } else {
        "not idempotent"
    };
    write!(f, "\n  strategy  {}   {idempotent}", report.strategy())?;
    let history = report.history();
    for (place, record) in history.records().enumerate() {
        if place == history.before_the_gap() {
            write!(
                f,
                "
  …     {} more",
                history.omitted()
            )?;
        }
        line(f, record)?;
    }
    Ok(())
}

fn line(f: &mut fmt::Formatter<'_>, record: &AttemptRecord) -> fmt::Result {
    let AttemptRecord {
        attempt,
        times,
        since,
        at,
        failure,
        outcome,
    } = record;
    let Failure {
        stage,
        reason,
        hint,
        ..
    } = failure;
    let (peer, note) = (failure.peer(), failure.note());
    match times {
        1 => write!(f, "\n  #{attempt:<3} {:>8}  ", Time(*at).to_string())?,
        _ => {
            let first = attempt - (times - 1);
            write!(f, "\n  #{first} to #{attempt}  ")?;
            write!(f, "{} to {}  ", Time(*since), Time(*at))?;
        }
    }
    if let Some(peer) = peer {
        write!(f, "{peer}  ")?;
    }
    match note {
        Some(note) => write!(f, "{note}  ")?,
        None => write!(f, "{stage}  ")?,
    }
    match times {
        1 => write!(f, "{reason}  ")?,
        _ => write!(f, "{reason} ×{times}  ")?,
    }
    if let Some(hint) = hint {
        write!(f, "asked for {}  ", Time(*hint))?;
    }
    match outcome {
        Outcome::Retry {
            delay,
            capped: false,
        } if *times > 1 => write!(f, "the last retry in {}", Time(*delay)),
        Outcome::Retry {
            delay,
            capped: false,
        } => write!(f, "retry in {}", Time(*delay)),
        Outcome::Retry {
            delay,
            capped: true,
        } => {
            write!(
                f,
                "the deadline came {} later, before the retry",
                Time(*delay)
            )
        }
        Outcome::Refused(cause) => write!(f, "not retried: {cause}"),
        Outcome::Undecided => f.write_str("undecided"),
    }
}

fn tail(f: &mut fmt::Formatter<'_>, error: &dyn fmt::Display) -> fmt::Result {
    if f.alternate() {
        write!(f, "\n  error     {error}")
    } else {
        write!(f, ": {error}")
    }
}

impl Report {
    /// For an error of one's own that has said what happened: attempts,
    /// reasons, the last peer, in the rest of its line.
    pub fn in_short(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| summary(f, self))
    }

    /// The same as lines: the strategy, and what became of each attempt.
    pub fn in_full(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| history(f, self))
    }
}

/// A duration as people write it: `2.50 s`, `3 ms`.
pub(crate) struct Time(pub(crate) Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match nanos {
            0 => f.write_str("0 ms"),
            1..1_000 => write!(f, "{nanos} ns"),
            1_000..1_000_000 => write!(f, "{} µs", nanos / 1_000),
            1_000_000..1_000_000_000 if nanos.is_multiple_of(1_000_000) || nanos >= 10_000_000 => {
                write!(f, "{} ms", nanos / 1_000_000)
            }
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3),
            _ => write!(f, "{:.2} s", self.0.as_secs_f64()),
        }
    }
}
