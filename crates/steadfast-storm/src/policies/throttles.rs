//! Published policies that shed a share of the requests, by the share of failures.

use std::time::{Duration, Instant};

use steadfast::World;

use super::Policy;
use super::guarded::{AttemptResult, Ended, Guard, chance};
use super::window::Window;

pub(super) fn all() -> Vec<Policy> {
    vec![
        Policy::guarded(
            "sre-throttling",
            "Google SRE's adaptive throttling: K = 2, two minutes",
            |_| AdaptiveThrottling::new(2.0, Duration::from_secs(120)),
        ),
        Policy::guarded("sre-throttling-10s", "the same over 10 s", |_| {
            AdaptiveThrottling::new(2.0, Duration::from_secs(10))
        }),
        Policy::guarded(
            "envoy-admission",
            "Envoy's admission control: success below 95 % over 30 s",
            |_| AdmissionControl::new(0.95, 0.8, Duration::from_secs(30)),
        ),
        Policy::guarded(
            "failsafe-throttler",
            "failsafe-go's adaptive throttler: success below 90 % over 60 s",
            |_| AdmissionControl::new(0.9, 0.9, Duration::from_secs(60)),
        ),
    ]
}

/// Client-side throttling (SRE book, chapter 21): rejects with the probability
/// `(requests − K·accepts) / (requests + 1)`. Requests that were rejected here count too.
struct AdaptiveThrottling {
    /// Requests and accepts.
    seen: Window<2>,
    k: f64,
}

impl AdaptiveThrottling {
    fn new(k: f64, length: Duration) -> Self {
        Self {
            seen: Window::new(length),
            k,
        }
    }

    fn passes(&mut self, world: &dyn World) -> bool {
        let now = world.now();
        let (requests, accepts) = (self.seen.sum(now, 0), self.seen.sum(now, 1));
        self.seen.add(now, 0, 1.0);
        !chance((requests - self.k * accepts) / (requests + 1.0), world)
    }
}

impl Guard for AdaptiveThrottling {
    fn admits(&mut self, world: &dyn World) -> bool {
        self.passes(world)
    }

    fn allows_retry(&mut self, world: &dyn World) -> bool {
        self.passes(world)
    }

    fn end(&mut self, ended: Ended, now: Instant) {
        if ended.result == AttemptResult::Success {
            self.seen.add(now, 1, 1.0);
        }
    }
}

/// Envoy's admission control filter, and failsafe-go's throttler: rejects with the
/// probability `(n − s/threshold) / (n + 1)`, of the requests that were sent.
struct AdmissionControl {
    /// Results and successes.
    seen: Window<2>,
    threshold: f64,
    most: f64,
}

impl AdmissionControl {
    fn new(threshold: f64, most: f64, length: Duration) -> Self {
        Self {
            seen: Window::new(length),
            threshold,
            most,
        }
    }

    fn passes(&mut self, world: &dyn World) -> bool {
        let now = world.now();
        let (all, successes) = (self.seen.sum(now, 0), self.seen.sum(now, 1));
        let rejected = (all - successes / self.threshold) / (all + 1.0);
        !chance(rejected.min(self.most), world)
    }
}

impl Guard for AdmissionControl {
    fn admits(&mut self, world: &dyn World) -> bool {
        self.passes(world)
    }

    fn allows_retry(&mut self, world: &dyn World) -> bool {
        self.passes(world)
    }

    fn end(&mut self, ended: Ended, now: Instant) {
        if ended.result == AttemptResult::Abandoned {
            return;
        }
        self.seen.add(now, 0, 1.0);
        if ended.result == AttemptResult::Success {
            self.seen.add(now, 1, 1.0);
        }
    }
}
