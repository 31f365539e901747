//! A picture of a trace, from its exported spans.

use std::fmt::Write;
use std::time::SystemTime;

use opentelemetry::trace::{SpanId, Status};
use opentelemetry_sdk::trace::SpanData;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 170.0;
const ROW: usize = 28;

/// Draws the read and its attempts as bars over time.
pub(crate) fn of_read(spans: &[SpanData]) -> Option<String> {
    let read = spans.iter().find(|span| {
        span.parent_span_id == SpanId::INVALID && attribute(span, "db.operation.name") == "get"
    })?;
    let id = read.span_context.span_id();
    let mut rows: Vec<&SpanData> = spans
        .iter()
        .filter(|span| span.parent_span_id == id)
        .collect();
    rows.sort_by_key(|span| span.start_time);
    rows.insert(0, read);

    let micros = |time: SystemTime| {
        let since = time.duration_since(read.start_time).unwrap_or_default();
        since.as_secs_f64() * 1e6
    };
    let scale = WIDTH / micros(read.end_time).max(1.0);
    let height = ROW * rows.len() + 24;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\" \
         aria-label=\"The trace of a read with {} attempts\">\n<style>text{{fill:#222}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ddd}}}}</style>\n",
        rows.len() - 1
    );
    for (index, span) in rows.iter().enumerate() {
        let y = 12 + index * ROW;
        let (begin, end) = (micros(span.start_time), micros(span.end_time));
        let failed = matches!(span.status, Status::Error { .. });
        let colour = match (index, failed) {
            (0, _) => "#4878a8",
            (_, true) => "#c0562f",
            (_, false) => "#3d8a5f",
        };
        let label = match index {
            0 => format!("get, retries {}", attribute(span, "couchbase.retries")),
            _ => format!("attempt {}", attribute(span, "attempt")),
        };
        let note = match failed {
            true => format!(", {}", attribute(span, "reason")),
            false => String::new(),
        };
        let (x, width) = (LEFT + begin * scale, ((end - begin) * scale).max(2.0));
        let text = format!("{:.2} ms{note}", (end - begin) / 1000.0);
        // The text of a bar in the right half ends where the bar begins.
        let (text_x, anchor) = match x < LEFT + WIDTH / 2.0 && index > 0 {
            true => (x + width + 6.0, "start"),
            false if index == 0 => (x + 6.0, "start"),
            false => (x - 6.0, "end"),
        };
        let fill = if index == 0 {
            " style=\"fill:#fff\""
        } else {
            ""
        };
        writeln!(
            svg,
            "<text x=\"8\" y=\"{}\">{label}</text>\
             <rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{text_x:.1}\" y=\"{}\" text-anchor=\"{anchor}\"{fill}>{text}</text>",
            y + 13,
            y + 13
        )
        .ok()?;
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn attribute(span: &SpanData, name: &str) -> String {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key.as_str() == name);
    found.map_or_else(String::new, |attribute| attribute.value.to_string())
}
