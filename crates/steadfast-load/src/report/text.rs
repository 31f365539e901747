//! For people, on a terminal.

use std::collections::BTreeMap;
use std::fmt;

use super::{Left, Memory, Report};
use crate::measure::Decided;

/// The report as `steadfast load` prints it.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.operations;
        if let Some(after) = self.interrupted_after_s {
            let planned = self.planned_duration_s;
            writeln!(f, "interrupted     after {after:.1} s of {planned} s")?;
        }
        writeln!(
            f,
            "operations      {}     ok {}     failed {} ({} ambiguous)     timed out {} ({} ambiguous)",
            grouped(counts.operations),
            grouped(counts.ok),
            grouped(counts.failed),
            grouped(counts.failed_ambiguous),
            grouped(counts.timed_out),
            grouped(counts.timed_out_ambiguous),
        )?;
        let kinds = counts.by_kind.iter();
        let kinds = kinds.map(|(kind, count)| format!("{kind} {}", grouped(*count)));
        writeln!(f, "                {}", join(kinds))?;
        writeln!(
            f,
            "throughput      {} op/s over {:.1} s, {} at a time",
            grouped(self.throughput_per_s as u64),
            self.duration_s,
            self.concurrency
        )?;
        let latency = &self.latency;
        writeln!(
            f,
            "latency         p50 {}    p99 {}    p99.9 {}    max {}",
            millis(latency.p50_ms),
            millis(latency.p99_ms),
            millis(latency.p999_ms),
            millis(latency.max_ms)
        )?;
        self.write_decisions(f)?;
        if !counts.errors.is_empty() {
            let errors = counts.errors.iter();
            let errors = errors.map(|(name, count)| format!("{name} {}", grouped(*count)));
            writeln!(f, "errors          {}", join(errors))?;
        }
        if let Some(memory) = self.memory {
            let Memory {
                first_bytes,
                most_bytes,
                last_bytes,
            } = memory;
            let [first, most, last] =
                [first_bytes, most_bytes, last_bytes].map(|bytes| bytes >> 20);
            writeln!(
                f,
                "memory          {first} MB at first    {most} MB at most    {last} MB in the end"
            )?;
        }
        self.write_accounting(f)?;
        write!(f, "replay          {}", self.replay)
    }
}

impl Report {
    fn write_decisions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |decided: &[Decided]| decided.iter().map(|one| one.count).sum::<u64>();
        let reasons = by(&self.retries, |one| one.reason.clone());
        writeln!(
            f,
            "retries         {:<12}  {}",
            grouped(total(&self.retries)),
            reasons
        )?;
        if !self.retries.is_empty() {
            let stages = by(&self.retries, |one| one.stage.clone().unwrap_or_default());
            writeln!(f, "                              by stage: {stages}")?;
        }
        let causes = by(&self.refusals, |one| {
            format!("{} ({})", one.cause.clone().unwrap_or_default(), one.reason)
        });
        writeln!(
            f,
            "not retried     {:<12}  {}",
            grouped(total(&self.refusals)),
            causes
        )
    }

    fn write_accounting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.accounting.totals;
        writeln!(
            f,
            "writes          {}     acknowledged {}     failed {}     may have been applied {}{}",
            grouped(totals.writes),
            grouped(totals.acknowledged),
            grouped(totals.failed),
            grouped(totals.ambiguous),
            if self.accounting.journal {
                format!(" ({} were)", grouped(totals.ambiguous_applied))
            } else {
                String::new()
            }
        )?;
        writeln!(
            f,
            "accounting      acknowledged {}    lost {}    applied twice {}    unexplained {}{}     {}",
            grouped(totals.acknowledged),
            grouped(totals.lost),
            grouped(totals.applied_twice),
            grouped(totals.unexplained),
            match totals.unchecked {
                0 => String::new(),
                unchecked => format!("    unchecked {}", grouped(unchecked)),
            },
            match (self.accounting.holds, totals.is_violated()) {
                (true, _) => "✔",
                (false, true) => "✘ VIOLATED",
                (false, false) => "✘ NOT CHECKED",
            }
        )?;
        for violation in &self.accounting.violations {
            writeln!(f, "  ✘ {violation}")?;
        }
        let wrong = totals.lost + totals.applied_twice + totals.unexplained + totals.unchecked;
        let shown = self.accounting.violations.len() as u64;
        if wrong > shown {
            writeln!(f, "  … and {} more", grouped(wrong - shown))?;
        }
        if let Left {
            documents,
            example: Some(example),
        } = &self.left
        {
            let documents = grouped(*documents);
            writeln!(
                f,
                "left behind     documents that may be there: {documents}, one of them {example}"
            )?;
        }
        Ok(())
    }
}

/// Counts by a label, most first.
fn by(decided: &[Decided], label: impl Fn(&Decided) -> String) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for one in decided {
        *counts.entry(label(one)).or_default() += one.count;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    join(
        counts
            .into_iter()
            .map(|(label, count)| format!("{label} {}", grouped(count))),
    )
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" · ")
}

/// A number in groups of three digits.
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

/// Milliseconds in a form that suits their size.
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
    fn what_could_not_be_checked_or_removed_is_told_in_a_line_each() {
        let mut report = super::super::json::full();
        assert!(report.to_string().contains("unexplained 0     ✘"));
        report.accounting.totals.unchecked = 1234;
        let text = report.to_string();
        let line = "unexplained 0    unchecked 1 234     ✘ NOT CHECKED\n";
        assert!(text.contains(line), "{text}");
        let line = "\nleft behind     documents that may be there: 1, one of them text\n";
        assert!(text.contains(line), "{text}");
        assert!(
            report
                .to_html()
                .contains("Documents that may be left behind: 1,")
        );
        report.accounting.totals.lost = 1;
        report.left = Left::default();
        let text = report.to_string();
        assert!(text.contains("unchecked 1 234     ✘ VIOLATED\n"), "{text}");
        assert!(!text.contains("left behind"), "{text}");
    }

    #[test]
    fn numbers_are_grouped_and_times_suit_their_size() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(6_214_380), "6 214 380");
        assert_eq!(millis(0.9), "0.90 ms");
        assert_eq!(millis(14.2), "14 ms");
        assert_eq!(millis(2500.0), "2.50 s");
    }
}
