//! The report as one self-contained page, with a picture of the attempts over time.

use std::fmt::Write;
use std::time::Duration;

use super::text::ends;
use super::{AuditReport, CaseReport};
use crate::judge::Rating;

const STYLE: &str = include_str!("page.css");
/// The width and the height of a picture.
const PICTURE: (f64, f64) = (240.0, 18.0);

impl AuditReport {
    /// Formats the report as an HTML page.
    pub fn to_html(&self) -> String {
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>steadfast audit</title>\n<style>\n{STYLE}</style>\n\
             <h1>steadfast audit</h1>\n<pre>{}</pre>\n\
             <p class=\"sub\">over {}</p>\n",
            escaped(&self.command),
            self.protocol
        );
        let _ = writeln!(
            page,
            "<p class=\"answer\">{}</p>",
            escaped(&self.answer().join("\n"))
        );
        page += "<table class=\"counts\">\n";
        for rating in Rating::ALL {
            let _ = writeln!(
                page,
                "<tr><td class=\"n\">{}</td><td><span class=\"{}\">{rating}</span></td><td>{}</td></tr>",
                self.count(rating),
                class(rating),
                rating.meaning()
            );
        }
        page += "</table>\n";
        for note in self.notes() {
            let _ = writeln!(page, "<p class=\"note\">{}</p>", escaped(&note));
        }
        let _ = writeln!(
            page,
            "<p class=\"sub\">A dot is an attempt that arrived: filled if the server failed it, open if it \
             responded with success. The line ends with the command. A picture is as wide as its case is long.</p>"
        );
        for rating in Rating::ALL {
            self.rows(rating, &mut page);
        }
        page
    }

    fn rows(&self, rating: Rating, page: &mut String) {
        let cases: Vec<_> = self
            .cases
            .iter()
            .filter(|case| case.rating == rating)
            .collect();
        if cases.is_empty() {
            return;
        }
        let _ = writeln!(
            page,
            "<h2><span class=\"{}\">{rating}</span></h2>\n<div class=\"scroll\"><table>",
            class(rating)
        );
        for case in cases {
            let _ = writeln!(
                page,
                "<tr id=\"{id}\"><td>{kind}</td><td>{fault}, {times}</td><td>{picture}</td>\
                 <td>{attempts}</td><td>{ends}</td><td>{reason}</td></tr>",
                id = escaped(&case.id),
                kind = escaped(&case.kind),
                fault = escaped(&case.fault),
                times = case.times,
                picture = picture(case),
                attempts = case.attempts(),
                ends = ends(case),
                reason = escaped(&case.reason),
            );
        }
        *page += "</table></div>\n";
    }
}

/// Draws the attempts of a case over time, with a mark for each second.
fn picture(case: &CaseReport) -> String {
    let (width, height) = PICTURE;
    let end = case
        .ends
        .iter()
        .map(|end| end.after)
        .max()
        .unwrap_or_default();
    let span = end.max(Duration::from_secs(1)).as_secs_f64();
    let x = |at: Duration| 6.0 + at.as_secs_f64() / span * (width - 12.0);
    let middle = height / 2.0;
    let mut picture = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"attempts within {span:.1} s\">\
         <line class=\"axis\" x1=\"6\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>",
        x(end)
    );
    for second in 0..=(span as u32).min(60) {
        let at = x(Duration::from_secs(second.into()));
        let _ = write!(
            picture,
            "<line class=\"tick\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"13\" y2=\"17\"/>"
        );
    }
    for arrival in &case.arrivals {
        let class = if arrival.failed {
            "failed"
        } else {
            "succeeded"
        };
        let _ = write!(
            picture,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{middle}\" r=\"4\"><title>{:.3} s</title></circle>",
            x(arrival.at),
            arrival.at.as_secs_f64()
        );
    }
    picture + "</svg>"
}

const fn class(rating: Rating) -> &'static str {
    match rating {
        Rating::Unsafe => "unsafe",
        Rating::Storm => "storm",
        Rating::Rude => "rude",
        Rating::GivesUpEarly => "early",
        Rating::NotSeen => "unseen",
        Rating::Good => "good",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
