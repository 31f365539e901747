//! The report as text.

use std::collections::BTreeMap;
use std::fmt;

use super::{Leftovers, LoadReport};
use crate::measure::RetryCount;

/// A stall of this process that is longer is reported.
const STALL_MS: f64 = 250.0;

/// The text that `steadfast load` prints.
impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.operations;
        if let Some(after) = self.interrupted_after_s {
            let planned = self.planned_duration_s;
            row(
                f,
                "interrupted",
                [format!("after {after:.1} s of {planned} s")],
            )?;
        }
        row(
            f,
            "operations",
            [
                grouped(counts.operations),
                format!("ok {}", grouped(counts.ok)),
                format!(
                    "failed {} ({} ambiguous)",
                    grouped(counts.failed),
                    grouped(counts.failed_ambiguous)
                ),
                format!(
                    "timed out {} ({} ambiguous)",
                    grouped(counts.timed_out),
                    grouped(counts.timed_out_ambiguous)
                ),
            ],
        )?;
        row(f, "", counted(&counts.by_kind))?;
        row(
            f,
            "throughput",
            [format!(
                "{} op/s over {:.1} s, at most {} at a time",
                grouped(self.throughput_per_s.round() as u64),
                self.load_s,
                self.concurrency
            )],
        )?;
        self.write_starts(f)?;
        let latency = &self.latency;
        row(
            f,
            "latency",
            [
                format!("p50 {}", millis(latency.p50_ms)),
                format!("p99 {}", millis(latency.p99_ms)),
                format!("p99.9 {}", millis(latency.p999_ms)),
                format!("max {}", millis(latency.max_ms)),
            ],
        )?;
        if self.longest_stall_ms > STALL_MS {
            let late = millis(self.longest_stall_ms);
            row(
                f,
                "stalled",
                [format!(
                    "this process or its machine stood still for up to {late}: \
                     latencies and timeouts contain it"
                )],
            )?;
        }
        let read_back = &self.read_back;
        row(
            f,
            "read back",
            [format!(
                "{} operations in {:.1} s",
                grouped(read_back.operations),
                read_back.duration_s
            )],
        )?;
        self.write_retries(f)?;
        if !counts.errors.is_empty() {
            row(f, "errors", counted(&counts.errors))?;
        }
        if let Some(memory) = self.memory {
            row(
                f,
                "memory",
                [
                    format!("{} MB at first", memory.first_bytes >> 20),
                    format!("{} MB at most", memory.max_bytes >> 20),
                    format!("{} MB at the end", memory.last_bytes >> 20),
                ],
            )?;
        }
        self.write_coverage(f)?;
        self.write_accounting(f)?;
        write!(f, "{:<LABEL$}{}", "replay", self.replay)
    }
}

impl LoadReport {
    fn write_starts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(starts) = &self.starts else {
            return Ok(());
        };
        let (rate, intended) = (grouped(starts.rate_per_s), grouped(starts.intended));
        row(f, "starts", [format!("{intended} at {rate} per second")])?;
        if starts.late + starts.missed == 0 {
            return Ok(());
        }
        row(
            f,
            "",
            [
                format!("{} late", grouped(starts.late)),
                format!(
                    "{} missed because {} were in flight",
                    grouped(starts.missed),
                    grouped(self.concurrency.into())
                ),
                "raise --concurrency or lower --rate".to_owned(),
            ],
        )
    }

    fn write_retries(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(
            f,
            "retries",
            with_total(&self.retries, |one| one.reason.clone()),
        )?;
        if !self.retries.is_empty() {
            let stages = by(&self.retries, |one| one.stage.clone().unwrap_or_default());
            row(f, "  by stage", stages)?;
        }
        let refusals = with_total(&self.refusals, |one| {
            format!("{} ({})", one.cause.clone().unwrap_or_default(), one.reason)
        });
        row(f, "not retried", refusals)
    }

    fn write_coverage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.coverage.is_empty() {
            return Ok(());
        }
        // Several faults may have the same effect, which is counted for the whole run.
        let mut effects: BTreeMap<&str, u64> = BTreeMap::new();
        for effect in &self.coverage {
            let count = effects.entry(&effect.causes).or_default();
            *count = match &*effect.causes {
                "requests hit" => *count + effect.count,
                _ => effect.count,
            };
        }
        let (all, missing) = (self.coverage.len(), self.missing_coverage());
        let covered = all - missing;
        row(
            f,
            "coverage",
            [format!("{covered} of {all} effects of faults")],
        )?;
        for (causes, count) in effects {
            row(f, "", [format!("{causes}: {}", grouped(count))])?;
        }
        for effect in self.coverage.iter().filter(|effect| effect.missing) {
            writeln!(f, "  ✘ not covered: {}: {}", effect.fault, effect.causes)?;
        }
        Ok(())
    }

    fn write_accounting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.accounting.totals;
        let mut ambiguous = format!("may have been applied {}", grouped(totals.ambiguous));
        if self.accounting.journal {
            ambiguous += &format!(" ({} were)", grouped(totals.ambiguous_applied));
        }
        row(
            f,
            "writes",
            [
                grouped(totals.writes),
                format!("acknowledged {}", grouped(totals.acknowledged)),
                format!("failed {}", grouped(totals.failed)),
                ambiguous,
            ],
        )?;
        let verdict = match (self.accounting.holds, totals.is_violated()) {
            (true, _) => "✔",
            (false, true) => "✘ VIOLATED:",
            (false, false) => "✘ NOT CHECKED:",
        };
        let mut accounting = vec![
            format!("{verdict} lost {}", grouped(totals.lost)),
            format!("applied twice {}", grouped(totals.applied_twice)),
            format!("unexplained {}", grouped(totals.unexplained)),
        ];
        if totals.unchecked > 0 {
            accounting.push(format!("unchecked {}", grouped(totals.unchecked)));
        }
        row(f, "accounting", accounting)?;
        let mut order = vec![format!(
            "{} operations on shared documents checked",
            grouped(totals.ordered)
        )];
        if totals.unordered > 0 {
            let unordered = grouped(totals.unordered);
            order.push(format!("{unordered} not checked: too many at a time"));
        }
        order.push(format!(
            "ambiguous errors {} ({} without need)",
            grouped(totals.called_ambiguous),
            grouped(totals.needlessly_ambiguous)
        ));
        row(f, "order", order)?;
        for violation in &self.accounting.violations {
            writeln!(f, "  ✘ {violation}")?;
        }
        let wrong = totals.lost + totals.applied_twice + totals.unexplained + totals.unchecked;
        let shown = self.accounting.violations.len() as u64;
        if wrong > shown {
            writeln!(f, "  … and {} more", grouped(wrong - shown))?;
        }
        if let Leftovers {
            documents,
            example: Some(example),
        } = &self.leftovers
        {
            let documents = grouped(*documents);
            let text =
                format!("{documents} documents that could not be removed, such as {example}");
            row(f, "left behind", [text])?;
        }
        Ok(())
    }
}

/// The columns of a label.
const LABEL: usize = 16;

/// The columns of a line. A narrower terminal breaks the lines itself.
const WIDTH: usize = 80;

/// Writes a label and its parts, on as many lines as they need.
fn row(
    f: &mut fmt::Formatter<'_>,
    label: &str,
    parts: impl IntoIterator<Item = String>,
) -> fmt::Result {
    write!(f, "{label:<LABEL$}")?;
    let mut column = LABEL;
    for (index, part) in parts.into_iter().enumerate() {
        let width = part.chars().count();
        if index > 0 && column + 3 + width > WIDTH {
            write!(f, "\n{:LABEL$}", "")?;
            column = LABEL;
        } else if index > 0 {
            write!(f, " · ")?;
            column += 3;
        }
        write!(f, "{part}")?;
        column += width;
    }
    writeln!(f)
}

/// Lists counts by name.
fn counted<N: fmt::Display>(counts: &BTreeMap<N, u64>) -> impl Iterator<Item = String> {
    counts
        .iter()
        .map(|(name, count)| format!("{name} {}", grouped(*count)))
}

/// Lists the sum of all counts, and the counts by a label.
fn with_total(counts: &[RetryCount], label: impl Fn(&RetryCount) -> String) -> Vec<String> {
    let total = counts.iter().map(|one| one.count).sum();
    let mut parts = by(counts, label);
    parts.insert(0, grouped(total));
    parts
}

/// Lists counts by a label, the largest first.
fn by(counts: &[RetryCount], label: impl Fn(&RetryCount) -> String) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for one in counts {
        *sums.entry(label(one)).or_default() += one.count;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let sums = sums.into_iter();
    sums.map(|(label, count)| format!("{label} {}", grouped(count)))
        .collect()
}

/// Formats a number in groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Formats milliseconds with a unit that suits their size.
pub(crate) fn millis(millis: f64) -> String {
    match millis {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchecked_writes_and_leftovers_have_a_line_each() {
        let mut report = super::super::tests::full();
        assert!(report.to_string().contains("✘ NOT CHECKED: lost 0"));
        report.accounting.totals.unchecked = 1234;
        let text = report.to_string();
        let line = " unchecked 1 234\n";
        assert!(text.contains(line), "{text}");
        let line = "\nleft behind     1 documents that could not be removed, such as text\n";
        assert!(text.contains(line), "{text}");
        report.accounting.totals.lost = 1;
        report.leftovers = Leftovers::default();
        let text = report.to_string();
        assert!(text.contains("✘ VIOLATED: lost 1 ·"), "{text}");
        assert!(!text.contains("left behind"), "{text}");
    }

    #[test]
    fn lines_have_at_most_80_columns() {
        let mut report = super::super::tests::full();
        for kind in 0..40 {
            let errors = &mut report.operations.errors;
            errors.insert(format!("SomeErrorOfKind{kind}"), 1_000_000);
        }
        let text = report.to_string();
        // A command and sentences may be longer.
        let rows = text
            .lines()
            .filter(|line| !line.starts_with("replay") && !line.starts_with("  ✘"));
        let long: Vec<_> = rows.filter(|line| line.chars().count() > WIDTH).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn numbers_are_grouped_and_times_have_a_suitable_unit() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(6_214_380), "6 214 380");
        assert_eq!(millis(0.9), "0.90 ms");
        assert_eq!(millis(14.2), "14 ms");
        assert_eq!(millis(2500.0), "2.50 s");
    }
}
