//! One report of the reports of several machines.
//!
//! Each machine runs the workload with its own seed, and writes its report as JSON. The sum
//! counts operations, writes, violations and coverage of all; percentiles come from the sum of
//! the histograms. What belongs to a single run (its timeline, its memory) is left out.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value, json};

use super::FORMAT;
use crate::measure::{Latency, decoded};

/// The fields of a run that stay apart.
const OF_A_RUN: [&str; 6] = ["seed", "cluster", "client", "strategy", "replay", "load_s"];
/// The fields that have no sum.
const DROPPED: [&str; 5] = [
    "concurrency",
    "timeline",
    "memory",
    "interrupted_after_s",
    "injected",
];
/// The fields of which the largest counts, because the machines run at the same time.
const LARGEST: [&str; 4] = [
    "duration_s",
    "planned_duration_s",
    "load_s",
    "longest_stall_ms",
];
/// The lists that are put one after the other. In others, equal entries are added up.
const JOINED: [&str; 2] = ["violations", "runs"];

/// The sum of several reports.
#[derive(Clone, Debug)]
pub struct MergedReport(Map<String, Value>);

impl MergedReport {
    /// Adds up reports, each with its name and its JSON text. A merged report can be merged again.
    ///
    /// # Errors
    /// If one is not a report of this version, or two have the same seed: they are the same
    /// workload, and count only once.
    pub fn merge<'a>(
        reports: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> anyhow::Result<Self> {
        let mut sum: Option<Value> = None;
        let mut seeds = BTreeSet::new();
        for (name, text) in reports {
            let report = read(text).with_context(|| format!("{name} is not a report"))?;
            for run in report["runs"].as_array().into_iter().flatten() {
                let seed = run["seed"].as_u64().context("a run has no seed")?;
                ensure!(
                    seeds.insert(seed),
                    "{name} repeats the seed {seed}: give each machine a seed of its own"
                );
            }
            match &mut sum {
                Some(sum) => add("", sum, report).with_context(|| name.to_owned())?,
                None => sum = Some(report),
            }
        }
        match sum {
            Some(Value::Object(fields)) => Ok(Self(fields)),
            _ => bail!("there is no report to merge"),
        }
    }

    /// Returns whether every run holds.
    pub fn holds(&self) -> bool {
        self.0["accounting"]["holds"] == true
    }

    /// Returns how many effects of faults no run has caused.
    pub fn missing_coverage(&self) -> usize {
        let rows = self.0.get("coverage").and_then(Value::as_array);
        let rows = rows.into_iter().flatten();
        rows.filter(|row| row["missing"] == true).count()
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.0).expect("every field has a JSON form")
    }
}

/// Reads a report, and moves what belongs to its run to a list of runs.
fn read(text: &str) -> anyhow::Result<Value> {
    let mut report: Value = serde_json::from_str(text)?;
    let fields = report.as_object_mut().context("not a JSON object")?;
    let format = fields.get("format").and_then(Value::as_u64);
    ensure!(
        format == Some(FORMAT.into()),
        "its format is not {FORMAT}: use reports of this version"
    );
    ensure!(fields.contains_key("accounting"), "it has no accounting");
    if !fields.contains_key("runs") {
        let run: Map<String, Value> = OF_A_RUN
            .iter()
            .map(|name| {
                (
                    (*name).to_owned(),
                    fields.get(*name).cloned().unwrap_or_default(),
                )
            })
            .collect();
        fields.insert("runs".to_owned(), json!([run]));
    }
    for name in OF_A_RUN.iter().filter(|name| !LARGEST.contains(name)) {
        fields.remove(*name);
    }
    drop_fields(&mut report);
    Ok(report)
}

fn drop_fields(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|name, _| !DROPPED.contains(&&**name));
        fields.values_mut().for_each(drop_fields);
    }
}

/// Adds a value to another one, which has this name in its object.
fn add(name: &str, sum: &mut Value, value: Value) -> anyhow::Result<()> {
    match (sum, value) {
        (_, Value::Null) => {}
        (sum @ Value::Null, value) => *sum = value,
        (sum @ Value::Object(_), value @ Value::Object(_)) if sum.get("histogram").is_some() => {
            *sum = add_latency(sum, &value)?;
        }
        (Value::Object(sum), Value::Object(fields)) => {
            for (name, value) in fields {
                add(&name.clone(), sum.entry(name).or_insert(Value::Null), value)?;
            }
        }
        (Value::Array(sum), Value::Array(entries)) => {
            for entry in entries {
                let same =
                    |known: &&mut Value| !JOINED.contains(&name) && labels(known) == labels(&entry);
                match sum.iter_mut().find(same) {
                    Some(known) => add("", known, entry)?,
                    None => sum.push(entry),
                }
            }
        }
        // A statement about all runs, such as "missing", holds only if it holds of each.
        (Value::Bool(sum), Value::Bool(value)) => *sum &= value,
        (sum @ Value::Number(_), Value::Number(value)) => {
            *sum = match (name, sum.as_u64(), value.as_u64()) {
                ("format", _, _) => return Ok(()),
                (_, Some(sum), Some(value)) if !LARGEST.contains(&name) => {
                    json!(sum.saturating_add(value))
                }
                _ => {
                    let (sum, value) = (sum.as_f64().unwrap_or(0.0), value.as_f64().unwrap_or(0.0));
                    match LARGEST.contains(&name) {
                        true => json!(sum.max(value)),
                        false => json!(sum + value),
                    }
                }
            };
        }
        // One example is enough.
        (Value::String(_), Value::String(_)) => {}
        (sum, value) => bail!("{name} is {value} in one report and {sum} in another"),
    }
    Ok(())
}

/// Returns the texts of an entry, which tell it from others.
fn labels(entry: &Value) -> Vec<(&String, &str)> {
    let fields = entry.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
        .collect()
}

fn add_latency(sum: &Value, value: &Value) -> anyhow::Result<Value> {
    let histogram = |latency: &Value| {
        let text = latency["histogram"].as_str();
        decoded(text.context("a latency has no histogram")?)
    };
    let mut all = histogram(sum)?;
    all.add(&histogram(value)?)
        .map_err(|error| anyhow::anyhow!("histograms differ: {error}"))?;
    Ok(serde_json::to_value(Latency::new(&all))?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::full;
    use super::*;
    use crate::accounting::ViolationKind;

    /// A report with this seed, as JSON.
    fn report(seed: u64) -> String {
        let mut histogram = hdrhistogram::Histogram::new_with_bounds(1, 120_000_000, 2).unwrap();
        histogram.saturating_record_n(1000 * seed, 10);
        let mut report = full();
        report.seed = seed;
        report.latency = Latency::new(&histogram);
        report.throughput_per_s = 10.0;
        report.operations.operations = 100;
        report.accounting.totals.acknowledged = 7;
        report.accounting.holds = true;
        report.accounting.violations.clear();
        report.to_json()
    }

    fn merge(texts: &[&str]) -> anyhow::Result<MergedReport> {
        MergedReport::merge(texts.iter().map(|text| ("a.json", *text)))
    }

    #[test]
    fn counts_add_up_and_percentiles_come_from_all_latencies() {
        let (one, two) = (report(1), report(9));
        let merged = merge(&[&one, &two]).unwrap();
        let json: Value = serde_json::from_str(&merged.to_json()).unwrap();
        assert_eq!(json["operations"]["operations"], 200);
        assert_eq!(json["operations"]["by_kind"]["get"], 2);
        assert_eq!(json["accounting"]["acknowledged"], 14);
        assert_eq!(json["throughput_per_s"], 20.0);
        assert_eq!(json["duration_s"], 1.0);
        // Half of the operations took 1 ms, the others 9 ms.
        let p50 = json["latency"]["p50_ms"].as_f64().unwrap();
        let p99 = json["latency"]["p99_ms"].as_f64().unwrap();
        assert!(
            (0.99..1.02).contains(&p50) && (8.9..9.2).contains(&p99),
            "{p50} {p99}"
        );
        assert_eq!(json["retries"].as_array().unwrap().len(), 1);
        assert_eq!(json["retries"][0]["count"], 2);
        assert_eq!(json["faults"]["by_kind"][0]["count"], 2);
        assert_eq!(json["runs"][1]["seed"], 9);
        for dropped in ["timeline", "memory", "seed"] {
            assert!(json.get(dropped).is_none(), "{dropped}");
        }
        assert!(merged.holds());
    }

    #[test]
    fn a_merged_report_can_be_merged_again() {
        let all = merge(&[&report(1), &report(2), &report(3)]).unwrap();
        let two = merge(&[&report(1), &report(2)]).unwrap().to_json();
        let again = merge(&[&two, &report(3)]).unwrap();
        assert_eq!(all.to_json(), again.to_json());
    }

    #[test]
    fn equal_seeds_are_refused_also_in_a_merged_report() {
        let two = merge(&[&report(1), &report(2)]).unwrap().to_json();
        for texts in [[report(1), report(1)], [two, report(2)]] {
            let error = merge(&[&texts[0], &texts[1]]).unwrap_err().to_string();
            assert!(error.contains("repeats the seed"), "{error}");
        }
    }

    #[test]
    fn a_violation_of_one_run_is_a_violation_of_all() {
        let mut bad = full();
        bad.seed = 5;
        bad.latency =
            Latency::new(&hdrhistogram::Histogram::new_with_bounds(1, 120_000_000, 2).unwrap());
        bad.accounting.totals.lost = 1;
        assert!(matches!(
            bad.accounting.violations[0].kind,
            ViolationKind::Lost(_)
        ));
        let bad = bad.to_json();
        for texts in [[&*report(1), &bad], [&bad, &*report(1)]] {
            let merged = merge(&texts).unwrap();
            assert!(!merged.holds());
            let json: Value = serde_json::from_str(&merged.to_json()).unwrap();
            assert_eq!(json["accounting"]["lost"], 1);
            assert_eq!(json["accounting"]["violations"][0]["kind"], "lost");
        }
    }

    #[test]
    fn other_files_are_refused_with_their_name() {
        for text in ["", "{}", "[]", "{\"format\": 1}", "{\"format\": 4}"] {
            let error = format!("{:#}", merge(&[text]).unwrap_err());
            assert!(error.starts_with("a.json is not a report: "), "{error}");
        }
        assert!(merge(&[]).is_err());
    }
}
