//! The report as one self-contained page, without scripts, fonts or links.

mod chart;

use std::collections::BTreeSet;
use std::fmt::Write;

use chart::Chart;

use super::LoadReport;
use super::text::{grouped, millis};
use crate::faults::{Coverage, FaultLog, InjectedFault};
use crate::measure::{RetryCount, Sample};

/// The largest number of faults that are drawn and listed one by one.
const LISTED: usize = 60;

const STYLE: &str = include_str!("page.css");

pub(super) fn page(report: &LoadReport) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>steadfast load, seed {}</title>\n<style>\n{STYLE}</style>\n",
        report.seed
    );
    page += &head(report);
    page += &timeline(report);
    page += &faults(&report.faults);
    page += &coverage(&report.coverage);
    page += &counts("Retries", "stage", &report.retries, |one| &one.stage);
    page += &counts("Not retried", "cause", &report.refusals, |one| &one.cause);
    page += &violations(report);
    page + &format!("<h2>Replay</h2>\n<pre>{}</pre>\n", escaped(&report.replay))
}

fn head(report: &LoadReport) -> String {
    let totals = &report.accounting.totals;
    let (class, result) = if report.holds() {
        ("result", "✔ Every write is accounted for")
    } else if totals.is_violated() {
        ("result bad", "✘ The accounting does not hold")
    } else {
        ("result bad", "✘ Not everything could be checked")
    };
    let unchecked = match totals.unchecked {
        0 => String::new(),
        unchecked => format!(", unchecked {}", grouped(unchecked)),
    };
    let mut head = format!(
        "<h1>steadfast load</h1>\n<p class=\"sub\">{} · {} · strategy {} · seed <code>{}</code></p>\n\
         <p class=\"{class}\">{result}: acknowledged {}, lost {}, applied twice {}, unexplained {}{unchecked}</p>\n",
        escaped(&report.cluster),
        escaped(&report.client),
        escaped(&report.strategy),
        report.seed,
        grouped(totals.acknowledged),
        grouped(totals.lost),
        grouped(totals.applied_twice),
        grouped(totals.unexplained),
    );
    if let Some(after) = report.interrupted_after_s {
        let planned = report.planned_duration_s;
        head += &format!("<p>Interrupted after {after:.1} s of {planned} s.</p>\n");
    }
    if let Some(example) = &report.leftovers.example {
        head += &format!(
            "<p>Documents that could not be removed: {}, such as <code>{}</code>.</p>\n",
            grouped(report.leftovers.documents),
            escaped(example)
        );
    }
    head += "<div class=\"tiles\">\n";
    let counts = &report.operations;
    let retries: u64 = report.retries.iter().map(|one| one.count).sum();
    for (value, label) in [
        (grouped(counts.operations), "operations"),
        (
            format!("{} op/s", grouped(report.throughput_per_s.round() as u64)),
            "throughput",
        ),
        (millis(report.latency.p50_ms), "latency, median"),
        (millis(report.latency.p99_ms), "latency, p99"),
        (millis(report.latency.max_ms), "latency, max"),
        (grouped(retries), "retries"),
        (grouped(counts.failed), "failed"),
        (
            format!(
                "{} ({})",
                grouped(counts.timed_out),
                grouped(counts.timed_out_ambiguous)
            ),
            "timed out (ambiguous)",
        ),
        (
            grouped(totals.ambiguous),
            "writes that may have been applied",
        ),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(head, "<div><b>{value}</b><span>{label}</span></div>");
    }
    head + "</div>\n"
}

fn timeline(report: &LoadReport) -> String {
    let samples = &report.timeline;
    let long = is_long(&report.faults);
    let faults: &[InjectedFault] = if long { &[] } else { &report.faults.injected };
    let chart = Chart::new(samples, faults);
    let rate = |count: u64, sample: &Sample| count as f64 / sample.length_s.max(0.001);
    let rates = samples.iter().map(|sample| rate(sample.ok, sample));
    let throughput = chart.line("op/s", rates.collect(), "var(--c0)");
    let reasons = samples.iter().flat_map(|sample| sample.retries.keys());
    let reasons: BTreeSet<&String> = reasons.collect();
    let colour = |at: usize| format!("var(--c{})", at % 8);
    let layers = reasons.iter().enumerate().map(|(at, reason)| {
        let values = samples.iter().map(|sample| {
            let count = sample.retries.get(*reason).copied().unwrap_or(0);
            rate(count, sample)
        });
        (values.collect(), colour(at))
    });
    let retries = chart.stack("retries/s", layers.collect());
    let p99 = samples.iter().map(|sample| sample.p99_ms).collect();
    let latency = chart.line("ms", p99, "var(--c3)");
    let resident = |sample: &Sample| sample.resident_bytes.unwrap_or(0) as f64 / f64::from(1 << 20);
    let memory = if report.memory.is_some() {
        let values = samples.iter().map(resident).collect();
        let memory = chart.line("MB", values, "var(--c4)");
        format!("<h2>Memory of the process</h2>\n{memory}")
    } else {
        String::new()
    };
    let bands = if long || faults.is_empty() {
        ""
    } else {
        "<p class=\"sub\">Numbered bands: injected faults, listed below.</p>\n"
    };
    let legend: String = reasons
        .iter()
        .enumerate()
        .map(|(at, reason)| {
            let (colour, reason) = (colour(at), escaped(reason));
            format!("<span><i style=\"background:{colour}\"></i>{reason}</span>")
        })
        .collect();
    format!(
        "<h2>Throughput</h2>\n{throughput}<h2>Retries by reason</h2>\n{retries}\
         <div class=\"legend\">{legend}</div>\n<h2>Latency, p99</h2>\n{latency}{memory}{bands}"
    )
}

/// Lists the faults one by one, or by kind for a long run.
fn faults(log: &FaultLog) -> String {
    let mut table = "<h2>Injected faults</h2>\n<div class=\"scroll\"><table>\n".to_owned();
    if is_long(log) {
        for totals in &log.by_kind {
            table += &format!(
                "<tr><td class=\"n\">{} times<td class=\"n\">{:.0} s<td>{}\n",
                grouped(totals.count),
                totals.duration_s,
                escaped(&totals.fault)
            );
        }
        return table + "</table></div>\n";
    }
    for (at, injected) in (1..).zip(&log.injected) {
        let until = injected
            .until_s
            .map_or_else(String::new, |until| format!("{until:.1} s"));
        table += &format!(
            "<tr><td class=\"n\">{at}<td class=\"n\">{:.1} s<td class=\"n\">{until}<td>{}\n",
            injected.from_s,
            escaped(&injected.fault)
        );
    }
    table + "</table></div>\n"
}

/// Lists what the faults caused.
fn coverage(coverage: &[Coverage]) -> String {
    if coverage.is_empty() {
        return String::new();
    }
    let mut table = "<h2>Effects of the faults</h2>\n<div class=\"scroll\"><table>\n".to_owned();
    for effect in coverage {
        table += &format!(
            "<tr><td>{}<td>{}{}<td class=\"n\">{}\n",
            escaped(&effect.fault),
            if effect.missing { "✘ " } else { "" },
            escaped(&effect.causes),
            grouped(effect.count)
        );
    }
    table + "</table></div>\n"
}

/// Returns whether there are too many faults to list each.
fn is_long(log: &FaultLog) -> bool {
    log.injected.len() > LISTED || log.injected_dropped > 0
}

fn counts(
    title: &str,
    column: &str,
    counts: &[RetryCount],
    label: impl Fn(&RetryCount) -> &Option<String>,
) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(one.count));
    let mut table = format!(
        "<h2>{title}</h2>\n<div class=\"scroll\"><table>\n<tr><th>reason<th>{column}<th>\n"
    );
    for one in sorted {
        table += &format!(
            "<tr><td>{}<td class=\"soft\">{}<td class=\"n\">{}\n",
            escaped(&one.reason),
            escaped(label(one).as_deref().unwrap_or_default()),
            grouped(one.count)
        );
    }
    table + "</table></div>\n"
}

fn violations(report: &LoadReport) -> String {
    if report.accounting.violations.is_empty() {
        return String::new();
    }
    let mut list = "<h2>Violations</h2>\n".to_owned();
    for violation in &report.accounting.violations {
        list += &format!("<pre>{}</pre>\n", escaped(&violation.to_string()));
    }
    list
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::FaultTotals;

    #[test]
    fn the_faults_of_a_long_run_are_counted_instead_of_listed() {
        let injected = InjectedFault {
            fault: "a node <crashed>".to_owned(),
            from_s: 1.0,
            until_s: Some(2.0),
            due_s: 2.0,
        };
        let totals = FaultTotals {
            fault: "a node <crashed>".to_owned(),
            count: 1234,
            duration_s: 90.4,
            hits: 5,
            kind: crate::faults::FaultKind::Crash,
        };
        let mut log = FaultLog {
            by_kind: vec![totals],
            injected: vec![injected.clone(); 3],
            ..FaultLog::default()
        };
        let few = faults(&log);
        assert_eq!(few.matches("a node &lt;crashed&gt;").count(), 3, "{few}");
        log.injected = vec![injected; 1000];
        let many = faults(&log);
        assert_eq!(many.matches("a node &lt;crashed&gt;").count(), 1, "{many}");
        assert!(many.contains("1 234 times"), "{many}");
    }
}
