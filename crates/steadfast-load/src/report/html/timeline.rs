//! The charts of a run, and its values one by one.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;

use super::super::LoadReport;
use super::super::text::{grouped, millis};
use super::axis::Axis;
use super::chart::{Caption, Chart, Series};
use super::{escaped, is_long};
use crate::faults::InjectedFault;
use crate::measure::Sample;

/// The number of names that get a colour of their own; the others share one.
const COLOURS: usize = 5;

pub(super) fn timeline(report: &LoadReport) -> String {
    let samples = &report.timeline;
    if samples.is_empty() {
        return String::new();
    }
    let listed = !is_long(&report.faults);
    let faults: &[InjectedFault] = if listed { &report.faults.injected } else { &[] };
    let chart = Chart::new(samples, faults, Some(report.load_s));
    let mut page = "<h2>Over time</h2>\n".to_owned();
    page += "<p class=\"sub\">The grey end is the time after the load, in which documents are read back. That is not in the throughput.</p>\n";
    page += &probe(&chart, samples);
    page += &chart.lanes();
    page += &throughput(&chart, samples);
    page += &latency(&chart, samples);
    page += &by_name(&chart, samples, FAILURES, |sample| &sample.errors);
    page += &by_name(&chart, samples, RETRIES, |sample| &sample.retries);
    if report.memory.is_some() {
        let resident = |sample: &Sample| Some(sample.resident_bytes? as f64 / f64::from(1 << 20));
        page += &chart_of(&chart, MEMORY, vec![series("memory", samples, resident)]);
    }
    page + &table(samples)
}

const THROUGHPUT: Caption = Caption {
    title: "Throughput",
    unit: "op/s",
};
const LATENCY: Caption = Caption {
    title: "Latency",
    unit: "ms, log scale; of operations that succeeded; a gap where none did",
};
const FAILURES: Caption = Caption {
    title: "Failures by kind",
    unit: "failures/s",
};
const RETRIES: Caption = Caption {
    title: "Retries by reason",
    unit: "retries/s",
};
const MEMORY: Caption = Caption {
    title: "Memory of the process",
    unit: "MB",
};

fn throughput(chart: &Chart<'_>, samples: &[Sample]) -> String {
    let load = series("load", samples, |sample| {
        Some(rate(sample.ok + sample.failed, sample))
    });
    chart_of(chart, THROUGHPUT, vec![load])
}

fn latency(chart: &Chart<'_>, samples: &[Sample]) -> String {
    let series = [
        series("p50", samples, |sample| sample.p50_ms),
        series("p99", samples, |sample| sample.p99_ms),
        series("p99.9", samples, |sample| sample.p999_ms),
    ];
    let values = series
        .iter()
        .flat_map(|one| one.values.iter().flatten().copied());
    let axis = Axis::log(values);
    chart.lines(LATENCY, &axis, &series)
}

fn chart_of(chart: &Chart<'_>, caption: Caption, series: Vec<Series>) -> String {
    let values = series
        .iter()
        .flat_map(|one| one.values.iter().flatten().copied());
    let axis = Axis::linear(values.fold(0.0, f64::max));
    chart.lines(caption, &axis, &series)
}

/// Draws counts by name as areas: the most frequent names, and the rest as one.
fn by_name(
    chart: &Chart<'_>,
    samples: &[Sample],
    caption: Caption,
    counts: impl Fn(&Sample) -> &BTreeMap<String, u64>,
) -> String {
    let mut totals: BTreeMap<&String, u64> = BTreeMap::new();
    for (name, count) in samples.iter().flat_map(&counts) {
        *totals.entry(name).or_default() += count;
    }
    if totals.is_empty() {
        return String::new();
    }
    let mut names: Vec<_> = totals.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let names: Vec<&String> = names.into_iter().map(|(name, _)| name).collect();
    let own = match names.len() {
        few if few <= COLOURS => few,
        _ => COLOURS - 1,
    };
    let (own, others) = names.split_at(own);
    let of = |sample: &Sample, name: &String| counts(sample).get(name).copied().unwrap_or(0);
    let mut layers: Vec<Series> = own
        .iter()
        .map(|name| series(name, samples, |sample| Some(rate(of(sample, name), sample))))
        .collect();
    if !others.is_empty() {
        let sum = |sample: &Sample| others.iter().map(|name| of(sample, name)).sum::<u64>();
        layers.push(series("others", samples, |sample| {
            Some(rate(sum(sample), sample))
        }));
    }
    chart.stack(caption, &layers)
}

fn series(name: &str, samples: &[Sample], value: impl Fn(&Sample) -> Option<f64>) -> Series {
    Series {
        name: name.to_owned(),
        values: samples.iter().map(value).collect(),
    }
}

fn rate(count: u64, sample: &Sample) -> f64 {
    count as f64 / sample.length_s.max(0.001)
}

/// The slider that shows the values at a point in time. It needs the script; the table below
/// the charts does not.
fn probe(chart: &Chart<'_>, samples: &[Sample]) -> String {
    let rows = samples
        .iter()
        .map(|sample| json!([chart.position(sample), describe(sample)]));
    let rows = rows.collect::<serde_json::Value>().to_string();
    // So that no text ends the element.
    let rows = rows.replace('<', "\\u003c");
    let last = samples.len() - 1;
    format!(
        "<div id=\"probe\" hidden><label>Values at a time\n\
         <input type=\"range\" min=\"0\" max=\"{last}\" value=\"0\"></label>\n\
         <output aria-live=\"off\">Point at a chart, or use the arrow keys here.</output></div>\n\
         <script type=\"application/json\" id=\"samples\">{rows}</script>\n"
    )
}

/// Describes a sample on one line.
fn describe(sample: &Sample) -> String {
    let mut text = format!("{:.1} s: ", sample.at_s);
    let rate = |count: u64| grouped(rate(count, sample).round() as u64);
    let _ = write!(text, "{} op/s", rate(sample.ok + sample.failed));
    if sample.read_back > 0 {
        let _ = write!(text, ", reading back {} op/s", rate(sample.read_back));
    }
    let _ = match (sample.p50_ms, sample.p99_ms, sample.p999_ms) {
        (Some(p50), Some(p99), Some(p999)) => write!(
            text,
            ", p50 {}, p99 {}, p99.9 {}",
            millis(p50),
            millis(p99),
            millis(p999)
        ),
        _ => write!(text, ", nothing succeeded"),
    };
    for (title, counts) in [("failures", &sample.errors), ("retries", &sample.retries)] {
        if !counts.is_empty() {
            let counts = counts
                .iter()
                .map(|(name, count)| format!("{name} {}", grouped(*count)));
            let _ = write!(text, ", {title}: {}", counts.collect::<Vec<_>>().join(", "));
        }
    }
    text
}

/// All values as a table, for those who cannot see the charts.
fn table(samples: &[Sample]) -> String {
    let mut table = "<details><summary>Values as a table</summary>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Values over time\"><table>\n\
         <thead><tr><th scope=\"col\">until<th scope=\"col\">op/s<th scope=\"col\">read back/s\
         <th scope=\"col\">failed<th scope=\"col\">retries<th scope=\"col\">p50<th scope=\"col\">p99\
         <th scope=\"col\">p99.9</thead>\n<tbody>\n"
        .to_owned();
    for sample in samples {
        let latency = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), millis);
        let cells = [
            grouped(rate(sample.ok + sample.failed, sample).round() as u64),
            grouped(rate(sample.read_back, sample).round() as u64),
            grouped(sample.failed),
            grouped(sample.retries.values().sum()),
            latency(sample.p50_ms),
            latency(sample.p99_ms),
            latency(sample.p999_ms),
        ];
        let _ = write!(
            table,
            "<tr><th scope=\"row\" class=\"n\">{:.1} s",
            sample.at_s
        );
        for cell in cells {
            let _ = write!(table, "<td class=\"n\">{}", escaped(&cell));
        }
        table.push('\n');
    }
    table + "</tbody></table></div></details>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(p: Option<f64>) -> Sample {
        Sample {
            at_s: 2.0,
            length_s: 2.0,
            ok: p.map_or(0, |_| 10),
            p50_ms: p,
            p99_ms: p,
            p999_ms: p,
            ..Sample::default()
        }
    }

    #[test]
    fn an_interval_without_operations_has_no_latency() {
        assert_eq!(describe(&sample(None)), "2.0 s: 0 op/s, nothing succeeded");
        let text = describe(&sample(Some(3.0)));
        assert_eq!(
            text,
            "2.0 s: 5 op/s, p50 3.00 ms, p99 3.00 ms, p99.9 3.00 ms"
        );
        assert!(table(&[sample(None)]).contains("<td class=\"n\">–"));
    }

    #[test]
    fn many_reasons_share_the_last_colour_and_none_have_no_chart() {
        let mut one = sample(Some(1.0));
        let samples = [one.clone()];
        let chart = Chart::new(&samples, &[], None);
        assert_eq!(
            by_name(&chart, &samples, RETRIES, |sample| &sample.retries),
            ""
        );
        one.retries = (0..20)
            .map(|at| (format!("REASON_{at}"), 20 - at))
            .collect();
        let samples = [one];
        let chart = Chart::new(&samples, &[], None);
        let drawn = by_name(&chart, &samples, RETRIES, |sample| &sample.retries);
        assert_eq!(drawn.matches("<polygon").count(), COLOURS, "{drawn}");
        assert!(
            drawn.contains("REASON_3<") && !drawn.contains("REASON_4<"),
            "{drawn}"
        );
        assert!(drawn.contains(">others<"), "{drawn}");
    }

    #[test]
    fn text_in_the_data_of_the_script_cannot_end_it() {
        let mut bad = sample(Some(1.0));
        bad.errors = BTreeMap::from([("</script><b>".to_owned(), 1)]);
        let samples = [bad];
        let page = probe(&Chart::new(&samples, &[], None), &samples);
        assert_eq!(page.matches("</script>").count(), 1, "{page}");
    }
}
