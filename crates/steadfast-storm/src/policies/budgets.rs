//! Published policies that limit retries and make every first attempt.

use std::time::{Duration, Instant};

use steadfast::{Backoff, Jitter, World};

use super::Policy;
use super::guarded::{AttemptResult, Ended, Guard, Guarded};
use super::window::Window;

pub(super) fn all() -> Vec<Policy> {
    vec![
        Policy::guarded(
            "success-token",
            "a success deposits 0.1 of a retry, at most 10",
            |_| Tokens::per_success(0.1, 10.0),
        ),
        Policy::guarded(
            "request-token",
            "a request deposits 0.1 of a retry, at most 10",
            |_| Tokens::per_request(0.1, 10.0),
        ),
        Policy::guarded(
            "grpc",
            "gRPC's retry throttling (A6): 10 tokens, ratio 0.1",
            |_| RetryThrottling::new(10.0, 0.1),
        ),
        Policy::guarded(
            "finagle-budget",
            "Finagle's, tower's and Linkerd's budget: 20 % and 10/s over 10 s",
            |_| TtlBudget::new(0.2, 10.0, Duration::from_secs(10)),
        ),
        envoy_budget(),
        Policy::guarded(
            "sre-ratio",
            "Google SRE: retries below 10 % of the attempts of two minutes",
            |_| RetryRatio::new(0.1, Duration::from_secs(120)),
        ),
        Policy::guarded(
            "retry-breaker",
            "no retries while 10 % of the attempts of 10 s fail",
            |_| RetryBreaker::new(0.1, Duration::from_secs(10)),
        ),
    ]
}

/// Returns the policies of Brooker's simulation of 2022, as its code has them: without
/// delays and without a limit of attempts.
pub(super) fn brooker() -> [Policy; 2] {
    [
        Policy::new("brooker-adaptive", |_| {
            Guarded::new(Backoff::none(), CallTokens { level: 5.0 })
        }),
        Policy::new("brooker-breaker", |_| {
            Guarded::new(Backoff::none(), CallBreaker::default())
        }),
    ]
}

/// A token bucket of at most 5 tokens. A call deposits 0.1; a retry needs more than one
/// token and takes one.
struct CallTokens {
    level: f64,
}

impl Guard for CallTokens {
    fn allows_retry(&mut self, _: &dyn World) -> bool {
        let enough = self.level > 1.0;
        if enough {
            self.level -= 1.0;
        }
        enough
    }

    fn begin(&mut self, retry: bool, _: Instant) {
        if !retry {
            self.level = (self.level + 0.1).min(5.0);
        }
    }
}

/// Retries while the failed attempts are below 10 % of the calls, over all time.
#[derive(Default)]
struct CallBreaker {
    calls: f64,
    failures: f64,
}

impl Guard for CallBreaker {
    fn allows_retry(&mut self, _: &dyn World) -> bool {
        self.failures < 0.1 * self.calls
    }

    fn begin(&mut self, retry: bool, _: Instant) {
        if !retry {
            self.calls += 1.0;
        }
    }

    fn end(&mut self, ended: Ended, _: Instant) {
        if ended.result.is_failure() {
            self.failures += 1.0;
        }
    }
}

/// Envoy's retry budget, with Envoy's backoff: 25 to 250 ms, full jitter.
fn envoy_budget() -> Policy {
    let backoff = Backoff::exponential(Duration::from_millis(25), Duration::from_millis(250))
        .expect("the base is below the cap")
        .with_jitter(Jitter::Full);
    Policy::new("envoy-budget", move |_| {
        Guarded::new(backoff.clone(), ConcurrentRetries::default())
    })
    .about_it("Envoy: retries are at most 20 % of the active requests, or 3")
}

/// A token bucket: a retry takes one token (Brooker 2022).
pub(super) struct Tokens {
    level: f64,
    capacity: f64,
    per_success: f64,
    per_request: f64,
}

impl Tokens {
    pub(super) const fn per_success(deposit: f64, capacity: f64) -> Self {
        Self {
            level: capacity,
            capacity,
            per_success: deposit,
            per_request: 0.0,
        }
    }

    pub(super) const fn per_request(deposit: f64, capacity: f64) -> Self {
        Self {
            level: capacity,
            capacity,
            per_success: 0.0,
            per_request: deposit,
        }
    }

    fn deposit(&mut self, amount: f64) {
        self.level = (self.level + amount).min(self.capacity);
    }
}

impl Guard for Tokens {
    fn allows_retry(&mut self, _: &dyn World) -> bool {
        let enough = self.level >= 1.0;
        if enough {
            self.level -= 1.0;
        }
        enough
    }

    fn begin(&mut self, retry: bool, _: Instant) {
        if !retry {
            self.deposit(self.per_request);
        }
    }

    fn end(&mut self, ended: Ended, _: Instant) {
        if ended.result == AttemptResult::Success {
            self.deposit(self.per_success);
        }
    }
}

/// gRPC's `retryThrottling` (gRFC A6): a failure takes one token, a success returns
/// `ratio`; there are retries while more than half of the tokens are left.
struct RetryThrottling {
    tokens: f64,
    most: f64,
    ratio: f64,
}

impl RetryThrottling {
    const fn new(most: f64, ratio: f64) -> Self {
        Self {
            tokens: most,
            most,
            ratio,
        }
    }
}

impl Guard for RetryThrottling {
    fn allows_retry(&mut self, _: &dyn World) -> bool {
        self.tokens > self.most / 2.0
    }

    fn end(&mut self, ended: Ended, _: Instant) {
        if ended.result == AttemptResult::Success {
            self.tokens = (self.tokens + self.ratio).min(self.most);
        } else if ended.result.is_failure() {
            self.tokens = (self.tokens - 1.0).max(0.0);
        }
    }
}

/// Finagle's `RetryBudget`, which tower and Linkerd have too: over the last seconds, retries
/// are at most a share of the requests, and a number per second in addition.
struct TtlBudget {
    balance: Window<1>,
    cost: f64,
    reserve: f64,
}

impl TtlBudget {
    fn new(share: f64, per_second: f64, ttl: Duration) -> Self {
        let cost = 1.0 / share;
        Self {
            balance: Window::new(ttl),
            cost,
            reserve: per_second * ttl.as_secs_f64() * cost,
        }
    }
}

impl Guard for TtlBudget {
    fn allows_retry(&mut self, world: &dyn World) -> bool {
        let now = world.now();
        let enough = self.balance.sum(now, 0) + self.reserve >= self.cost;
        if enough {
            self.balance.add(now, 0, -self.cost);
        }
        enough
    }

    fn begin(&mut self, retry: bool, now: Instant) {
        if !retry {
            self.balance.add(now, 0, 1.0);
        }
    }
}

/// Envoy's `retry_budget`: retries that are active or pending are at most 20 % of the
/// requests that are, or three.
#[derive(Default)]
struct ConcurrentRetries {
    active: u32,
    retries: u32,
}

impl Guard for ConcurrentRetries {
    fn allows_retry(&mut self, _: &dyn World) -> bool {
        f64::from(self.retries) < (0.2 * f64::from(self.active)).max(3.0)
    }

    fn begin(&mut self, retry: bool, _: Instant) {
        self.active += 1;
        self.retries += u32::from(retry);
    }

    fn end(&mut self, ended: Ended, _: Instant) {
        self.active = self.active.saturating_sub(1);
        self.retries = self.retries.saturating_sub(u32::from(ended.retry));
    }
}

/// Google's client-wide retry budget (SRE book, chapter 21): retries are below a share of
/// all attempts.
struct RetryRatio {
    attempts: Window<2>,
    share: f64,
}

impl RetryRatio {
    fn new(share: f64, length: Duration) -> Self {
        Self {
            attempts: Window::new(length),
            share,
        }
    }
}

impl Guard for RetryRatio {
    fn allows_retry(&mut self, world: &dyn World) -> bool {
        let now = world.now();
        let (all, retries) = (self.attempts.sum(now, 0), self.attempts.sum(now, 1));
        retries < self.share * all
    }

    fn begin(&mut self, retry: bool, now: Instant) {
        self.attempts.add(now, 0, 1.0);
        if retry {
            self.attempts.add(now, 1, 1.0);
        }
    }
}

/// A circuit breaker for retries only (Brooker 2022, with a window).
struct RetryBreaker {
    ended: Window<2>,
    share: f64,
}

impl RetryBreaker {
    fn new(share: f64, length: Duration) -> Self {
        Self {
            ended: Window::new(length),
            share,
        }
    }
}

impl Guard for RetryBreaker {
    fn allows_retry(&mut self, world: &dyn World) -> bool {
        let now = world.now();
        let (all, failed) = (self.ended.sum(now, 0), self.ended.sum(now, 1));
        failed < self.share * all
    }

    fn end(&mut self, ended: Ended, now: Instant) {
        if ended.result == AttemptResult::Abandoned {
            return;
        }
        self.ended.add(now, 0, 1.0);
        if ended.result.is_failure() {
            self.ended.add(now, 1, 1.0);
        }
    }
}
