//! The error as text: one line, or the history with `{:#}`.

use std::fmt;
use std::time::Duration;

use super::Error;
use crate::failure::Stage;
use crate::reason::Reason;
use crate::report::{AttemptRecord, Outcome, Report, Verdict};
use crate::strategy::{Cause, Refusal};

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

/// An error response alone does not prove that nothing was applied. A request that was
/// never sent does, and so does a reason that says so. Earlier attempts were retried,
/// so their failures proved it.
fn surely_not_applied(report: &Report) -> bool {
    if report.ended_by_response() {
        return false;
    }
    let Some(last) = report.history().last() else {
        return true;
    };
    match last.failure.stage {
        Stage::NotSent => true,
        Stage::InFlight | Stage::Inconclusive => false,
        Stage::Responded => last.failure.proves_not_applied(),
    }
}

fn counted(f: &mut fmt::Formatter<'_>, reason: &Reason, times: u32) -> fmt::Result {
    match times {
        1 => write!(f, "{reason}"),
        _ => write!(f, "{reason} ×{times}"),
    }
}

fn summary(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    if report.verdict() == Verdict::Shed {
        write!(f, ": {}, nothing was sent", Cause::Shed)?;
        return try_again(f, report.refusal().and_then(Refusal::delay));
    }
    let attempts = report.attempts();
    let plural = if attempts == 1 { "" } else { "s" };
    write!(f, ": {attempts} attempt{plural}")?;
    for (reason, times) in report.all_reasons().counted() {
        f.write_str(", ")?;
        counted(f, reason, times)?;
    }
    let mut newest_first = report.history().records().rev();
    if let Some(peer) = newest_first.find_map(|record| record.failure.peer()) {
        write!(f, "; last node {peer}")?;
    }
    if let Some(refusal) = report.refusal() {
        write!(f, "; not retried: {}", refusal.cause())?;
        if let (Cause::Deadline, Some(delay)) = (refusal.cause(), refusal.delay()) {
            write!(f, ", it would have waited {}", Time(delay))?;
        }
        if refusal.cause() == Cause::Shed {
            try_again(f, refusal.delay())?;
        }
    }
    Ok(())
}

fn try_again(f: &mut fmt::Formatter<'_>, delay: Option<Duration>) -> fmt::Result {
    match delay {
        Some(delay) => write!(f, "; try again in {}", Time(delay)),
        None => Ok(()),
    }
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
            write!(f, "\n  …     {} more", history.omitted())?;
        }
        line(f, record)?;
    }
    Ok(())
}

fn line(f: &mut fmt::Formatter<'_>, record: &AttemptRecord) -> fmt::Result {
    let (attempt, times, failure) = (record.attempt, record.times, &record.failure);
    let at = Time(record.at);
    if attempt == 0 {
        write!(
            f,
            "\n  –    {:>8}  {}  {}",
            at.to_string(),
            failure.stage,
            failure.reason
        )?;
        return try_again(f, failure.hint);
    }
    if times == 1 {
        write!(f, "\n  #{attempt:<3} {:>8}  ", at.to_string())?;
    } else {
        let (first, since) = (attempt - (times - 1), Time(record.since));
        write!(f, "\n  #{first} to #{attempt}  {since} to {at}  ")?;
    }
    outcome(f, record, "  ")
}

/// Shows how an attempt failed, and what was decided.
fn outcome(f: &mut fmt::Formatter<'_>, record: &AttemptRecord, gap: &str) -> fmt::Result {
    let failure = &record.failure;
    if let Some(peer) = failure.peer() {
        write!(f, "{peer}{gap}")?;
    }
    match failure.note() {
        Some(note) => write!(f, "{note}{gap}")?,
        None => write!(f, "{}{gap}", failure.stage)?,
    }
    counted(f, failure.reason, record.times)?;
    f.write_str(gap)?;
    if let Some(hint) = failure.hint {
        write!(f, "asked for {}{gap}", Time(hint))?;
    }
    decided(f, record)
}

fn decided(f: &mut fmt::Formatter<'_>, record: &AttemptRecord) -> fmt::Result {
    match record.outcome {
        Outcome::Retry { delay, capped } => {
            let delay = Time(delay);
            match (capped, record.times) {
                (true, _) => write!(f, "the deadline came {delay} later, before the retry"),
                (false, 1) => write!(f, "retry in {delay}"),
                (false, _) => write!(f, "the last retry in {delay}"),
            }
        }
        Outcome::Refused(cause) => write!(f, "not retried: {cause}"),
        Outcome::Undecided => f.write_str("undecided"),
    }
}

/// Shows the attempts: on one line, or on one line each with `{:#}`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            write!(f, "{} {}", self.request().operation(), self.verdict())?;
            return history(f, self);
        }
        let records = self.history();
        for (place, record) in records.records().enumerate() {
            f.write_str(if place == 0 { "" } else { "; " })?;
            if place == records.before_the_gap() {
                write!(f, "… {} more; ", records.omitted())?;
            }
            let (attempt, at) = (record.attempt, Time(record.at));
            match record.times {
                1 => write!(f, "attempt {attempt} after {at}: ")?,
                times => write!(
                    f,
                    "attempts {} to {attempt} until {at}: ",
                    attempt - (times - 1)
                )?,
            }
            outcome(f, record, ", ")?;
        }
        match records.is_empty() {
            true => write!(f, "no failed attempt"),
            false => Ok(()),
        }
    }
}

/// Ends the text with the error of the last attempt. With `{:#}`, many errors show their
/// causes, and `anyhow` does so on one line.
fn tail(f: &mut fmt::Formatter<'_>, error: &dyn fmt::Display) -> fmt::Result {
    let full = format!("{error:#}");
    if f.alternate() {
        write!(f, "\n  error     {full}")
    } else if full.contains('\n') {
        write!(f, ": {error}")
    } else {
        write!(f, ": {full}")
    }
}

impl Report {
    /// Returns attempts, reasons and the last peer, to end the line of another error.
    pub fn in_short(&self) -> impl fmt::Display + '_ {
        Lines(self, summary)
    }

    /// Returns one line for the strategy and one for each attempt.
    pub fn in_full(&self) -> impl fmt::Display + '_ {
        Lines(self, history)
    }
}

/// A part of a report, as text.
struct Lines<'a>(
    &'a Report,
    fn(&mut fmt::Formatter<'_>, &Report) -> fmt::Result,
);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(f, self.0)
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
