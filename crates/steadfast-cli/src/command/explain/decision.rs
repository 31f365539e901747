//! What is decided about one ending, in words and for machines.

use std::fmt;

use serde_json::{Value, json};
use steadfast::explain::{Explanation, Plan, Planned, Unexplainable};
use steadfast::law::Grounds;
use steadfast::strategy::Cause;
use steadfast::{Failure, RetryStrategy, Stage};
use steadfast_couchbase::ErrorKind;
use steadfast_couchbase::explain::{
    Meaning, about, answered_http, answered_kv, in_flight, not_sent,
};
use steadfast_wire::error_map::ErrorMap;

use super::delays;
use super::ending::Ending;
use super::subject::{Kind, Subject};
use crate::output::{BAD, FAINT, GOOD, STRONG, styled};

const APPLIED: &str = ", may have been applied";

/// What is decided.
pub(super) struct Decision {
    operation: &'static str,
    service: &'static str,
    idempotent: bool,
    ended: String,
    stage: Stage,
    outcome: Outcome,
    delays: Option<String>,
}

enum Outcome {
    Done,
    Final(ErrorKind),
    Decided(Box<Decided>),
}

struct Decided {
    failure: Failure,
    kind: ErrorKind,
    explanation: Explanation,
    plan: Plan,
    ambiguous: bool,
}

impl Decision {
    pub(super) fn make(
        subject: &Subject,
        ending: &Ending,
        map: &ErrorMap,
        strategy: &dyn RetryStrategy,
    ) -> Result<Self, Unexplainable> {
        let (stage, meaning) = match (ending, subject.kind) {
            (Ending::NotSent(reason), _) => (Stage::NotSent, not_sent(reason)),
            (Ending::InFlight, _) => (Stage::InFlight, in_flight()),
            (Ending::Status(status), Kind::Kv(operation)) => {
                (Stage::Responded, answered_kv(operation, *status, Some(map)))
            }
            (Ending::Http { status, body, .. }, Kind::Http(service)) => {
                let meaning = answered_http(service, *status, body, subject.idempotent);
                (Stage::Responded, meaning)
            }
            (Ending::Status(_), Kind::Http(_)) | (Ending::Http { .. }, Kind::Kv(_)) => {
                unreachable!("endings are read for the service that they are of")
            }
        };
        let mut delays = None;
        let outcome = match meaning {
            Meaning::Done => Outcome::Done,
            Meaning::Final(kind) => Outcome::Final(kind),
            Meaning::Failed(failure, kind) => {
                let call = subject.call();
                let explanation = steadfast::explain(strategy, &call, &failure)?;
                let again = std::iter::repeat_n(failure.clone(), Plan::MAX_ROWS);
                let plan = steadfast::explain::plan(strategy, &call, again)?;
                delays = delays::describe(&plan, subject.timeout);
                let ambiguous = failure.stage.may_have_been_applied() && !subject.idempotent;
                Outcome::Decided(Box::new(Decided {
                    failure,
                    kind,
                    explanation,
                    plan,
                    ambiguous,
                }))
            }
        };
        Ok(Self {
            operation: subject.operation,
            service: subject.service,
            idempotent: subject.idempotent,
            ended: ending.describe(),
            stage,
            outcome,
            delays,
        })
    }

    /// What would have been, had the connection closed instead.
    pub(super) fn otherwise(
        &self,
        subject: &Subject,
        strategy: &dyn RetryStrategy,
    ) -> Result<Option<String>, Unexplainable> {
        if self.stage == Stage::InFlight {
            return Ok(None);
        }
        let map = ErrorMap::shipped(steadfast_wire::error_map::MapVersion::V2);
        let other = Self::make(subject, &Ending::InFlight, &map, strategy)?;
        let verdict = other.verdict();
        Ok(Some(format!(
            "If the connection had closed without an answer instead: {verdict}."
        )))
    }

    /// Whether there is another attempt, and on what grounds.
    pub(super) fn verdict(&self) -> String {
        let operation = self.operation;
        match &self.outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Final(_) => "no retry: the answer is final".to_owned(),
            Outcome::Decided(decided) => match decided.explanation.decided() {
                Planned::Retry { .. } => match decided.explanation.grounds() {
                    Ok(Grounds::AlwaysRetry) => "retry, whatever the strategy".to_owned(),
                    Ok(Grounds::NothingSent) => "retry: nothing was sent".to_owned(),
                    Ok(Grounds::Idempotent) => format!("retry: {operation} is idempotent"),
                    Ok(Grounds::ReasonAllows) => {
                        format!("retry, also though {operation} is not idempotent")
                    }
                    Err(cause) => format!("retry, although {cause}"),
                },
                Planned::Refused(Cause::Unsafe) => {
                    let applied = if decided.ambiguous {
                        "it may have been applied, and "
                    } else {
                        ""
                    };
                    format!("no retry: {applied}{operation} is not idempotent")
                }
                Planned::Refused(cause) => format!("no retry: {cause}"),
                Planned::Asks => "the strategy asks somebody else first".to_owned(),
            },
        }
    }

    /// Where that is written.
    pub(super) fn rule(&self) -> &'static str {
        const LIST: &str = "RFC 0049, Response Code Retry List: what is not on it is final";
        const STAGES: &str = "RFC 0049, Different Stage Retry Semantics; D14";
        match &self.outcome {
            Outcome::Done => "",
            Outcome::Final(_) => LIST,
            Outcome::Decided(decided) => match decided.explanation.decided() {
                Planned::Refused(Cause::Unsafe) => STAGES,
                _ => about(decided.failure.reason).map_or("", |about| about.rule),
            },
        }
    }

    pub(super) fn would_retry(&self) -> bool {
        match &self.outcome {
            Outcome::Decided(decided) => decided.explanation.would_retry(),
            Outcome::Done | Outcome::Final(_) => false,
        }
    }

    pub(super) fn ended(&self) -> &str {
        &self.ended
    }

    /// The reason, or the kind of error where the answer is final.
    pub(super) fn cause(&self) -> &'static str {
        match &self.outcome {
            Outcome::Done => "",
            Outcome::Final(kind) => kind.name(),
            Outcome::Decided(decided) => decided.failure.reason.name(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({
            "service": self.service,
            "operation": self.operation,
            "idempotent": self.idempotent,
            "ended": self.ended,
            "stage": self.stage.name(),
            "verdict": self.verdict(),
            "retry": self.would_retry(),
            "rule": self.rule(),
        });
        match &self.outcome {
            Outcome::Done => {}
            Outcome::Final(kind) => json["error"] = json!(kind.name()),
            Outcome::Decided(decided) => {
                json["reason"] = json!(decided.failure.reason.name());
                json["error"] = json!(decided.kind.name());
                json["may_have_been_applied"] = json!(decided.ambiguous);
                json["strategy"] = json!(decided.plan.strategy());
                if let Planned::Refused(cause) = decided.explanation.decided() {
                    json["refusal"] = json!(cause.name());
                }
                json["delays"] = decided.plan.rows().iter().filter_map(delay).collect();
            }
        }
        json
    }
}

fn delay(row: &steadfast::explain::PlanRow) -> Option<Value> {
    let Planned::Retry {
        shortest,
        longest,
        capped,
    } = row.decided
    else {
        return None;
    };
    let millis = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
    Some(json!({
        "after_attempt": row.attempt,
        "shortest_ms": millis(shortest),
        "longest_ms": millis(longest),
        "cut_by_deadline": capped,
    }))
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = format!("{} {}", self.operation, self.ended);
        write!(f, "{}", styled(STRONG, title))?;
        let mut row = |name: &str, text: &dyn fmt::Display| write!(f, "\n  {name:<11} {text}");
        if let Outcome::Decided(decided) = &self.outcome {
            let reason = decided.failure.reason;
            match about(reason) {
                Some(about) => row("reason", &format_args!("{reason}: {}", about.meaning))?,
                None => row("reason", &reason)?,
            }
        }
        let colour = match &self.outcome {
            Outcome::Done => GOOD,
            _ if self.would_retry() => GOOD,
            _ => BAD,
        };
        row("verdict", &styled(colour, self.verdict()))?;
        match &self.outcome {
            Outcome::Done => {}
            Outcome::Final(kind) => {
                let ambiguous = *kind == ErrorKind::DurabilityAmbiguous;
                let applied = if ambiguous { APPLIED } else { "" };
                row("error", &format_args!("{} ({kind}){applied}", kind.name()))?;
            }
            Outcome::Decided(decided) if !self.would_retry() => {
                let kind = decided.kind;
                let applied = if decided.ambiguous { APPLIED } else { "" };
                row("error", &format_args!("{} ({kind}){applied}", kind.name()))?;
            }
            Outcome::Decided(_) => {}
        }
        if let Some(delays) = &self.delays {
            row("delays", delays)?;
        }
        if !self.rule().is_empty() {
            row("rule", &styled(FAINT, self.rule()))?;
        }
        if let Outcome::Decided(decided) = &self.outcome {
            row("strategy", &styled(FAINT, decided.plan.strategy()))?;
            if let Some(about) = about(decided.failure.reason) {
                row("what helps", &about.advice)?;
            }
        }
        Ok(())
    }
}
