//! The comparison of candidates: a table and charts for people, JSON for machines.

use std::fmt;

use serde::Serialize;

use crate::simulation::Simulation;
use crate::summary::{SecondStats, Summary};

/// The width of a chart.
const COLUMNS: usize = 60;
/// The characters of a chart, from nothing to full.
const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A simulation with the summaries of its candidates.
///
/// `Display` prints a table and charts; `Serialize` writes every number.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Grows when a field changes its meaning.
    format: u32,
    simulation: Simulation,
    summaries: Vec<Summary>,
}

impl Comparison {
    /// Combines a simulation with what [`Simulation::compare`] returned.
    pub fn new(simulation: &Simulation, summaries: Vec<Summary>) -> Self {
        Self {
            format: 1,
            simulation: simulation.clone(),
            summaries,
        }
    }

    /// Draws a chart for each candidate.
    fn draw(
        &self,
        f: &mut fmt::Formatter<'_>,
        value: impl Fn(&SecondStats) -> f64,
        block: fn(f64) -> char,
    ) -> fmt::Result {
        let duration = self.simulation.duration.ceil() as usize;
        for summary in &self.summaries {
            let seconds = &summary.seconds[..summary.seconds.len().min(duration)];
            let chart: String = columns(seconds, &value).into_iter().map(block).collect();
            write!(f, "\n  {:<12} {chart}", summary.strategy)?;
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simulation = &self.simulation;
        let outlasts_faults = simulation.duration > simulation.faults.end();
        writeln!(
            f,
            "clients    {}, together {} requests/s, {:.0} % idempotent; timeout {} s, per attempt {} s",
            simulation.clients,
            simulation.arrival_rate,
            simulation.idempotent.abs() * 100.0,
            simulation.timeout,
            simulation.attempt_timeout,
        )?;
        writeln!(
            f,
            "service    {} at a time, {} ms per request, capacity {:.0}/s, queue limit {}",
            simulation.workers,
            simulation.service_time * 1000.0,
            simulation.capacity(),
            simulation.queue_limit,
        )?;
        writeln!(f, "faults     {}", simulation.faults)?;
        writeln!(f, "seed       {}\n", simulation.seed)?;
        writeln!(
            f,
            "strategy      succeeded  in faults  load in faults  peak load  recovered after  wasted work  p50       p99"
        )?;
        for summary in &self.summaries {
            let optional = |value: Option<f64>, show: fn(f64) -> String| {
                value.map_or_else(|| "–".to_owned(), show)
            };
            let recovered = match summary.recovered_after_seconds {
                Some(seconds) => format!("{seconds:.0} s"),
                None if outlasts_faults => "never".to_owned(),
                None => "–".to_owned(),
            };
            writeln!(
                f,
                "{:<12} {:>10}  {:>9}  {:>14}  {:>9}  {:>15}  {:>11}  {:<8}  {}",
                summary.strategy,
                percent(summary.succeeded_share),
                optional(summary.succeeded_share_during_faults, percent),
                optional(summary.load_during_faults, times),
                times(summary.peak_load),
                recovered,
                percent(summary.wasted_work_share),
                optional(summary.latency_p50_ms, millis),
                optional(summary.latency_p99_ms, millis),
            )?;
        }
        let (rate, duration) = (simulation.arrival_rate, simulation.duration);
        write!(
            f,
            "\nattempts per second, over {duration} s: ▃ is the arrival rate, each step up doubles it"
        )?;
        self.draw(f, |second| second.attempts as f64 / rate, doublings)?;
        write!(
            f,
            "\n\nshare of requests that succeed, by the time they started"
        )?;
        self.draw(f, SecondStats::succeeded_share, block)?;
        let lost: Vec<&str> = self
            .summaries
            .iter()
            .filter(|summary| summary.recovered_after_seconds.is_none())
            .map(|summary| summary.strategy.as_str())
            .collect();
        if outlasts_faults && !lost.is_empty() {
            let lost = lost.join(", ");
            write!(
                f,
                "\n\n✘ {lost}: requests still fail at the end of the run, after the fault has ended"
            )?;
        }
        if let Some(first) = simulation.faults.faults().first()
            && duration <= first.from
        {
            write!(
                f,
                "\n\nThe run ends before the fault starts: make it longer than {} s",
                first.from
            )?;
        }
        Ok(())
    }
}

/// Averages the seconds into as many columns as a chart has.
fn columns(seconds: &[SecondStats], value: impl Fn(&SecondStats) -> f64) -> Vec<f64> {
    let width = seconds.len().min(COLUMNS);
    (0..width)
        .map(|column| {
            let from = column * seconds.len() / width;
            let until = (column + 1) * seconds.len() / width;
            let part = &seconds[from..until];
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
/// for 1. On a linear scale the worst candidate would leave the others flat.
fn doublings(factor: f64) -> char {
    if factor <= 0.0 {
        return BLOCKS[0];
    }
    let step = 3.0 + factor.log2().round();
    BLOCKS[step.clamp(1.0, 8.0) as usize]
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn times(factor: f64) -> String {
    format!("{factor:.2} ×")
}

fn millis(millis: f64) -> String {
    if millis < 1000.0 {
        format!("{millis:.0} ms")
    } else {
        format!("{:.2} s", millis / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_no_more_columns_than_seconds_and_shows_small_values() {
        let seconds: Vec<_> = (0..150)
            .map(|started| SecondStats {
                started,
                ..SecondStats::default()
            })
            .collect();
        let first = |count: usize| columns(&seconds[..count], |second| second.started as f64);
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
