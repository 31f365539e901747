//! Picture of a history without an order: operations as bars over time.

use std::fmt::Write;

use super::escaped;
use crate::history::Bar;

const WIDTH: f64 = 960.0;
/// The height of an operation: its text, and its bar below.
const ROW: f64 = 34.0;
const THICK: f64 = 8.0;

/// Draws operations as bars over time, as SVG with a text alternative. Returns nothing without
/// operations.
pub(super) fn picture(operations: &[Bar]) -> String {
    let begin = operations.iter().map(|bar| bar.from_s);
    let begin = begin.fold(f64::INFINITY, f64::min);
    let ends = operations
        .iter()
        .map(|bar| bar.until_s.unwrap_or(bar.from_s));
    let end = ends.fold(f64::NEG_INFINITY, f64::max);
    if operations.is_empty() {
        return String::new();
    }
    let length = (end - begin).max(1e-6);
    let x = |seconds: f64| WIDTH * ((seconds - begin) / length).clamp(0.0, 1.0);
    let height = ROW * operations.len() as f64;
    let micros = length * 1e6;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>{} operations within {micros:.0} microseconds; no order explains the last one</title>\n",
        operations.len()
    );
    for (at, bar) in operations.iter().enumerate() {
        let top = ROW * at as f64;
        let from = x(bar.from_s);
        let width = (bar.until_s.map_or(WIDTH, x) - from).max(3.0);
        let from = from.min(WIDTH - 3.0);
        let colour = match at + 1 == operations.len() {
            true => "var(--bad)",
            false => "var(--c0)",
        };
        // An operation that never ended fades out.
        let opacity = if bar.until_s.is_some() { 1.0 } else { 0.4 };
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{:.1}\">worker {}: {}</text>\
             <rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{THICK}\" fill=\"{colour}\" opacity=\"{opacity}\"/>",
            top + 14.0,
            bar.worker,
            escaped(&bar.text),
            top + 19.0,
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_bar_within_the_picture_and_a_text() {
        let bar = |from_s, until_s, text: &str| Bar {
            worker: 7,
            from_s,
            until_s,
            text: text.to_owned(),
        };
        let drawn = picture(&[
            bar(1.0, Some(2.0), "upsert <a>"),
            bar(1.5, None, "remove"),
            bar(3.0, Some(3.0), "read"),
        ]);
        assert_eq!(drawn.matches("<rect").count(), 3, "{drawn}");
        for text in [
            "worker 7: upsert &lt;a&gt;",
            "role=\"img\"",
            "<title>3 operations",
        ] {
            assert!(drawn.contains(text), "{drawn}");
        }
        // The first takes half of the time, and the last is at the right edge.
        assert!(
            drawn.contains("x=\"0.0\" y=\"19.0\" width=\"480.0\""),
            "{drawn}"
        );
        assert!(
            drawn.contains("x=\"957.0\" y=\"87.0\" width=\"3.0\""),
            "{drawn}"
        );
        assert_eq!(picture(&[]), "");
    }
}
