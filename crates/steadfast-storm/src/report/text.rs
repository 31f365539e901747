//! The comparison as text.

use std::fmt;

use super::{Comparison, wrapped};
use crate::summary::Bin;
use crate::trials::Trials;

/// The width of a chart.
const COLUMNS: usize = 60;
/// The width of a label in the description of the scenario.
const LABEL: usize = 11;
/// The characters of a chart, from nothing to full.
const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Comparison {
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scenario = &self.scenario;
        let (clients, service) = (&scenario.clients, &scenario.service);
        let seconds =
            |time: Option<f64>| time.map_or("none".to_owned(), |time| format!("{time} s"));
        let mut line = |label: &str, text: String| {
            writeln!(f, "{}", wrapped(&format!("{label:<10} {text}"), LABEL))
        };
        let arrivals = format!("{} requests/s together", scenario.rate);
        line("scenario", format!("{}: {arrivals}", scenario.name))?;
        line(
            "requests",
            format!(
                "{:.0} % idempotent, timeout {}, per attempt {}",
                clients.idempotent.abs() * 100.0,
                seconds(clients.timeout),
                seconds(clients.attempt_timeout),
            ),
        )?;
        line(
            "service",
            format!(
                "{} at a time, {} ms per request, capacity {:.0}/s, queue limit {}",
                service.workers * service.endpoints,
                (service.service_time.mean() * 1e6).round() / 1e3,
                scenario.capacity(),
                service
                    .queue_limit
                    .map_or("none".to_owned(), |limit| limit.to_string()),
            ),
        )?;
        let faults: Vec<String> = scenario.faults.iter().map(ToString::to_string).collect();
        let faults = if faults.is_empty() {
            "none".to_owned()
        } else {
            faults.join("; ")
        };
        line("faults", faults)?;
        let runs = self.fleets.first().and_then(|fleet| fleet.first());
        let runs = runs.map_or(&[][..], |trials| &trials.runs);
        match runs {
            [only] => line("seed", only.seed.to_string()),
            [first, .., last] => line("seeds", format!("{} to {}", first.seed, last.seed)),
            [] => Ok(()),
        }
    }

    fn table(&self, fleet: &[Trials], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = fleet.first().map_or(0, |trials| trials.clients);
        writeln!(f, "\n{clients} clients")?;
        writeln!(
            f,
            "{:>34} {:>13} {:>11} {:>19}",
            "success", "load", "recovers", "latency"
        )?;
        writeln!(
            f,
            "{:<18} {:>7} {:>7} {:>6} {:>6} {:>5} {:>5} {:>5} {:>6} {:>6}",
            "policy", "total", "faults", "faults", "peak", "runs", "after", "waste", "p50", "p99",
        )?;
        for trials in fleet {
            writeln!(
                f,
                "{:<18} {:>7} {:>7} {:>6} {:>6} {:>5} {:>5} {:>5} {:>6} {:>6}",
                trials.policy,
                percent(trials.success),
                optional(trials.success_in_trouble, percent),
                optional(trials.load_in_trouble, times),
                times(trials.peak_load),
                if self.outlasts_faults() {
                    format!("{:.0} %", trials.recovered * 100.0)
                } else {
                    "–".to_owned()
                },
                optional(trials.recovered_after, |seconds| format!("{seconds:.0} s")),
                format!("{:.0} %", trials.wasted_work * 100.0),
                optional(trials.latency_p50_ms, millis),
                optional(trials.latency_p99_ms, millis),
            )?;
        }
        Ok(())
    }

    /// Draws a chart of the first seed for each policy.
    fn draw(
        &self,
        fleet: &[Trials],
        f: &mut fmt::Formatter<'_>,
        value: impl Fn(&Bin) -> f64,
        block: fn(f64) -> char,
    ) -> fmt::Result {
        let count = self.scenario.duration.ceil() as usize;
        for trials in fleet {
            let Some(run) = trials.runs.first() else {
                continue;
            };
            let bins = &run.bins[..run.bins.len().min(count)];
            let chart: String = columns(bins, &value).into_iter().map(block).collect();
            write!(f, "\n{:<18} {chart}", trials.policy)?;
        }
        Ok(())
    }

    fn outlasts_faults(&self) -> bool {
        let scenario = &self.scenario;
        let end = scenario.trouble().map_or(0.0, |(_, until)| until);
        scenario.duration > end
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scenario = &self.scenario;
        self.head(f)?;
        for fleet in &self.fleets {
            self.table(fleet, f)?;
        }
        let Some(fleet) = self.fleets.last() else {
            return Ok(());
        };
        let clients = fleet.first().map_or(0, |trials| trials.clients);
        write!(
            f,
            "\nattempts over {} s, {clients} clients (▃: normal rate; a step up: twice as many)",
            scenario.duration
        )?;
        self.draw(
            fleet,
            f,
            |bin| bin.attempts as f64 / scenario.rate,
            doublings,
        )?;
        write!(
            f,
            "\n\nshare of requests that succeed, by the time they started"
        )?;
        self.draw(fleet, f, Bin::success, block)?;
        if self.outlasts_faults() {
            for fleet in &self.fleets {
                let lost: Vec<&str> = fleet
                    .iter()
                    .filter(|trials| trials.recovered < 0.5)
                    .map(|trials| trials.policy.as_str())
                    .collect();
                if let Some(first) = fleet.first()
                    && !lost.is_empty()
                {
                    let what = match scenario.trouble() {
                        Some(_) => "the fault has ended, and requests still fail",
                        None => "most requests fail",
                    };
                    let line = format!(
                        "✘ {} clients: {what} under {}",
                        first.clients,
                        lost.join(", ")
                    );
                    write!(f, "\n\n{}", wrapped(&line, 2))?;
                }
            }
        }
        if let Some((from, _)) = scenario.trouble()
            && scenario.duration <= from
        {
            write!(
                f,
                "\n\nThe run ends before the fault starts: make it longer than {from} s"
            )?;
        }
        Ok(())
    }
}

/// Averages the bins into as many columns as a chart has.
fn columns(bins: &[Bin], value: impl Fn(&Bin) -> f64) -> Vec<f64> {
    let width = bins.len().min(COLUMNS);
    (0..width)
        .map(|column| {
            let from = column * bins.len() / width;
            let until = (column + 1) * bins.len() / width;
            let part = &bins[from..until];
            part.iter().map(&value).sum::<f64>() / part.len() as f64
        })
        .collect()
}

/// Returns a block as high as a share of one. Anything above zero is visible.
fn block(share: f64) -> char {
    let most = BLOCKS.len() - 1;
    let least = usize::from(share > 0.0);
    BLOCKS[((share * most as f64).round() as usize).clamp(least, most)]
}

/// Returns a block on a logarithmic scale: one step higher for every doubling, the third
/// for 1. On a linear scale the worst policy would leave the others flat.
fn doublings(factor: f64) -> char {
    if factor <= 0.0 {
        return BLOCKS[0];
    }
    let step = 3.0 + factor.log2().round();
    BLOCKS[step.clamp(1.0, 8.0) as usize]
}

fn optional(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn times(factor: f64) -> String {
    match factor {
        factor if factor < 9.995 => format!("{factor:.2} ×"),
        factor if factor < 99.95 => format!("{factor:.1} ×"),
        factor => format!("{factor:.0} ×"),
    }
}

fn millis(millis: f64) -> String {
    match millis {
        millis if millis < 999.5 => format!("{millis:.0} ms"),
        millis if millis < 9_995.0 => format!("{:.2} s", millis / 1000.0),
        millis if millis < 99_950.0 => format!("{:.1} s", millis / 1000.0),
        millis => format!("{:.0} s", millis / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_no_more_columns_than_bins_and_shows_small_values() {
        let bins: Vec<_> = (0..150)
            .map(|started| Bin {
                started,
                ..Bin::default()
            })
            .collect();
        let first = |count: usize| columns(&bins[..count], |bin| bin.started as f64);
        assert_eq!(first(3), [0.0, 1.0, 2.0]);
        assert_eq!(first(150).len(), COLUMNS);
        assert_eq!(first(0), [0.0; 0]);
        let chart: String = [0.0, 0.001, 0.5, 1.0, 3.0].into_iter().map(block).collect();
        assert_eq!(chart, "·▁▄██");
        let chart: String = [0.0, 0.1, 0.5, 1.0, 1.1, 2.0, 32.0, 99.0]
            .map(doublings)
            .iter()
            .collect();
        assert_eq!(chart, "·▁▂▃▃▄██");
    }
}
