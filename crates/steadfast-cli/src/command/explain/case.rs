//! The decision about one end of an attempt, as text and as JSON.

use std::fmt;

use serde_json::{Value, json};
use steadfast::explain::{Explanation, Plan, Planned, Unexplainable};
use steadfast::law::Grounds;
use steadfast::strategy::Cause;
use steadfast::{Failure, RetryStrategy, Stage};
use steadfast_couchbase::ErrorKind;
use steadfast_couchbase::explain::{
    AttemptMeaning, about, answered_http, answered_kv, in_flight, likely_cause,
    may_have_been_applied, not_sent,
};
use steadfast_wire::error_map::ErrorMap;

use super::attempt_end::AttemptEnd;
use super::delays;
use super::operation::{ExplainedOperation, Protocol};
use crate::output::{BAD, FAINT, GOOD, STRONG, styled};

const APPLIED: &str = ", may have been applied";

/// An operation whose attempt ended in some way, and the decision about it.
pub(super) struct ExplainedCase {
    operation: &'static str,
    service: &'static str,
    idempotent: bool,
    ended: String,
    stage: Stage,
    likely: Option<&'static str>,
    result: CaseResult,
    delays: Option<String>,
}

enum CaseResult {
    Succeeded,
    Final { kind: ErrorKind, ambiguous: bool },
    Failed(Box<FailedCase>),
}

struct FailedCase {
    failure: Failure,
    kind: ErrorKind,
    explanation: Explanation,
    plan: Plan,
    ambiguous: bool,
}

impl ExplainedCase {
    pub(super) fn new(
        operation: &ExplainedOperation,
        end: &AttemptEnd,
        map: &ErrorMap,
        strategy: &dyn RetryStrategy,
    ) -> Result<Self, Unexplainable> {
        let (stage, meaning) = match (end, operation.protocol) {
            (AttemptEnd::NotSent(reason), _) => (Stage::NotSent, not_sent(reason)),
            (AttemptEnd::InFlight, _) => (Stage::InFlight, in_flight()),
            (AttemptEnd::Status(status), Protocol::Kv(kv)) => {
                (Stage::Responded, answered_kv(kv, *status, Some(map)))
            }
            (AttemptEnd::Http { status, body, .. }, Protocol::Http(service)) => {
                let meaning = answered_http(service, *status, body, operation.idempotent);
                (Stage::Responded, meaning)
            }
            (AttemptEnd::Status(_), Protocol::Http(_))
            | (AttemptEnd::Http { .. }, Protocol::Kv(_)) => {
                unreachable!("the flags are parsed for the protocol")
            }
        };
        let mut delays = None;
        let result = match meaning {
            AttemptMeaning::Done => CaseResult::Succeeded,
            AttemptMeaning::Final(kind) => {
                let ambiguous = match (end, operation.protocol) {
                    (AttemptEnd::Status(status), Protocol::Kv(kv)) => {
                        may_have_been_applied(kv, *status, Some(map))
                    }
                    _ => kind == ErrorKind::DurabilityAmbiguous,
                };
                CaseResult::Final { kind, ambiguous }
            }
            AttemptMeaning::Failed(failure, kind) => {
                let call = operation.call();
                let explanation = steadfast::explain(strategy, &call, &failure)?;
                let again = std::iter::repeat_n(failure.clone(), Plan::MAX_ROWS);
                let plan = steadfast::explain::plan(strategy, &call, again)?;
                delays = delays::describe(&plan, operation.timeout);
                let ambiguous = failure.stage.may_have_been_applied() && !operation.idempotent;
                CaseResult::Failed(Box::new(FailedCase {
                    failure,
                    kind,
                    explanation,
                    plan,
                    ambiguous,
                }))
            }
        };
        Ok(Self {
            operation: operation.name,
            service: operation.service,
            idempotent: operation.idempotent,
            ended: end.describe(),
            stage,
            likely: match (end, operation.protocol) {
                (AttemptEnd::Status(status), Protocol::Kv(kv)) => likely_cause(kv, *status),
                _ => None,
            },
            result,
            delays,
        })
    }

    /// Describes the decision if the connection had closed instead.
    pub(super) fn if_in_flight(
        &self,
        operation: &ExplainedOperation,
        strategy: &dyn RetryStrategy,
    ) -> Result<Option<String>, Unexplainable> {
        if self.stage == Stage::InFlight {
            return Ok(None);
        }
        let map = ErrorMap::shipped(steadfast_wire::error_map::MapVersion::V2);
        let other = Self::new(operation, &AttemptEnd::InFlight, &map, strategy)?;
        let decision = other.decision();
        Ok(Some(format!(
            "If the connection had closed before the response instead: {decision}."
        )))
    }

    /// Describes whether there is another attempt, and why.
    pub(super) fn decision(&self) -> String {
        let operation = self.operation;
        match &self.result {
            CaseResult::Succeeded => "done".to_owned(),
            CaseResult::Final { .. } => "no retry: the response is final".to_owned(),
            CaseResult::Failed(failed) => match failed.explanation.decided() {
                Planned::Retry { .. } => match failed.explanation.grounds() {
                    Ok(Grounds::AlwaysRetry) => "retry: this reason is always retried".to_owned(),
                    Ok(Grounds::NothingSent) => "retry: nothing was sent".to_owned(),
                    Ok(Grounds::Idempotent) => format!("retry: {operation} is idempotent"),
                    Ok(Grounds::ReasonAllows) => {
                        format!(
                            "retry: the reason allows it, although {operation} is not idempotent"
                        )
                    }
                    Err(cause) => format!("retry, although {cause}"),
                },
                Planned::Refused(Cause::Unsafe) => {
                    let applied = if failed.ambiguous {
                        "it may have been applied, and "
                    } else {
                        ""
                    };
                    format!("no retry: {applied}{operation} is not idempotent")
                }
                Planned::Refused(cause) => format!("no retry: {cause}"),
                Planned::Asks => "not known: the strategy decides asynchronously".to_owned(),
            },
        }
    }

    /// Returns the source of the rule.
    pub(super) fn rule(&self) -> &'static str {
        const LIST: &str = "RFC 0049, Response Code Retry List: all other responses are final";
        const STAGES: &str = "RFC 0049, Different Stage Retry Semantics; D14";
        match &self.result {
            CaseResult::Succeeded => "",
            CaseResult::Final { .. } => LIST,
            CaseResult::Failed(failed) => match failed.explanation.decided() {
                Planned::Refused(Cause::Unsafe) => STAGES,
                _ => about(failed.failure.reason).map_or("", |about| about.rule),
            },
        }
    }

    /// Returns what to do about it.
    fn advice(&self, failed: &FailedCase) -> Option<&'static str> {
        match (self.operation, self.likely) {
            ("unlock", Some(_)) => Some("check that the document is locked when it is unlocked"),
            _ => about(failed.failure.reason).map(|about| about.advice),
        }
    }

    pub(super) fn would_retry(&self) -> bool {
        match &self.result {
            CaseResult::Failed(failed) => failed.explanation.would_retry(),
            CaseResult::Succeeded | CaseResult::Final { .. } => false,
        }
    }

    pub(super) fn ended(&self) -> &str {
        &self.ended
    }

    /// Returns the reason, or the kind of error of a final response.
    pub(super) fn cause(&self) -> &'static str {
        match &self.result {
            CaseResult::Succeeded => "",
            CaseResult::Final { kind, .. } => kind.name(),
            CaseResult::Failed(failed) => failed.failure.reason.name(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({
            "service": self.service,
            "operation": self.operation,
            "idempotent": self.idempotent,
            "ended": self.ended,
            "stage": self.stage.name(),
            "decision": self.decision(),
            "retry": self.would_retry(),
            "rule": self.rule(),
        });
        if let Some(likely) = self.likely {
            json["likely_cause"] = json!(likely);
        }
        match &self.result {
            CaseResult::Succeeded => {}
            CaseResult::Final { kind, ambiguous } => {
                json["error"] = json!(kind.name());
                json["may_have_been_applied"] = json!(ambiguous);
            }
            CaseResult::Failed(failed) => {
                json["reason"] = json!(failed.failure.reason.name());
                json["error"] = json!(failed.kind.name());
                json["may_have_been_applied"] = json!(failed.ambiguous);
                json["strategy"] = json!(failed.plan.strategy());
                if let Planned::Refused(cause) = failed.explanation.decided() {
                    json["refusal"] = json!(cause.name());
                }
                json["delays"] = failed.plan.rows().iter().filter_map(delay).collect();
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

impl fmt::Display for ExplainedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = format!("{} {}", self.operation, self.ended);
        write!(f, "{}", styled(STRONG, title))?;
        let mut row = |name: &str, text: &dyn fmt::Display| write!(f, "\n  {name:<11} {text}");
        if let CaseResult::Failed(failed) = &self.result {
            let reason = failed.failure.reason;
            match about(reason) {
                Some(about) => row("reason", &format_args!("{reason}: {}", about.meaning))?,
                None => row("reason", &reason)?,
            }
            if let Some(likely) = self.likely {
                row("likely", &likely)?;
            }
        }
        let colour = match &self.result {
            CaseResult::Succeeded => GOOD,
            _ if self.would_retry() => GOOD,
            _ => BAD,
        };
        row("decision", &styled(colour, self.decision()))?;
        match &self.result {
            CaseResult::Succeeded => {}
            CaseResult::Final { kind, ambiguous } => {
                let applied = if *ambiguous { APPLIED } else { "" };
                row("error", &format_args!("{} ({kind}){applied}", kind.name()))?;
            }
            CaseResult::Failed(failed) if !self.would_retry() => {
                let kind = failed.kind;
                let applied = if failed.ambiguous { APPLIED } else { "" };
                row("error", &format_args!("{} ({kind}){applied}", kind.name()))?;
            }
            CaseResult::Failed(_) => {}
        }
        if let Some(delays) = &self.delays {
            row("delays", delays)?;
        }
        if !self.rule().is_empty() {
            row("rule", &styled(FAINT, self.rule()))?;
        }
        if let CaseResult::Failed(failed) = &self.result {
            row("strategy", &styled(FAINT, failed.plan.strategy()))?;
            if let Some(advice) = self.advice(failed) {
                row("what helps", &advice)?;
            }
        }
        Ok(())
    }
}
