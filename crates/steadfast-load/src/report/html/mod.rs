//! The report as one self-contained page: nothing is loaded from elsewhere.

mod axis;
mod bars;
mod chart;
mod lanes;
mod timeline;

use std::fmt::Write;

use bars::picture;

use super::LoadReport;
use super::text::{grouped, millis};
use crate::faults::{Coverage, FaultLog};
use crate::measure::RetryCount;

/// The largest number of faults that are drawn and listed one by one.
const LISTED: usize = 60;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn page(report: &LoadReport) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>steadfast load, seed {}</title>\n<style>\n{STYLE}</style>\n<main>\n",
        report.seed
    );
    page += &head(report);
    page += &timeline::timeline(report);
    page += &faults(&report.faults);
    page += &coverage(&report.coverage);
    page += &mix(report);
    page += &counts("Retries", "stage", &report.retries, |one| &one.stage);
    page += &counts("Not retried", "cause", &report.refusals, |one| &one.cause);
    page += &violations(report);
    page += &format!(
        "<h2>Replay</h2>\n<pre tabindex=\"0\">{}</pre>\n</main>\n",
        escaped(&report.replay)
    );
    if !report.timeline.is_empty() {
        page += &format!("<script>\n{SCRIPT}</script>\n");
    }
    page
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
        (millis(report.latency.p999_ms), "latency, p99.9"),
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

/// Lists the operations by kind, with their shares, and the errors.
fn mix(report: &LoadReport) -> String {
    let counts = &report.operations;
    let kinds = counts.by_kind.iter().map(|(kind, count)| (*kind, *count));
    let errors = counts.errors.iter();
    let errors = errors.map(|(name, count)| (name.as_str(), *count));
    shares("Operations", "operation", kinds.collect()) + &shares("Errors", "kind", errors.collect())
}

fn shares(title: &str, column: &str, mut counts: Vec<(&str, u64)>) -> String {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return String::new();
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut table = open_table(title, &[column, "count", "share", ""]);
    for (name, count) in counts {
        let share = 100.0 * count as f64 / total as f64;
        let _ = writeln!(
            table,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{share:.1} %\
             <td class=\"share\"><i style=\"width:{share:.1}%\"></i>",
            escaped(name),
            grouped(count)
        );
    }
    table + CLOSE_TABLE
}

/// Begins a section with a table. An empty title of a column is for decoration.
fn open_table(title: &str, columns: &[&str]) -> String {
    let mut table = format!(
        "<h2>{title}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n<thead><tr>"
    );
    for column in columns {
        table += &match *column {
            "" => "<td>".to_owned(),
            "no." | "from" | "until" | "count" | "share" | "time in all" => {
                format!("<th scope=\"col\" class=\"n\">{column}")
            }
            column => format!("<th scope=\"col\">{column}"),
        };
    }
    table + "</thead>\n<tbody>\n"
}

const CLOSE_TABLE: &str = "</tbody></table></div>\n";

/// Lists the faults one by one, or by kind for a long run.
fn faults(log: &FaultLog) -> String {
    const TITLE: &str = "Injected faults";
    if log.injected.is_empty() && log.by_kind.is_empty() {
        return String::new();
    }
    if is_long(log) {
        let mut table = open_table(TITLE, &["count", "time in all", "fault"]);
        for totals in &log.by_kind {
            table += &format!(
                "<tr><td class=\"n\">{} times<td class=\"n\">{:.0} s<td>{}\n",
                grouped(totals.count),
                totals.duration_s,
                escaped(&totals.fault)
            );
        }
        return table + CLOSE_TABLE;
    }
    let mut table = open_table(TITLE, &["no.", "from", "until", "fault"]);
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
    table + CLOSE_TABLE
}

/// Lists what the faults caused.
fn coverage(coverage: &[Coverage]) -> String {
    if coverage.is_empty() {
        return String::new();
    }
    let mut table = open_table("Effects of the faults", &["fault", "effect", "count"]);
    for effect in coverage {
        table += &format!(
            "<tr><td>{}<td>{}{}<td class=\"n\">{}\n",
            escaped(&effect.fault),
            if effect.missing { "✘ " } else { "" },
            escaped(&effect.causes),
            grouped(effect.count)
        );
    }
    table + CLOSE_TABLE
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
    let mut table = open_table(title, &["reason", column, "count"]);
    for one in sorted {
        table += &format!(
            "<tr><td>{}<td class=\"soft\">{}<td class=\"n\">{}\n",
            escaped(&one.reason),
            escaped(label(one).as_deref().unwrap_or_default()),
            grouped(one.count)
        );
    }
    table + CLOSE_TABLE
}

fn violations(report: &LoadReport) -> String {
    if report.accounting.violations.is_empty() {
        return String::new();
    }
    let mut list = "<h2>Violations</h2>\n".to_owned();
    for violation in &report.accounting.violations {
        list += &format!(
            "<pre tabindex=\"0\">{}</pre>\n",
            escaped(&violation.to_string())
        );
        list += &picture(&violation.operations);
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
    use crate::faults::{FaultTotals, InjectedFault};

    #[test]
    fn a_run_without_faults_and_errors_has_no_empty_sections() {
        assert_eq!(faults(&FaultLog::default()), "");
        assert_eq!(shares("Errors", "kind", Vec::new()), "");
        let mix = shares("Operations", "operation", vec![("get", 1), ("upsert", 3)]);
        assert!(mix.find("upsert") < mix.find("get"), "{mix}");
        assert!(mix.contains("75.0 %"), "{mix}");
    }

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
