//! The report as text.

use std::collections::BTreeMap;
use std::fmt;

use super::{Leftovers, LoadReport};
use crate::measure::RetryCount;

/// The text that `steadfast load` prints.
impl fmt::Display for LoadReport {
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
            "throughput      {} op/s over {:.1} s, at most {} at a time",
            grouped(self.throughput_per_s.round() as u64),
            self.load_s,
            self.concurrency
        )?;
        self.write_starts(f)?;
        let latency = &self.latency;
        writeln!(
            f,
            "latency         p50 {}    p99 {}    p99.9 {}    max {}",
            millis(latency.p50_ms),
            millis(latency.p99_ms),
            millis(latency.p999_ms),
            millis(latency.max_ms)
        )?;
        let read_back = &self.read_back;
        writeln!(
            f,
            "read back       {} operations in {:.1} s    p50 {}    p99 {}",
            grouped(read_back.operations),
            read_back.duration_s,
            millis(read_back.latency.p50_ms),
            millis(read_back.latency.p99_ms)
        )?;
        self.write_retries(f)?;
        if !counts.errors.is_empty() {
            let errors = counts.errors.iter();
            let errors = errors.map(|(name, count)| format!("{name} {}", grouped(*count)));
            writeln!(f, "errors          {}", join(errors))?;
        }
        if let Some(memory) = self.memory {
            let [first, max, last] =
                [memory.first_bytes, memory.max_bytes, memory.last_bytes].map(|bytes| bytes >> 20);
            writeln!(
                f,
                "memory          {first} MB at first    {max} MB at most    {last} MB at the end"
            )?;
        }
        self.write_coverage(f)?;
        self.write_accounting(f)?;
        write!(f, "replay          {}", self.replay)
    }
}

impl LoadReport {
    fn write_starts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(starts) = &self.starts else {
            return Ok(());
        };
        let (rate, intended) = (grouped(starts.rate_per_s), grouped(starts.intended));
        write!(f, "starts          {intended} at {rate} per second")?;
        if starts.late + starts.missed > 0 {
            write!(
                f,
                ", {} late and {} missed, because {} operations were in flight: \
                 raise --concurrency or lower --rate",
                grouped(starts.late),
                grouped(starts.missed),
                grouped(self.concurrency.into())
            )?;
        }
        writeln!(f)
    }

    fn write_retries(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |counts: &[RetryCount]| counts.iter().map(|one| one.count).sum::<u64>();
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
        let effects = effects.into_iter();
        let effects = effects.map(|(causes, count)| format!("{causes}: {}", grouped(count)));
        writeln!(
            f,
            "coverage        {} of {all} effects of faults",
            all - missing
        )?;
        for effect in effects {
            writeln!(f, "                {effect}")?;
        }
        for effect in self.coverage.iter().filter(|effect| effect.missing) {
            writeln!(f, "  ✘ not covered: {}: {}", effect.fault, effect.causes)?;
        }
        Ok(())
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
        writeln!(
            f,
            "order           {} operations on shared documents checked    ambiguous errors {} ({} without need)",
            grouped(totals.ordered),
            grouped(totals.called_ambiguous),
            grouped(totals.needlessly_ambiguous),
        )?;
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
            writeln!(
                f,
                "left behind     {documents} documents that could not be removed, such as {example}"
            )?;
        }
        Ok(())
    }
}

/// Lists counts by a label, the largest first.
fn by(counts: &[RetryCount], label: impl Fn(&RetryCount) -> String) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for one in counts {
        *sums.entry(label(one)).or_default() += one.count;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let sums = sums.into_iter();
    join(sums.map(|(label, count)| format!("{label} {}", grouped(count))))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" · ")
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
        assert!(report.to_string().contains("unexplained 0     ✘"));
        report.accounting.totals.unchecked = 1234;
        let text = report.to_string();
        let line = "unexplained 0    unchecked 1 234     ✘ NOT CHECKED\n";
        assert!(text.contains(line), "{text}");
        let line = "\nleft behind     1 documents that could not be removed, such as text\n";
        assert!(text.contains(line), "{text}");
        assert!(
            report
                .to_html()
                .contains("Documents that could not be removed: 1,")
        );
        report.accounting.totals.lost = 1;
        report.leftovers = Leftovers::default();
        let text = report.to_string();
        assert!(text.contains("unchecked 1 234     ✘ VIOLATED\n"), "{text}");
        assert!(!text.contains("left behind"), "{text}");
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
