//! The table of all decisions about an operation.

use serde_json::Value;

use super::case::ExplainedCase;
use super::operation::ExplainedOperation;
use crate::output::{BAD, FAINT, GOOD, STRONG, line, styled, wrapped};

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
    let mut above = None;
    for case in cases {
        let decided = (case.decision(), case.rule());
        if above.as_ref() != Some(&decided) {
            let colour = if case.would_retry() { GOOD } else { BAD };
            line(styled(colour, wrapped(&decided.0, 0)));
            line(format_args!("  {}", styled(FAINT, wrapped(decided.1, 2))));
        }
        let row = format!("{:<33} {}", case.cause(), case.ended());
        line(format_args!("  {}", wrapped(&row, 2)));
        above = Some(decided);
    }
}
