//! The report of an audit: for people, as JSON, and as a page.

mod html;
mod text;

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::cases::{Applied, AuditCase, RequestKind};
use crate::command::{ClientEnd, ExitCause};
use crate::journal::HttpArrival;
use crate::judge::{CaseRun, Rating, judge};
use crate::probe::Probe;
use crate::run::{AuditError, AuditSettings};

/// The result of an audit.
#[derive(Clone, Debug, Serialize)]
pub struct AuditReport {
    /// The version of the format.
    pub format: u32,
    /// The command.
    pub command: String,
    /// The protocol, such as HTTP/2 with TLS.
    pub protocol: String,
    /// How long a command was watched after its first request.
    #[serde(rename = "limit_seconds", serialize_with = "seconds")]
    pub limit: Duration,
    /// The kinds of requests that the command sent.
    pub kinds: Vec<String>,
    /// The cases, in the order of the table.
    pub cases: Vec<CaseReport>,
    /// The parts of names that chose the cases; without any, all ran.
    pub only: Vec<String>,
    /// What was not audited, and why.
    pub unseen: Vec<UnseenPart>,
    /// The exit status after a successful response, for each kind.
    #[serde(skip)]
    healthy_ends: Vec<(String, ClientEnd)>,
}

/// The result of a case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// The name that selects the case.
    pub id: String,
    /// The request.
    pub kind: String,
    /// What the server did.
    pub fault: String,
    /// How often.
    pub times: String,
    /// The rating.
    pub rating: Rating,
    /// What it is based on.
    pub reason: String,
    /// What arrived.
    pub arrivals: Vec<HttpArrival>,
    /// How the commands ended.
    pub ends: Vec<ClientEnd>,
    /// Whether the request is not idempotent, and may have been applied at the first attempt.
    pub may_apply_twice: bool,
    #[serde(skip)]
    case: AuditCase,
}

/// Decides whether a request of the case is not idempotent, and may have been applied by an
/// attempt that failed.
fn may_apply_twice(case: &AuditCase, run: &CaseRun) -> bool {
    let failed = || run.arrivals.iter().filter(|arrival| arrival.failed);
    let unapplied = failed().next().is_some() && failed().all(|arrival| arrival.unapplied);
    !case.kind.is_idempotent() && case.fault.applied == Applied::Perhaps && !unapplied
}

/// A part of the audit that showed nothing.
#[derive(Clone, Debug, Serialize)]
pub struct UnseenPart {
    /// Which.
    pub part: String,
    /// Why.
    pub reason: String,
}

/// An attempt as the report shows it: when it came, and how long the client had waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RetryRecord {
    /// When it arrived, since the start of the command.
    pub at: Duration,
    /// The delay since the attempt before.
    pub delay: Duration,
}

impl AuditReport {
    pub(crate) fn new(
        settings: &AuditSettings,
        probes: &[Probe],
        cases: Vec<CaseReport>,
        unseen: Vec<UnseenPart>,
    ) -> Self {
        let words = settings.command.iter().map(|word| word.to_string_lossy());
        Self {
            format: 1,
            command: words.collect::<Vec<_>>().join(" "),
            protocol: settings.protocol.to_string(),
            limit: settings.limit,
            kinds: probes.iter().map(|probe| probe.sent.to_string()).collect(),
            cases,
            only: settings.only.clone(),
            unseen,
            healthy_ends: probes
                .iter()
                .map(|probe| (probe.sent.to_string(), probe.end.clone()))
                .collect(),
        }
    }

    /// Returns the number of cases with a rating.
    pub fn count(&self, rating: Rating) -> usize {
        self.cases
            .iter()
            .filter(|case| case.rating == rating)
            .count()
    }

    /// Returns the number of cases that are rated so, or more severely.
    pub fn count_from(&self, mildest: Rating) -> usize {
        self.cases
            .iter()
            .filter(|case| case.rating <= mildest)
            .count()
    }

    /// Returns why the client cannot be called safe, although no case is unsafe.
    pub fn doubt(&self) -> Option<String> {
        let critical = || self.cases.iter().filter(|case| case.may_apply_twice);
        let silent = critical()
            .filter(|case| case.rating == Rating::NotSeen)
            .count();
        let keyed = self.cases.iter().any(|case| case.case.kind.keyed);
        match (critical().count(), silent) {
            (0, _) if keyed => Some(
                "every POST had an Idempotency-Key, which helps if your server honours it"
                    .to_owned(),
            ),
            (0, _) => Some("no POST was sent, or other request that is not idempotent".to_owned()),
            (_, 0) => None,
            (all, _) => Some(format!(
                "{silent} of the {all} cases that could tell showed nothing; see \"not seen\""
            )),
        }
    }

    /// Formats the report as JSON.
    pub fn to_json(&self) -> String {
        // It has no maps with keys that are not text, and no values that fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Cases that failed for good, and whose command ended with status 0.
    fn claims_success(&self) -> impl Iterator<Item = &CaseReport> {
        self.cases.iter().filter(|case| {
            let failed = !case.arrivals.is_empty() && case.arrivals.iter().all(|one| one.failed);
            // A client need not follow a redirect.
            failed
                && !case.case.fault.action.redirects()
                && case
                    .ends
                    .iter()
                    .all(|end| end.cause == ExitCause::Exited(0))
        })
    }
}

impl CaseReport {
    pub(crate) fn new(case: &AuditCase, run: &CaseRun) -> Self {
        let judgement = judge(case, run);
        Self {
            id: case.id(),
            kind: case.kind.to_string(),
            fault: case.fault.text.to_owned(),
            times: case.times.to_string(),
            rating: judgement.rating,
            reason: judgement.reason,
            arrivals: run.arrivals.clone(),
            ends: run.ends.clone(),
            may_apply_twice: may_apply_twice(case, run),
            case: case.clone(),
        }
    }

    /// Returns the attempts of the busiest command.
    pub fn retries(&self) -> Vec<RetryRecord> {
        let commands = self.ends.len().max(1);
        let of = |command| {
            let arrivals = self.arrivals.iter();
            arrivals
                .filter(move |arrival| arrival.command == command)
                .collect::<Vec<_>>()
        };
        let busiest = (0..commands)
            .map(of)
            .max_by_key(Vec::len)
            .unwrap_or_default();
        let delays = crate::judge::delays(&busiest);
        let delays = std::iter::once(Duration::ZERO).chain(delays);
        let records = busiest.iter().zip(delays);
        records
            .map(|(arrival, delay)| RetryRecord {
                at: arrival.at,
                delay,
            })
            .collect()
    }
}

impl UnseenPart {
    pub(crate) fn not_sent(asked: &RequestKind, sent: &RequestKind) -> Self {
        let reason = match (asked.keyed, asked.method == sent.method) {
            (true, true) => {
                "the command sends no such header; write {key} where its value belongs, or read AUDIT_KEY".to_owned()
            }
            _ => format!(
                "the command sent {sent}; write {{method}} where the method belongs, or read AUDIT_METHOD"
            ),
        };
        let part = match asked.keyed {
            true => format!("{} with an Idempotency-Key", asked.method),
            false => asked.method.clone(),
        };
        Self { part, reason }
    }

    pub(crate) fn failed(kind: &RequestKind, error: &AuditError) -> Self {
        let reason = error.to_string();
        let reason = reason.lines().next().unwrap_or_default().to_owned();
        Self {
            part: kind.to_string(),
            reason,
        }
    }

    pub(crate) fn small_body(case: &AuditCase, body: u64) -> Self {
        Self {
            part: format!("{} during an upload", case.kind),
            reason: format!("the body has {body} bytes; send the file {{file}}, or AUDIT_FILE"),
        }
    }
}

impl fmt::Display for ClientEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            ExitCause::Exited(status) => write!(f, "exit {status}")?,
            ExitCause::Killed => f.write_str("killed by a signal")?,
            ExitCause::Stopped => f.write_str("stopped")?,
        }
        match self.left_processes {
            true => f.write_str(", left a process"),
            false => Ok(()),
        }
    }
}

/// Formats a number of cases.
pub(crate) fn count_cases(number: usize) -> String {
    match number {
        1 => "1 case".to_owned(),
        more => format!("{more} cases"),
    }
}

/// Formats a duration for people.
pub(crate) fn show(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ ..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// Serializes a duration as seconds.
pub(crate) fn seconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64((duration.as_secs_f64() * 1e4).round() / 1e4)
}

/// Serializes a duration as seconds, or nothing.
pub(crate) fn maybe_seconds<S: Serializer>(
    duration: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => seconds(duration, to),
        None => to.serialize_none(),
    }
}
