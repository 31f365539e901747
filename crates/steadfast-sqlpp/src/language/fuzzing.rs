//! Checks the parser and the evaluation with the statements that a fuzzer makes up.

use serde_json::json;

use super::{EvalScope, Parameters, Row, Statement, parse};

/// Parses a statement and evaluates the expressions of a SELECT on one document.
pub fn statement(text: &str) {
    let Ok(Statement::Select(select)) = parse(text) else {
        return;
    };
    let row = Row {
        key: "k".to_owned(),
        value: json!({"a": 1, "b": [1, {"c": "x"}], "s": "text", "n": null}),
        ..Row::default()
    };
    let group = [row.clone(), row.clone()];
    let parameters = Parameters {
        positional: vec![json!(1), json!("%x_")],
        named: std::collections::BTreeMap::new(),
        random: || 7,
    };
    let alias = select.source.as_ref().map_or("d", |source| &source.alias);
    let scope = EvalScope {
        parameters: &parameters,
        row: Some((alias, &row)),
        group: Some(&group),
        alias,
    };
    let _ = scope.project(&select.projection);
    let order = select.order.iter().map(|(expression, _)| expression);
    let others = [
        &select.filter,
        &select.having,
        &select.limit,
        &select.offset,
    ];
    for expression in others
        .into_iter()
        .flatten()
        .chain(&select.group)
        .chain(order)
    {
        let _ = scope.evaluate(expression);
    }
}
