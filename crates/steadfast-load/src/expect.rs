//! Expectations of a run, such as `p99<20ms`, for CI.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::report::{LoadReport, grouped, millis};

/// A limit for a measurement of a run.
///
/// ```
/// use steadfast_load::Expectation;
///
/// let expected: Expectation = "p99.9 <= 1.5s".parse()?;
/// assert_eq!(expected.to_string(), "p99.9<=1500ms");
/// assert!("p98<1ms".parse::<Expectation>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    measure: Measure,
    relation: Relation,
    limit: f64,
}

/// A measurement of a run. Latencies are in milliseconds, the throughput in operations per
/// second, the failures in per cent of the operations.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    P50,
    P99,
    P999,
    Max,
    Throughput,
    Failures,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Measure {
    const ALL: [Self; 6] = [
        Self::P50,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Throughput,
        Self::Failures,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Throughput => "throughput",
            Self::Failures => "failures",
        }
    }

    fn of(self, report: &LoadReport) -> f64 {
        let counts = &report.operations;
        match self {
            Self::P50 => report.latency.p50_ms,
            Self::P99 => report.latency.p99_ms,
            Self::P999 => report.latency.p999_ms,
            Self::Max => report.latency.max_ms,
            Self::Throughput => report.throughput_per_s,
            Self::Failures => {
                let failed = (counts.failed + counts.timed_out) as f64;
                100.0 * failed / (counts.operations as f64).max(1.0)
            }
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::P50 | Self::P99 | Self::P999 | Self::Max => millis(value),
            Self::Throughput => format!("{} op/s", grouped(value as u64)),
            Self::Failures => format!("{value:.3}%"),
        }
    }

    fn parse_limit(self, text: &str) -> Result<f64, String> {
        let (wanted, parsed) = match self {
            Self::P50 | Self::P99 | Self::P999 | Self::Max => {
                ("a duration such as 20ms or 1.5s", parse_millis(text))
            }
            Self::Throughput => (
                "operations per second such as 5000 or 50k",
                parse_rate(text),
            ),
            Self::Failures => ("a percentage such as 0.1%", parse_percentage(text)),
        };
        let valid = parsed.filter(|limit| limit.is_finite() && *limit >= 0.0);
        valid.ok_or_else(|| format!("{text:?} is invalid: {} takes {wanted}", self.name()))
    }
}

impl Relation {
    /// The longer signs first, because the shorter ones begin them.
    const ALL: [Self; 4] = [Self::AtMost, Self::AtLeast, Self::Below, Self::Above];

    fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }
}

impl Expectation {
    /// Describes how a run misses the expectation; nothing if it meets it.
    ///
    /// A run without a completed operation misses every expectation: it has no latency.
    pub fn miss(&self, report: &LoadReport) -> Option<String> {
        let value = self.measure.of(report);
        let empty = report.operations.operations == 0;
        if !empty && self.relation.holds(value, self.limit) {
            return None;
        }
        let measured = match empty {
            true => "no operation was completed".to_owned(),
            false => format!("measured {}", self.measure.show(value)),
        };
        Some(format!("expected {self}, {measured}"))
    }
}

/// Writes the expectation as it is parsed.
impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.measure {
            Measure::P50 | Measure::P99 | Measure::P999 | Measure::Max => "ms",
            Measure::Throughput => "",
            Measure::Failures => "%",
        };
        let (name, sign) = (self.measure.name(), self.relation.sign());
        write!(f, "{name}{sign}{}{unit}", self.limit)
    }
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let split = |relation: Relation| {
            let (name, limit) = text.split_once(relation.sign())?;
            Some((name.trim(), relation, limit.trim()))
        };
        let Some((name, relation, limit)) = Relation::ALL.into_iter().find_map(split) else {
            return Err("write a measure, a relation and a limit, as in 'p99<20ms'".to_owned());
        };
        let known = Measure::ALL.into_iter().find(|known| known.name() == name);
        let Some(measure) = known else {
            let names = Measure::ALL.map(Measure::name).join(", ");
            return Err(format!("{name:?} is not a measure: give one of {names}"));
        };
        Ok(Self {
            measure,
            relation,
            limit: measure.parse_limit(limit)?,
        })
    }
}

fn parse_millis(text: &str) -> Option<f64> {
    let units = [("µs", 1e-3), ("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let millis = number.trim().parse::<f64>().ok()? * unit;
    // Rejects what no clock measures.
    Duration::try_from_secs_f64(millis / 1e3).ok()?;
    Some(millis)
}

fn parse_rate(text: &str) -> Option<f64> {
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 1e6),
            None => (text, 1.0),
        },
    };
    Some(number.trim().parse::<f64>().ok()? * unit)
}

fn parse_percentage(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(text: &str) -> Option<String> {
        let mut report = crate::report::full();
        report.operations.operations = 1000;
        report.operations.failed = 2;
        report.operations.timed_out = 1;
        report.latency.p50_ms = 1.0;
        report.latency.p99_ms = 19.0;
        report.latency.p999_ms = 21.0;
        report.latency.max_ms = 2500.0;
        report.throughput_per_s = 50_000.0;
        text.parse::<Expectation>().unwrap().miss(&report)
    }

    #[test]
    fn a_run_meets_an_expectation_or_the_miss_has_both_numbers() {
        for met in [
            "p50<=1ms",
            "p99<20ms",
            "p99.9 < 22 ms",
            "max<=2.5s",
            "throughput>49.9k",
            "throughput>=50000",
            "failures<0.5%",
            "failures>=0.3%",
        ] {
            assert_eq!(miss(met), None, "{met}");
            let parsed: Expectation = met.parse().unwrap();
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{met}");
        }
        for (missed, text) in [
            ("p50<1ms", "expected p50<1ms, measured 1.00 ms"),
            ("p99<500us", "expected p99<0.5ms, measured 19 ms"),
            ("max<1s", "expected max<1000ms, measured 2.50 s"),
            (
                "throughput>50k",
                "expected throughput>50000, measured 50 000 op/s",
            ),
            ("failures<0.3%", "expected failures<0.3%, measured 0.300%"),
        ] {
            assert_eq!(miss(missed).as_deref(), Some(text), "{missed}");
        }
    }

    #[test]
    fn a_run_without_operations_misses_everything() {
        let mut report = crate::report::full();
        report.operations.operations = 0;
        let fast: Expectation = "p99<20ms".parse().unwrap();
        assert!(
            fast.miss(&report)
                .unwrap()
                .ends_with("no operation was completed")
        );
    }

    #[test]
    fn invalid_expectations_are_rejected_with_what_to_write() {
        for (text, problem) in [
            ("", "as in 'p99<20ms'"),
            ("p99", "as in 'p99<20ms'"),
            ("p99=20ms", "as in 'p99<20ms'"),
            ("p98<20ms", "p99.9"),
            ("p99<20", "20ms"),
            ("p99<-1ms", "20ms"),
            ("p99<nanms", "20ms"),
            ("p99<infs", "20ms"),
            ("p99<<20ms", "20ms"),
            ("throughput>fast", "50k"),
            ("throughput>50kk", "50k"),
            ("failures<1", "0.1%"),
        ] {
            let found = text.parse::<Expectation>().unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
    }
}
