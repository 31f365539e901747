//! Published policies: two budgets, and a circuit breaker.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use steadfast::{StrategyExt, World};

use super::guarded::{Guard, Guarded};
use super::{Policy, attempts, full_jitter};

pub(super) fn all() -> [Policy; 3] {
    [
        guarded("grpc", RetryThrottling::default),
        guarded("finagle-budget", TtlBudget::default),
        guarded("linkerd", Breaker::default),
    ]
}

/// Creates a policy with full jitter and a guard.
fn guarded<G: Guard>(name: &str, guard: fn() -> G) -> Policy {
    Policy::new(name, move |clients| {
        Guarded::new(full_jitter(), guard())
            .max_attempts(attempts(clients))
            .expect("a limit is at least 1")
    })
}

/// gRPC's `retryThrottling` (gRFC A6) with 10 tokens and a ratio of 0.1: a failure takes
/// one token, a success returns 0.1; there are retries while more than half are left.
struct RetryThrottling {
    tokens: f64,
}

impl RetryThrottling {
    const MOST: f64 = 10.0;
}

impl Default for RetryThrottling {
    fn default() -> Self {
        Self { tokens: Self::MOST }
    }
}

impl Guard for RetryThrottling {
    fn allows_retry(&mut self, _: &dyn World) -> bool {
        self.tokens > Self::MOST / 2.0
    }

    fn end(&mut self, succeeded: bool, _: Instant) {
        let change = if succeeded { 0.1 } else { -1.0 };
        self.tokens = (self.tokens + change).clamp(0.0, Self::MOST);
    }
}

/// Finagle's `RetryBudget`, which tower and Linkerd have too: over ten seconds, retries are
/// at most 20 % of the requests, and 10 per second in addition.
#[derive(Default)]
struct TtlBudget {
    /// The balance of each second, the oldest first.
    seconds: VecDeque<(Instant, f64)>,
}

impl TtlBudget {
    const SECONDS: u64 = 10;
    const COST: f64 = 5.0;
    const RESERVE: f64 = 10.0 * 10.0 * Self::COST;

    fn add(&mut self, now: Instant, amount: f64) {
        match self.seconds.back_mut() {
            Some((since, balance)) if now.duration_since(*since) < Duration::from_secs(1) => {
                *balance += amount;
            }
            _ => self.seconds.push_back((now, amount)),
        }
        let ttl = Duration::from_secs(Self::SECONDS);
        while let Some((since, _)) = self.seconds.front()
            && now.duration_since(*since) >= ttl
        {
            self.seconds.pop_front();
        }
    }
}

impl Guard for TtlBudget {
    fn allows_retry(&mut self, world: &dyn World) -> bool {
        self.add(world.now(), 0.0);
        let balance: f64 = self.seconds.iter().map(|(_, balance)| balance).sum();
        let enough = balance + Self::RESERVE >= Self::COST;
        if enough {
            self.add(world.now(), -Self::COST);
        }
        enough
    }

    fn begin(&mut self, now: Instant) {
        self.add(now, 1.0);
    }
}

/// Linkerd's circuit breaker: it opens after 7 failures in a row, for 1 s. Then one attempt
/// probes the service. Each failed probe doubles the pause, up to 60 s.
struct Breaker {
    failures: u32,
    pause: Duration,
    state: BreakerState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    Closed,
    OpenUntil(Instant),
    /// The probe is under way; if its result is lost, another one is sent after this time.
    Probing(Instant),
}

impl Breaker {
    const IN_A_ROW: u32 = 7;
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 0,
            pause: Self::SHORTEST,
            state: BreakerState::Closed,
        }
    }
}

impl Guard for Breaker {
    fn admits(&mut self, world: &dyn World) -> bool {
        match self.state {
            BreakerState::Closed => true,
            BreakerState::OpenUntil(until) | BreakerState::Probing(until)
                if world.now() < until =>
            {
                false
            }
            BreakerState::OpenUntil(_) | BreakerState::Probing(_) => {
                self.state = BreakerState::Probing(world.now() + self.pause);
                true
            }
        }
    }

    fn allows_retry(&mut self, world: &dyn World) -> bool {
        self.admits(world)
    }

    fn end(&mut self, succeeded: bool, now: Instant) {
        match self.state {
            BreakerState::Closed => {
                self.failures = if succeeded { 0 } else { self.failures + 1 };
                if self.failures >= Self::IN_A_ROW {
                    self.state = BreakerState::OpenUntil(now + self.pause);
                    self.failures = 0;
                }
            }
            BreakerState::Probing(_) if succeeded => *self = Self::default(),
            BreakerState::Probing(_) => {
                self.pause = (self.pause * 2).min(Self::LONGEST);
                self.state = BreakerState::OpenUntil(now + self.pause);
            }
            // The result of an attempt from before.
            BreakerState::OpenUntil(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::VirtualWorld;

    #[test]
    fn grpc_retries_while_more_than_half_of_the_tokens_are_left() {
        let (mut guard, world) = (RetryThrottling::default(), VirtualWorld::new());
        (0..4).for_each(|_| guard.end(false, world.now()));
        assert!(guard.allows_retry(&world));
        guard.end(false, world.now());
        assert!(!guard.allows_retry(&world));
        guard.end(true, world.now());
        assert!(guard.allows_retry(&world));
    }

    #[test]
    fn finagle_pays_a_retry_with_five_requests_of_the_last_ten_seconds() {
        let (mut guard, world) = (TtlBudget::default(), VirtualWorld::new());
        (0..50).for_each(|_| guard.begin(world.now()));
        let retries = |guard: &mut TtlBudget| {
            let granted = std::iter::from_fn(|| guard.allows_retry(&world).then_some(()));
            granted.take(1000).count()
        };
        assert_eq!(retries(&mut guard), 100 + 10);
        world.advance(Duration::from_secs(10));
        assert_eq!(retries(&mut guard), 100);
    }

    #[test]
    fn linkerd_opens_after_seven_failures_and_probes_ever_more_rarely() {
        let (mut guard, world) = (Breaker::default(), VirtualWorld::new());
        let second = Duration::from_secs(1);
        (0..7).for_each(|_| guard.end(false, world.now()));
        assert!(!guard.admits(&world));
        world.advance(second);
        assert!(guard.admits(&world), "the probe");
        assert!(!guard.admits(&world), "one only");
        guard.end(false, world.now());
        world.advance(second);
        assert!(!guard.admits(&world), "two seconds now");
        world.advance(second);
        assert!(guard.admits(&world));
        guard.end(true, world.now());
        assert!(guard.admits(&world) && guard.admits(&world));
    }
}
