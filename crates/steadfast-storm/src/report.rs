//! For people, on a terminal: a table, and the course of it drawn.

use std::fmt;

use serde::Serialize;

use crate::outcome::{Outcome, Second};
use crate::storm::Storm;

/// How wide the drawings are.
const COLUMNS: usize = 60;
/// What they are drawn with, from nothing to full.
const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A storm and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Counts on when a field of what machines get changes its meaning.
    format: u32,
    storm: Storm,
    outcomes: Vec<Outcome>,
}

impl Report {
    /// The report on a storm.
    pub fn new(storm: &Storm, outcomes: Vec<Outcome>) -> Self {
        Self {
            format: 1,
            storm: storm.clone(),
            outcomes,
        }
    }

    /// What came of it, for each policy.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// A drawing for each policy.
    fn draw(
        &self,
        f: &mut fmt::Formatter<'_>,
        value: impl Fn(&Second) -> f64,
        block: fn(f64) -> char,
    ) -> fmt::Result {
        for outcome in &self.outcomes {
            let seconds =
                &outcome.seconds[..outcome.seconds.len().min(self.storm.length.ceil() as usize)];
            let drawn: String = columns(seconds, &value).into_iter().map(block).collect();
            write!(f, "\n  {:<12} {drawn}", outcome.policy)?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storm = &self.storm;
        let outlasts_trouble = storm.length > storm.weather.end();
        writeln!(
            f,
            "fleet      {} clients, {} requests/s, {:.0} % of them idempotent; {} s for each, {} s for an attempt",
            storm.clients,
            storm.rate,
            storm.idempotent.abs() * 100.0,
            storm.timeout,
            storm.attempt_timeout,
        )?;
        writeln!(
            f,
            "service    {} at a time, {} ms each: {:.0}/s; {} may wait",
            storm.workers,
            storm.service_time * 1000.0,
            storm.capacity(),
            storm.queue,
        )?;
        writeln!(f, "trouble    {}", storm.weather)?;
        writeln!(f, "seed       {}\n", storm.seed)?;
        writeln!(
            f,
            "policy         succeeded  in trouble  load then  load at most  back after  work for nobody  p50       p99"
        )?;
        for outcome in &self.outcomes {
            let optional = |value: Option<f64>, show: fn(f64) -> String| {
                value.map_or_else(|| "–".to_owned(), show)
            };
            let back = match outcome.back_after_seconds {
                Some(seconds) => format!("{seconds:.0} s"),
                None if outlasts_trouble => "not".to_owned(),
                None => "–".to_owned(),
            };
            writeln!(
                f,
                "{:<14} {:>9}  {:>10}  {:>9}  {:>12}  {:>10}  {:>15}  {:<8}  {}",
                outcome.policy,
                percent(outcome.succeeded_share),
                optional(outcome.succeeded_share_in_trouble, percent),
                optional(outcome.load_in_trouble, times),
                times(outcome.load_peak),
                back,
                percent(outcome.for_nobody_share),
                optional(outcome.latency_p50_ms, millis),
                optional(outcome.latency_p99_ms, millis),
            )?;
        }
        let (rate, length) = (storm.rate, storm.length);
        write!(
            f,
            "\nattempts in a second, over {length} s: ▃ is as many as requests, each step up twice as many"
        )?;
        self.draw(f, |second| second.attempts as f64 / rate, doublings)?;
        write!(f, "\n\nshare of the requests begun then that succeeded")?;
        self.draw(f, Second::succeeded_share, block)?;
        let lost = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.back_after_seconds.is_none());
        let lost: Vec<_> = lost.map(|outcome| outcome.policy.as_str()).collect();
        if outlasts_trouble && !lost.is_empty() {
            let lost = lost.join(", ");
            write!(
                f,
                "\n\n✘ {lost}: the trouble is over, and the fleet is not back when the run ends"
            )?;
        }
        if let Some(first) = storm.weather.spells().first()
            && storm.length <= first.from
        {
            write!(
                f,
                "\n\nThe run ends before the trouble begins: make it longer than {} s",
                first.from
            )?;
        }
        Ok(())
    }
}

/// The means of as many stretches as there are columns.
fn columns(seconds: &[Second], value: impl Fn(&Second) -> f64) -> Vec<f64> {
    let width = seconds.len().min(COLUMNS);
    (0..width)
        .map(|column| {
            let from = column * seconds.len() / width;
            let until = (column + 1) * seconds.len() / width;
            let stretch = &seconds[from..until];
            stretch.iter().map(&value).sum::<f64>() / stretch.len() as f64
        })
        .collect()
}

/// A block as high as a share of one.
fn block(share: f64) -> char {
    let most = BLOCKS.len() - 1;
    // What is there at all is seen.
    let least = usize::from(share > 0.0);
    BLOCKS[((share * most as f64).round() as usize).clamp(least, most)]
}

/// A block that is one step higher for every doubling; the third stands for one. Policies
/// differ by factors, and a scale for the worst would leave the others flat.
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
    fn a_drawing_has_no_more_columns_than_seconds_and_shows_what_is_there() {
        let seconds: Vec<_> = (0..150)
            .map(|begun| Second {
                begun,
                ..Second::default()
            })
            .collect();
        let of = |count: usize| columns(&seconds[..count], |second| second.begun as f64);
        assert_eq!(of(3), [0.0, 1.0, 2.0]);
        assert_eq!(of(150).len(), COLUMNS);
        assert_eq!(of(0), [0.0; 0]);
        let drawn: String = [0.0, 0.001, 0.5, 1.0, 3.0].into_iter().map(block).collect();
        assert_eq!(drawn, "·▁▄██");
        let drawn: String = [0.0, 0.1, 0.5, 1.0, 1.1, 2.0, 32.0, 99.0]
            .map(doublings)
            .iter()
            .collect();
        assert_eq!(drawn, "·▁▂▃▃▄██");
    }
}
