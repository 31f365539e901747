//! The report as one self-contained page: charts, and the report as text.

mod axis;
mod bars;
mod chart;

use super::LoadReport;
use crate::measure::Sample;
use axis::Axis;
use chart::{Chart, Series};

const STYLE: &str = include_str!("page.css");

pub(super) fn page(report: &LoadReport) -> String {
    let (class, result) = if report.holds() {
        ("result", "✔ Every write is accounted for")
    } else if report.is_violated() {
        ("result bad", "✘ The accounting does not hold")
    } else {
        ("result bad", "✘ Not everything could be checked")
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>steadfast load, seed {seed}</title>\n<style>\n{STYLE}</style>\n<main>\n\
         <h1>steadfast load</h1>\n<p class=\"sub\">{cluster} · {client} · strategy {strategy} · seed {seed}</p>\n\
         <p class=\"{class}\">{result}</p>\n<pre tabindex=\"0\">{text}</pre>\n{pictures}{charts}</main>\n",
        seed = report.seed,
        cluster = escaped(&report.cluster),
        client = escaped(&report.client),
        strategy = escaped(&report.strategy),
        text = escaped(&report.to_string()),
        pictures = pictures(report),
        charts = charts(report),
    )
}

/// Draws the histories that no order of the operations explains.
fn pictures(report: &LoadReport) -> String {
    let violations = report.accounting.violations.iter();
    let drawn = violations.filter(|violation| !violation.operations.is_empty());
    drawn
        .map(|violation| {
            let subject = escaped(&violation.subject);
            format!(
                "<h2>{subject}</h2>\n{}",
                bars::picture(&violation.operations)
            )
        })
        .collect()
}

fn charts(report: &LoadReport) -> String {
    let samples = &report.timeline;
    if samples.is_empty() {
        return String::new();
    }
    let chart = Chart::new(samples, &report.faults.injected, report.load_s);
    let series = |name, value: &dyn Fn(&Sample) -> Option<f64>| Series {
        name,
        values: samples.iter().map(value).collect(),
    };
    let throughput = [series("load", &|sample| {
        Some((sample.ok + sample.failed) as f64 / sample.length_s.max(0.001))
    })];
    let latency = [
        series("p50", &|sample| sample.p50_ms),
        series("p99", &|sample| sample.p99_ms),
        series("p99.9", &|sample| sample.p999_ms),
    ];
    let most = throughput[0].values.iter().flatten().copied();
    let most = Axis::linear(most.fold(0.0, f64::max));
    let decades = Axis::log(
        latency
            .iter()
            .flat_map(|one| one.values.iter().flatten().copied()),
    );
    let mut charts =
        "<h2>Over time</h2>\n<p class=\"sub\">The grey end is the time after the load, \
                      in which documents are read back.</p>\n"
            .to_owned();
    charts += &chart.lanes();
    charts += &chart.lines("Throughput", "op/s", &most, &throughput);
    charts += &chart.lines(
        "Latency",
        "of operations that succeeded",
        &decades,
        &latency,
    );
    charts
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
