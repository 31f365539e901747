//! The table of all decisions about an operation.

use serde_json::Value;

use super::case::ExplainedCase;
use super::operation::ExplainedOperation;
use crate::output::{BAD, FAINT, GOOD, STRONG, line, styled};

pub(super) fn print(operation: &ExplainedOperation, cases: &[ExplainedCase], json: bool) {
    if json {
        return line(cases.iter().map(ExplainedCase::to_json).collect::<Value>());
    }
    let idempotent = if operation.idempotent {
        "idempotent"
    } else {
        "not idempotent"
    };
    let title = format!("{} {}, {idempotent}", operation.service, operation.name);
    line(styled(STRONG, title));
    let rows: Vec<_> = cases
        .iter()
        .map(|case| {
            (
                case,
                [
                    case.ended().to_owned(),
                    case.cause().to_owned(),
                    case.decision(),
                ],
            )
        })
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|(_, row)| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let (first, second, third) = (width(0), width(1), width(2));
    for (case, [ended, cause, decision]) in &rows {
        let colour = if case.would_retry() { GOOD } else { BAD };
        line(format_args!(
            "  {ended:<first$}  {cause:<second$}  {}  {}",
            styled(colour, format!("{decision:<third$}")),
            styled(FAINT, case.rule()),
        ));
    }
}
