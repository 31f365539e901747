//! Published policies that limit the number of attempts under way.

use std::time::{Duration, Instant};

use steadfast::World;

use super::Policy;
use super::guarded::{AttemptResult, Ended, Guard};

pub(super) fn all() -> Vec<Policy> {
    vec![
        Policy::guarded(
            "vegas",
            "Netflix's Vegas limit: initially 20, from 1 to 1000",
            |_| Vegas::default(),
        ),
        Policy::guarded(
            "envoy-gradient",
            "Envoy's adaptive concurrency: the median, with a buffer of 25 %",
            |_| Gradient::default(),
        ),
    ]
}

/// Netflix's `VegasLimit` (concurrency-limits): estimates the queue from the latency.
struct Vegas {
    limit: f64,
    in_flight: u32,
    unloaded: Option<Duration>,
    /// Attempts since the unloaded latency was measured anew.
    since_probe: f64,
}

/// The unloaded latency is measured anew after so many times the limit.
const PROBE_MULTIPLIER: f64 = 30.0;

impl Default for Vegas {
    fn default() -> Self {
        Self {
            limit: 20.0,
            in_flight: 0,
            unloaded: None,
            since_probe: 0.0,
        }
    }
}

impl Vegas {
    fn update(&mut self, latency: Duration, dropped: bool, in_flight: u32) {
        self.since_probe += 1.0;
        if self.since_probe > PROBE_MULTIPLIER * self.limit {
            self.since_probe = 0.0;
            self.unloaded = Some(latency);
            return;
        }
        let unloaded = *self.unloaded.get_or_insert(latency);
        if latency < unloaded && !dropped {
            self.unloaded = Some(latency);
            return;
        }
        let step = self.limit.log10().max(1.0);
        let ratio = unloaded.as_secs_f64() / latency.as_secs_f64().max(1e-9);
        let queue = (self.limit * (1.0 - ratio)).ceil();
        let (alpha, beta) = (3.0 * step, 6.0 * step);
        self.limit = if dropped {
            self.limit - step
        } else if f64::from(in_flight) * 2.0 < self.limit {
            return;
        } else if queue <= step {
            self.limit + beta
        } else if queue < alpha {
            self.limit + step
        } else if queue > beta {
            self.limit - step
        } else {
            return;
        }
        .clamp(1.0, 1000.0);
    }
}

impl Guard for Vegas {
    const TIMED: bool = true;

    fn admits(&mut self, _: &dyn World) -> bool {
        f64::from(self.in_flight) < self.limit
    }

    fn allows_retry(&mut self, _: &dyn World) -> bool {
        f64::from(self.in_flight) < self.limit
    }

    fn begin(&mut self, _: bool, _: Instant) {
        self.in_flight += 1;
    }

    fn end(&mut self, ended: Ended, _: Instant) {
        let in_flight = self.in_flight;
        self.in_flight = self.in_flight.saturating_sub(1);
        match ended.result {
            AttemptResult::Success => self.update(ended.latency, false, in_flight),
            AttemptResult::Timeout | AttemptResult::Busy => {
                self.update(ended.latency, true, in_flight);
            }
            AttemptResult::Error | AttemptResult::NotSent | AttemptResult::Abandoned => {}
        }
    }
}

/// Envoy's adaptive concurrency filter: the limit follows the ratio of the smallest median
/// latency to the current one.
struct Gradient {
    limit: f64,
    in_flight: u32,
    unloaded: Option<f64>,
    samples: Vec<f64>,
    window_since: Option<Instant>,
    /// The limit before the unloaded latency was measured, and when that began.
    measuring: Option<(f64, Instant)>,
    measured_at: Option<Instant>,
}

/// The limit while the unloaded latency is measured, and the samples for that.
const MIN_LIMIT: f64 = 3.0;
const MEASURE_SAMPLES: usize = 50;
const MEASURE_EVERY: Duration = Duration::from_secs(60);
const UPDATE_EVERY: Duration = Duration::from_millis(100);
const BUFFER: f64 = 1.25;

impl Default for Gradient {
    fn default() -> Self {
        Self {
            limit: MIN_LIMIT,
            in_flight: 0,
            unloaded: None,
            samples: Vec::new(),
            window_since: None,
            measuring: None,
            measured_at: None,
        }
    }
}

impl Gradient {
    fn sample(&mut self, latency: Duration, now: Instant) {
        self.samples.push(latency.as_secs_f64());
        let due = self
            .measured_at
            .is_none_or(|at| now.saturating_duration_since(at) > MEASURE_EVERY);
        if due && self.measuring.is_none() {
            self.measuring = Some((self.limit, now));
            self.limit = MIN_LIMIT;
            self.samples.clear();
            return;
        }
        if let Some((before, _)) = self.measuring {
            if self.samples.len() >= MEASURE_SAMPLES {
                self.unloaded = self.median();
                self.limit = before;
                self.measuring = None;
                self.measured_at = Some(now);
                self.window_since = Some(now);
            }
            return;
        }
        let since = *self.window_since.get_or_insert(now);
        if now.saturating_duration_since(since) < UPDATE_EVERY {
            return;
        }
        self.window_since = Some(now);
        if let (Some(unloaded), Some(current)) = (self.unloaded, self.median()) {
            let gradient = (unloaded * BUFFER / current.max(1e-9)).clamp(0.5, 2.0);
            let next = self.limit * gradient;
            self.limit = (next + next.sqrt()).clamp(MIN_LIMIT, 1000.0);
        }
    }

    fn median(&mut self) -> Option<f64> {
        let median = crate::trials::median(self.samples.drain(..));
        self.samples.clear();
        median
    }
}

impl Guard for Gradient {
    const TIMED: bool = true;

    fn admits(&mut self, _: &dyn World) -> bool {
        f64::from(self.in_flight) < self.limit
    }

    fn allows_retry(&mut self, _: &dyn World) -> bool {
        f64::from(self.in_flight) < self.limit
    }

    fn begin(&mut self, _: bool, _: Instant) {
        self.in_flight += 1;
    }

    fn end(&mut self, ended: Ended, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if matches!(
            ended.result,
            AttemptResult::Success | AttemptResult::Timeout
        ) {
            self.sample(ended.latency, now);
        }
    }
}
