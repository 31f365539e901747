//! Everything that can happen to an operation.

use serde_json::Value;

use super::decision::Decision;
use super::subject::Subject;
use crate::output::{BAD, FAINT, GOOD, STRONG, line, styled};

pub(super) fn print(subject: &Subject, decisions: Vec<Decision>, json: bool) -> anyhow::Result<()> {
    if json {
        line(decisions.iter().map(Decision::to_json).collect::<Value>());
        return Ok(());
    }
    let idempotent = if subject.idempotent {
        "idempotent"
    } else {
        "not idempotent"
    };
    let title = format!("{} {}, {idempotent}", subject.service, subject.operation);
    line(styled(STRONG, title));
    let width = |text: fn(&Decision) -> &str| {
        decisions
            .iter()
            .map(|it| text(it).chars().count())
            .max()
            .unwrap_or_default()
    };
    let ended = width(Decision::ended);
    let cause = width(|decision| decision.cause());
    let verdict = decisions
        .iter()
        .map(|it| it.verdict().chars().count())
        .max();
    let verdict = verdict.unwrap_or_default();
    for decision in &decisions {
        let colour = if decision.would_retry() { GOOD } else { BAD };
        line(format_args!(
            "  {:<ended$}  {:<cause$}  {}  {}",
            decision.ended(),
            decision.cause(),
            styled(colour, format!("{:<verdict$}", decision.verdict())),
            styled(FAINT, decision.rule()),
        ));
    }
    Ok(())
}
