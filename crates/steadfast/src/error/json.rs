//! The error as JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::Error;
use crate::report::{AttemptRecord, Outcome, Report, Verdict};

impl Report {
    /// Returns the report as JSON. Durations are microseconds.
    pub fn to_json(&self) -> Value {
        let (request, history) = (self.request(), self.history());
        let reasons: Vec<Value> = self
            .all_reasons()
            .counted()
            .map(|(reason, times)| json!({ "reason": reason.name(), "times": times }))
            .collect();
        json!({
            "operation": request.operation(),
            "service": request.service(),
            "idempotent": request.is_idempotent(),
            "verdict": match self.verdict() {
                Verdict::Succeeded => "succeeded",
                Verdict::Failed(_) => "failed",
                Verdict::TimedOut(_) => "timed_out",
                Verdict::Shed => "shed",
            },
            "ambiguous": self.verdict().is_ambiguous(),
            "elapsed_us": self.elapsed().map(micros),
            "attempts": self.attempts(),
            "retries": self.retries(),
            "retry_reasons": self.reasons().iter().map(|reason| reason.name()).collect::<Vec<_>>(),
            "reasons": reasons,
            "strategy": self.strategy(),
            "refusal": self.refusal().map(|refusal| json!({
                "cause": refusal.cause().name(),
                "text": refusal.to_string(),
                "would_wait_us": refusal.delay().map(micros),
                "budget_left": refusal.budget_left(),
            })),
            "history": history.records().map(record).collect::<Vec<_>>(),
            "history_omitted": history.omitted(),
        })
    }
}

impl<E: fmt::Display> Error<E> {
    /// Returns the report and the last error's text as JSON. Durations are microseconds.
    pub fn to_json(&self) -> Value {
        let mut value = self.report().to_json();
        value["error"] = match (self.raised(), self.last_error()) {
            (Some(raised), _) => raised.to_string().into(),
            (None, last) => last.map(ToString::to_string).into(),
        };
        value
    }
}

fn record(record: &AttemptRecord) -> Value {
    let failure = &record.failure;
    let decided = match record.outcome {
        Outcome::Retry { delay, capped } => {
            json!({ "retry_after_us": micros(delay), "capped": capped })
        }
        Outcome::Refused(cause) => json!({ "refused": cause.name() }),
        Outcome::Undecided => Value::Null,
    };
    json!({
        "attempt": record.attempt,
        "times": record.times,
        "since_us": micros(record.since),
        "at_us": micros(record.at),
        "stage": failure.stage.name(),
        "reason": failure.reason.name(),
        "hint_us": failure.hint.map(micros),
        "peer": failure.peer(),
        "note": failure.note(),
        "decided": decided,
    })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
