//! The comparison as one self-contained page, without scripts, fonts or links.

use std::fmt::Write;

use super::svg::{colour, label};
use super::{Comparison, text};
use crate::summary::Bin;
use crate::trials::Trials;

const STYLE: &str = include_str!("page.css");
/// The size of a chart of one policy.
const CHART: (f64, f64) = (320.0, 60.0);

impl Comparison {
    /// Makes the page.
    pub fn to_html(&self) -> String {
        let head: String = self
            .head_text()
            .lines()
            .map(|line| format!("<span>{}</span>", escaped(line)))
            .collect();
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>steadfast storm: {name}</title>\n<style>\n{STYLE}</style>\n\
             <h1>steadfast storm: {name}</h1>\n{verdict}<pre>{head}</pre>\n",
            name = escaped(&self.scenario.name),
            verdict = self.verdict(),
        );
        page += "<h2>Recovery against the size of the fleet</h2>\n\
                 <p class=\"sub\">The share of the runs that recover, and the median time from the end of the fault.</p>\n";
        page += &self.matrix();
        let _ = writeln!(
            page,
            "<p class=\"sub\">Each chart below shows {} s of the first seed. Green is the share of the requests that succeed, by the time they started. Blue is the load: \
             the normal rate fills a quarter of the height, and 16 times that rate all of it. The band is the fault.</p>",
            self.scenario.duration
        );
        for fleet in &self.fleets {
            page += &self.fleet(fleet);
        }
        page
    }

    /// Says in a sentence which policies recover, in every run and with every size of the fleet.
    fn verdict(&self) -> String {
        let row = |at: usize| self.fleets.iter().filter_map(move |fleet| fleet.get(at));
        let policies = self.fleets.first().map_or(&[][..], Vec::as_slice);
        let (mut always, mut not_always) = (Vec::new(), Vec::new());
        for (at, trials) in policies.iter().enumerate() {
            match row(at).all(|trials| trials.recovered.share >= 1.0) {
                true => always.push(&*trials.policy),
                false => not_always.push(&*trials.policy),
            }
        }
        let list = |names: &[&str]| escaped(&names.join(", "));
        let (class, text) = match (always.is_empty(), not_always.is_empty()) {
            (_, true) => ("result", "✔ Every policy recovers in every run.".to_owned()),
            (true, false) => (
                "result bad",
                "✘ No policy recovers in every run.".to_owned(),
            ),
            (false, false) => (
                "result",
                format!(
                    "✔ Recover in every run: <strong>{}</strong>. ✘ Not in every run: {}.",
                    list(&always),
                    list(&not_always)
                ),
            ),
        };
        format!("<p class=\"{class}\">{text}</p>\n")
    }

    fn matrix(&self) -> String {
        let mut table =
            "<div class=\"scroll\"><table class=\"matrix\">\n<tr><th scope=\"col\">policy</th>"
                .to_owned();
        for fleet in &self.fleets {
            let clients = fleet.first().map_or(0, |trials| trials.clients);
            let _ = write!(table, "<th scope=\"col\">{clients} clients</th>");
        }
        table += "</tr>\n";
        let rows = self.fleets.first().map_or(0, Vec::len);
        for row in 0..rows {
            let policy = escaped(&self.fleets[0][row].policy);
            let _ = write!(table, "<tr><th scope=\"row\">{policy}</th>");
            for trials in self.fleets.iter().filter_map(|fleet| fleet.get(row)) {
                let interval = trials.recovered;
                let _ = write!(
                    table,
                    "<td style=\"background:{}\" title=\"95 % interval {:.0} to {:.0} %\">{}</td>",
                    colour(interval.share),
                    interval.low * 100.0,
                    interval.high * 100.0,
                    label(trials),
                );
            }
            table += "</tr>\n";
        }
        table + "</table></div>\n"
    }

    /// Writes the table and the charts of one size of the fleet.
    fn fleet(&self, fleet: &[Trials]) -> String {
        let clients = fleet.first().map_or(0, |trials| trials.clients);
        let mut part = format!(
            "<h2>{clients} clients</h2>\n<div class=\"scroll\"><table>\n<tr><th scope=\"col\">policy</th>\
             <th scope=\"col\">success total</th><th scope=\"col\">success faults</th><th scope=\"col\">load faults</th>\
             <th scope=\"col\">load peak</th><th scope=\"col\">waste</th><th scope=\"col\">latency p99</th></tr>\n"
        );
        for trials in fleet {
            let _ = writeln!(
                part,
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escaped(&trials.policy),
                text::percent(trials.success),
                text::optional(trials.success_in_trouble, text::percent),
                text::optional(trials.load_in_trouble, text::times),
                text::times(trials.peak_load),
                text::percent(trials.wasted_work),
                text::optional(trials.latency_p99_ms, text::millis),
            );
        }
        part += "</table></div>\n<div class=\"charts\">\n";
        for trials in fleet {
            part += &self.charts(trials);
        }
        part + "</div>\n"
    }

    /// Draws success and load over time, for the first seed.
    fn charts(&self, trials: &Trials) -> String {
        let Some(run) = trials.runs.first() else {
            return String::new();
        };
        let count = (self.scenario.duration / self.scenario.bin).ceil() as usize;
        let bins = &run.bins[..run.bins.len().min(count)];
        let rate = self.scenario.rate() * self.scenario.bin;
        // Four doublings above the normal rate are the top.
        let load = |bin: &Bin| (bin.attempts as f64 / rate).clamp(0.0, 16.0) / 16.0;
        let policy = escaped(&trials.policy);
        format!(
            "<figure><figcaption>{policy} <span>{}</span></figcaption>{}{}</figure>\n",
            label(trials),
            self.chart(
                bins,
                &format!("{policy}: success over time, {}", label(trials)),
                "good",
                Bin::success
            ),
            self.chart(
                bins,
                &format!(
                    "{policy}: load over time, at most {} of the normal rate",
                    text::times(trials.peak_load)
                ),
                "load",
                |bin| load(bin).sqrt(),
            ),
        )
    }

    fn chart(&self, bins: &[Bin], title: &str, class: &str, value: impl Fn(&Bin) -> f64) -> String {
        let (width, height) = CHART;
        let step = width / bins.len().max(1) as f64;
        let mut points = format!("0,{height}");
        for (index, bin) in (0u32..).zip(bins) {
            let y = height * (1.0 - value(bin));
            let _ = write!(points, " {:.1},{y:.1}", step * (f64::from(index) + 0.5));
        }
        let _ = write!(points, " {width},{height}");
        let band = self.scenario.trouble().map_or_else(String::new, |(from, until)| {
            let scale = width / self.scenario.duration;
            let (from, until) = (from * scale, (until * scale).min(width));
            format!(
                "<rect class=\"band\" x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{height}\"/>",
                (until - from).max(0.0)
            )
        });
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" preserveAspectRatio=\"none\">\
             <title>{title}</title>{band}<polygon class=\"{class}\" points=\"{points}\"/></svg>"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use crate::quiet::measure;
    use crate::{Comparison, Policy, scenarios};

    fn comparison() -> Comparison {
        let mut scenario = scenarios::brownout().with_duration(60.0);
        scenario.name = "<b>&".to_owned();
        scenario.arrivals = crate::Arrivals::Open(20.0);
        let policies = [Policy::no_retry(), Policy::immediate()];
        let fleets = [2, 20].map(|clients| {
            let fleet = scenario.clone().with_clients(clients);
            fleet.compare(&policies, 0..2).expect("it is valid")
        });
        Comparison::new(&scenario, fleets.to_vec())
    }

    #[test]
    fn the_page_is_self_contained_and_labelled() {
        let page = comparison().to_html();
        for forbidden in ["<script", "http", "url(", "<b>"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        let verdict = page.find("class=\"result").unwrap();
        assert!(verdict < page.find("<pre>").unwrap(), "it comes first");
        assert_eq!(page.matches("<figure>").count(), 4);
        assert_eq!(page.matches("aria-label=").count(), 8);
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.contains("<th scope=\"col\">20 clients</th>"));
    }

    #[test]
    fn the_picture_has_a_cell_for_each_policy_and_size_and_says_it_in_words() {
        let mut comparison = comparison();
        comparison.scenario.name = "brownout".to_owned();
        let svg = comparison.to_svg(&[]);
        assert_eq!(svg.matches("<rect").count(), 4);
        assert!(svg.contains("immediate, 20: "), "{svg}");
        let policies = [Policy::no_retry(), Policy::immediate()];
        let svg = comparison.to_svg(&measure(&policies, 2));
        assert_eq!(svg.matches("<rect").count(), 8);
        assert!(svg.contains("no-retry, error: 0 %."), "{svg}");
    }
}
