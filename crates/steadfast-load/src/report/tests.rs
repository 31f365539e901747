//! The JSON report matches its documentation, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Accounting, FORMAT, Leftovers, LoadReport, Memory, ReadBack};
use crate::accounting::{Totals, Violation, ViolationKind, WriteOutcome};
use crate::faults::{Coverage, FaultKind, FaultLog, FaultTotals, InjectedFault};
use crate::history::Bar;
use crate::measure::{Latency, OperationCounts, RetryCount, Sample};
use crate::workload::Starts;

const GUIDE: &str = include_str!("../../../../docs/load.md");

/// A report with a value in every field.
pub(crate) fn full() -> LoadReport {
    let text = || "text".to_owned();
    let sample = Sample {
        p50_ms: Some(1.0),
        p99_ms: Some(1.0),
        p999_ms: Some(1.0),
        errors: BTreeMap::from([(text(), 1)]),
        retries: BTreeMap::from([(text(), 1)]),
        resident_bytes: Some(1),
        ..Sample::default()
    };
    let retry = RetryCount {
        reason: text(),
        stage: Some(text()),
        cause: None,
        count: 1,
    };
    let refusal = RetryCount {
        stage: None,
        cause: Some(text()),
        ..retry.clone()
    };
    let violation = Violation {
        outcome: Some(WriteOutcome::Ambiguous),
        found: Some(1),
        operations: vec![Bar {
            worker: 1,
            from_s: 1.0,
            until_s: Some(2.0),
            text: text(),
        }],
        history: Some(text()),
        ..Violation::new(ViolationKind::Lost("because"), "upsert", "subject")
    };
    LoadReport {
        format: FORMAT,
        cluster: text(),
        client: text(),
        strategy: text(),
        seed: 1,
        replay: text(),
        duration_s: 1.0,
        load_s: 1.0,
        planned_duration_s: 1.0,
        interrupted_after_s: Some(1.0),
        concurrency: 1,
        starts: Some(Starts::default()),
        operations: OperationCounts {
            by_kind: BTreeMap::from([("get", 1)]),
            errors: BTreeMap::from([(text(), 1)]),
            ..OperationCounts::default()
        },
        throughput_per_s: 1.0,
        latency: Latency::default(),
        longest_stall_ms: 1.0,
        read_back: ReadBack::default(),
        retries: vec![retry],
        refusals: vec![refusal],
        accounting: Accounting {
            journal: true,
            totals: Totals::default(),
            holds: false,
            violations: vec![violation],
        },
        leftovers: Leftovers {
            documents: 1,
            example: Some(text()),
        },
        faults: FaultLog {
            by_kind: vec![FaultTotals {
                fault: text(),
                count: 1,
                duration_s: 1.0,
                hits: 1,
                kind: FaultKind::Crash,
            }],
            injected: vec![InjectedFault {
                fault: text(),
                from_s: 1.0,
                until_s: Some(2.0),
                due_s: 2.0,
            }],
            ..FaultLog::default()
        },
        coverage: vec![Coverage {
            fault: text(),
            causes: text(),
            count: 0,
            missing: true,
        }],
        timeline: vec![sample],
        memory: Some(Memory {
            first_bytes: 1,
            max_bytes: 1,
            last_bytes: 1,
        }),
    }
}

#[test]
fn the_guide_lists_exactly_the_fields_of_the_report_with_their_types() {
    let report: Value = serde_json::from_str(&full().to_json()).unwrap();
    let mut fields = BTreeSet::new();
    collect("", &report, &mut fields);
    let begin = GUIDE.find("## The JSON report").unwrap();
    let section = GUIDE[begin..].lines().skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let documented: BTreeSet<String> = section
        .filter_map(|line| line.strip_prefix("| `"))
        .flat_map(|row| {
            let (names, rest) = row.split_once("` | ").unwrap();
            let (kind, _) = rest.split_once(" |").unwrap();
            let mut names = names.split("`, `");
            // The other fields of a row are in the same object as the first.
            let first = names.next().unwrap();
            let object = first.rfind('.').map_or("", |dot| &first[..=dot]);
            let others = names.map(|name| format!("{object}{name}: {kind}"));
            [format!("{first}: {kind}")]
                .into_iter()
                .chain(others)
                .collect::<Vec<_>>()
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
fn a_field_without_a_value_is_null_and_not_missing() {
    let report = LoadReport {
        interrupted_after_s: None,
        memory: None,
        ..full()
    };
    let report: Value = serde_json::from_str(&report.to_json()).unwrap();
    let fields = report.as_object().unwrap();
    assert_eq!(fields["interrupted_after_s"], Value::Null);
    assert_eq!(fields["memory"], Value::Null);
}

#[test]
fn the_maximum_of_memory_includes_the_final_value() {
    let of = |samples: &[u64], now| {
        let memory = Memory::new(samples.iter().copied(), now)?;
        Some((memory.first_bytes, memory.max_bytes, memory.last_bytes))
    };
    assert_eq!(of(&[2, 5, 3], Some(4)), Some((2, 5, 4)));
    assert_eq!(of(&[2, 5, 3], Some(7)), Some((2, 7, 7)));
    assert_eq!(of(&[2], None), Some((2, 2, 2)));
    assert_eq!(of(&[], Some(7)), None);
}

/// Collects the paths of all fields, such as `timeline[].ok: number`.
fn collect(path: &str, value: &Value, fields: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(members) => {
            let names_are_data = ["operations.by_kind", "errors", "].retries"]
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
