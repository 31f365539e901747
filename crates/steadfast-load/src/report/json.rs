//! The report for machines is what its documentation says, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Accounting, FORMAT, Left, Memory, Report};
use crate::accounting::{Outcome, Totals, Violation, Wrong};
use crate::calamity::{Chronicle, Mark, Played};
use crate::measure::{Counts, Decided, Latency, Sample};

const GUIDE: &str = include_str!("../../../../docs/load.md");

/// A report that has everything.
pub(super) fn full() -> Report {
    let text = || "text".to_owned();
    let sample = Sample {
        retries: BTreeMap::from([(text(), 1)]),
        resident_bytes: Some(1),
        ..Sample::default()
    };
    let retry = Decided {
        reason: text(),
        stage: Some(text()),
        cause: None,
        count: 1,
    };
    let refusal = Decided {
        stage: None,
        cause: Some(text()),
        ..retry.clone()
    };
    let violation = Violation {
        outcome: Some(Outcome::Ambiguous),
        found: Some(1),
        history: Some(text()),
        ..Violation::of(Wrong::Lost("because"), "upsert", "what")
    };
    Report {
        format: FORMAT,
        cluster: text(),
        client: text(),
        strategy: text(),
        seed: 1,
        replay: text(),
        duration_s: 1.0,
        planned_duration_s: 1.0,
        interrupted_after_s: Some(1.0),
        concurrency: 1,
        operations: Counts {
            by_kind: BTreeMap::from([("get", 1)]),
            errors: BTreeMap::from([(text(), 1)]),
            ..Counts::default()
        },
        throughput_per_s: 1.0,
        latency: Latency::default(),
        retries: vec![retry],
        refusals: vec![refusal],
        accounting: Accounting {
            journal: true,
            totals: Totals::default(),
            holds: false,
            violations: vec![violation],
        },
        left: Left {
            documents: 1,
            example: Some(text()),
        },
        calamity: Chronicle {
            acts: vec![Played {
                what: text(),
                times: 1,
                duration_s: 1.0,
            }],
            marks: vec![Mark {
                what: text(),
                from_s: 1.0,
                until_s: Some(2.0),
            }],
            marks_forgotten: 0,
        },
        timeline: vec![sample],
        memory: Some(Memory {
            first_bytes: 1,
            most_bytes: 1,
            last_bytes: 1,
        }),
    }
}

#[test]
fn every_field_is_in_the_guide_with_its_type_and_nothing_else_is() {
    let report: Value = serde_json::from_str(&full().to_json()).unwrap();
    let mut fields = BTreeSet::new();
    collect("", &report, &mut fields);
    let begin = GUIDE.find("## The report for machines").unwrap();
    let section = GUIDE[begin..].lines().skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let documented: BTreeSet<String> = section
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| {
            let (name, rest) = row.split_once("` | ").unwrap();
            let (kind, _) = rest.split_once(" |").unwrap();
            format!("{name}: {kind}")
        })
        .collect();
    let missing: Vec<_> = fields.difference(&documented).collect();
    let invented: Vec<_> = documented.difference(&fields).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "not in the guide: {missing:#?}\nonly in the guide: {invented:#?}"
    );
}

#[test]
fn what_did_not_happen_is_null_and_never_missing() {
    let report = Report {
        interrupted_after_s: None,
        memory: None,
        ..full()
    };
    let report: Value = serde_json::from_str(&report.to_json()).unwrap();
    let fields = report.as_object().unwrap();
    assert_eq!(fields["interrupted_after_s"], Value::Null);
    assert_eq!(fields["memory"], Value::Null);
}

/// The paths of all fields, as `timeline[].ok: number`.
fn collect(path: &str, value: &Value, fields: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(members) => {
            let names_are_data = ["by_kind", "errors", "retries"]
                .iter()
                .any(|name| path.ends_with(name));
            for (name, member) in members {
                let name = if names_are_data { "*" } else { name };
                let dot = if path.is_empty() { "" } else { "." };
                collect(&format!("{path}{dot}{name}"), member, fields);
            }
            return;
        }
        Value::Array(elements) => {
            for element in elements {
                collect(&format!("{path}[]"), element, fields);
            }
            return;
        }
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Null => "null",
    };
    fields.insert(format!("{path}: {kind}"));
}
