//! Expectations of a run, such as `p99<20ms`, for CI.

use std::fmt;
use std::str::FromStr;

use crate::report::{LoadReport, grouped, millis};

/// A limit for a measurement of a run.
///
/// ```
/// use steadfast_load::Expectation;
///
/// let expected: Expectation = "p99.9 <= 1.5s".parse()?;
/// assert_eq!(expected.to_string(), "p99.9 <= 1.5s");
/// assert!("p98<1ms".parse::<Expectation>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expectation {
    /// As it was written.
    text: String,
    measure: Measure,
    holds: fn(&f64, &f64) -> bool,
    limit: f64,
}

/// A measurement of a run, in a unit.
#[derive(Clone, Copy, Debug)]
struct Measure {
    name: &'static str,
    of: fn(&LoadReport) -> f64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Millis,
    PerSecond,
    Percent,
}

const MEASURES: [Measure; 6] = [
    Measure::new("p50", Unit::Millis, |report| report.latency.p50_ms),
    Measure::new("p99", Unit::Millis, |report| report.latency.p99_ms),
    Measure::new("p99.9", Unit::Millis, |report| report.latency.p999_ms),
    Measure::new("max", Unit::Millis, |report| report.latency.max_ms),
    Measure::new("throughput", Unit::PerSecond, |report| {
        report.throughput_per_s
    }),
    Measure::new("failures", Unit::Percent, |report| {
        let counts = &report.operations;
        let failed = (counts.failed + counts.timed_out) as f64;
        100.0 * failed / (counts.operations as f64).max(1.0)
    }),
];

/// A sign, and whether a value has this relation to a limit.
type Relation = (&'static str, fn(&f64, &f64) -> bool);

/// The longer signs first, because the shorter ones begin them.
const RELATIONS: [Relation; 4] = [
    ("<=", f64::le),
    (">=", f64::ge),
    ("<", f64::lt),
    (">", f64::gt),
];

impl Measure {
    const fn new(name: &'static str, unit: Unit, of: fn(&LoadReport) -> f64) -> Self {
        Self { name, of, unit }
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Millis => millis(value),
            Self::PerSecond => format!("{} op/s", grouped(value as u64)),
            Self::Percent => format!("{value:.3}%"),
        }
    }

    fn parse(self, text: &str) -> Option<f64> {
        let limit: f64 = match self {
            Self::Millis => steadfast::duration::parse(text)?.as_secs_f64() * 1e3,
            Self::PerSecond => match text.strip_suffix('k') {
                Some(thousands) => thousands.parse::<f64>().ok()? * 1e3,
                None => text.parse().ok()?,
            },
            Self::Percent => text.strip_suffix('%')?.parse().ok()?,
        };
        (limit.is_finite() && limit >= 0.0).then_some(limit)
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Millis => "a duration such as 20ms or 1.5s",
            Self::PerSecond => "operations per second such as 5000 or 50k",
            Self::Percent => "a percentage such as 0.1%",
        }
    }
}

impl Expectation {
    /// Describes how a run misses the expectation; nothing if it meets it.
    ///
    /// A run without a completed operation misses every expectation: it has no latency.
    pub fn miss(&self, report: &LoadReport) -> Option<String> {
        if report.operations.operations == 0 {
            return Some(format!("expected {self}, no operation was completed"));
        }
        let value = (self.measure.of)(report);
        let measured = self.measure.unit.show(value);
        (!(self.holds)(&value, &self.limit))
            .then(|| format!("expected {self}, measured {measured}"))
    }
}

/// Writes the expectation as it was written.
impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let split = |(sign, holds): Relation| {
            let (name, limit) = text.split_once(sign)?;
            Some((name.trim(), holds, limit.trim()))
        };
        let Some((name, holds, limit)) = RELATIONS.into_iter().find_map(split) else {
            return Err("write a measure, a relation and a limit, as in 'p99<20ms'".to_owned());
        };
        let Some(measure) = MEASURES.into_iter().find(|known| known.name == name) else {
            let names = MEASURES.map(|known| known.name).join(", ");
            return Err(format!("{name:?} is not a measure: give one of {names}"));
        };
        let unit = measure.unit;
        let invalid = || format!("{limit:?} is invalid: {name} takes {}", unit.example());
        Ok(Self {
            text: text.to_owned(),
            measure,
            holds,
            limit: unit.parse(limit).ok_or_else(invalid)?,
        })
    }
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
            "p99.9 < 22ms",
            "max<=2.5s",
            "throughput>49.9k",
            "throughput>=50000",
            "failures<0.5%",
            "failures>=0.3%",
        ] {
            assert_eq!(miss(met), None, "{met}");
        }
        for (missed, measured) in [
            ("p50<1ms", "1.00 ms"),
            ("p99<0.5ms", "19 ms"),
            ("max<1s", "2.50 s"),
            ("throughput>50k", "50 000 op/s"),
            ("failures<0.3%", "0.300%"),
        ] {
            let text = format!("expected {missed}, measured {measured}");
            assert_eq!(miss(missed), Some(text), "{missed}");
        }
        let mut empty = crate::report::full();
        empty.operations.operations = 0;
        let fast: Expectation = "p99<20ms".parse().unwrap();
        let missed = fast.miss(&empty).unwrap();
        assert!(missed.ends_with("no operation was completed"), "{missed}");
    }

    #[test]
    fn invalid_expectations_are_rejected_with_what_to_write() {
        for (text, problem) in [
            ("", "as in 'p99<20ms'"),
            ("p99=20ms", "as in 'p99<20ms'"),
            ("p98<20ms", "p99.9"),
            ("p99<20", "20ms"),
            ("p99<-1ms", "20ms"),
            ("p99<<20ms", "20ms"),
            ("throughput>fast", "50k"),
            ("throughput>nan", "50k"),
            ("failures<1", "0.1%"),
        ] {
            let found = text.parse::<Expectation>().unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
    }
}
