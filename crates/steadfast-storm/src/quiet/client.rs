//! Simulates one client whose attempts fail as a test says.

use std::sync::Arc;
use std::time::Duration;

use steadfast::failure::FaultSide;
use steadfast::{Call, Failure, Orchestrator, RetryStrategy, Step, VirtualWorld, reason};

use crate::model::Clients;
use crate::policies::Policy;

const SECOND: Duration = Duration::from_secs(1);
/// The time of an attempt that gets a response.
const RESPONSE: Duration = Duration::from_millis(10);
pub(super) const ATTEMPT_TIMEOUT: Duration = SECOND;
const DEADLINE: Duration = Duration::from_secs(30);

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    Error,
    Timeout,
    Refused,
    Throttled,
}

impl FailureKind {
    fn failure(self) -> Failure {
        match self {
            Self::Error => {
                Failure::inconclusive(&reason::OPERATION_FAILED).with_fault(FaultSide::Server)
            }
            Self::Timeout => Failure::in_flight(&reason::TIMEOUT).timed_out(),
            Self::Refused => Failure::not_sent(&reason::NOT_AVAILABLE),
            Self::Throttled => Failure::responded(&reason::THROTTLED)
                .with_fault(FaultSide::Server)
                .throttling(),
        }
    }

    fn takes(self) -> Duration {
        match self {
            Self::Timeout => ATTEMPT_TIMEOUT,
            Self::Error | Self::Refused | Self::Throttled => RESPONSE,
        }
    }
}

/// A client with a policy, alone with its peer.
pub(super) struct QuietClient {
    strategy: Arc<dyn RetryStrategy>,
    world: VirtualWorld,
}

/// A call of a client that makes several at once.
struct Open {
    request: Orchestrator<Arc<dyn RetryStrategy>>,
    due: Duration,
    has_begun: bool,
}

impl QuietClient {
    pub(super) fn new(policy: &Policy, seed: u64) -> Self {
        let clients = Clients {
            attempt_timeout: Some(ATTEMPT_TIMEOUT.as_secs_f64()),
            ..Clients::default()
        };
        let mut strategies = policy.make(&clients, 1);
        Self {
            strategy: strategies.remove(0),
            world: VirtualWorld::new().seeded(seed),
        }
    }

    /// Makes a call, and returns whether it succeeds. `fails` decides about each attempt.
    pub(super) fn call(&self, kind: FailureKind, mut fails: impl FnMut() -> bool) -> bool {
        let mut request = self.request();
        let mut step = request.begin(&self.world);
        loop {
            step = match step {
                Step::Attempt if fails() => {
                    self.world.advance(kind.takes());
                    request.handle_failure(kind.failure(), &self.world)
                }
                Step::Attempt => {
                    self.world.advance(RESPONSE);
                    request.handle_success(&self.world);
                    return true;
                }
                Step::Wait { delay, .. } => {
                    self.world.advance(delay);
                    request.handle_waited(&self.world)
                }
                Step::GiveUp(_) | Step::Ask | Step::LeftAlone => return false,
            };
        }
    }

    /// Makes calls that succeed, one in each period.
    pub(super) fn succeed(&self, calls: u32, every: Duration) {
        for _ in 0..calls {
            self.call(FailureKind::Error, || false);
            self.world.advance(every);
        }
    }

    /// Makes calls that take this long and succeed, and returns the share that is sent.
    pub(super) fn sent(&self, calls: u32, latency: Duration) -> f64 {
        let mut sent = 0;
        for _ in 0..calls {
            let mut request = self.request();
            if matches!(request.begin(&self.world), Step::Attempt) {
                self.world.advance(latency);
                request.handle_success(&self.world);
                sent += 1;
            }
            self.world.advance(SECOND);
        }
        f64::from(sent) / f64::from(calls)
    }

    /// Makes calls for this long while every attempt fails, whether others wait or not.
    /// Returns the share of the calls that succeed in the end, when attempts do again.
    pub(super) fn survive(&self, kind: FailureKind, outage: Duration, every: Duration) -> f64 {
        let start = self.world.elapsed();
        let end = start + outage;
        let starts = (0..).map(|call| start + every * call);
        let mut open: Vec<Open> = starts
            .take_while(|due| *due < end)
            .map(|due| Open {
                request: self.request(),
                due,
                has_begun: false,
            })
            .collect();
        let (calls, mut saved) = (open.len(), 0u32);
        while let Some(next) = (0..open.len()).min_by_key(|at| open[*at].due) {
            let mut call = open.swap_remove(next);
            self.world
                .advance(call.due.saturating_sub(self.world.elapsed()));
            match self.advance(&mut call, kind, end) {
                Some(true) => saved += 1,
                Some(false) => {}
                None => open.push(call),
            }
        }
        f64::from(saved) / calls as f64
    }

    /// Takes a call to its next wait, and returns whether it succeeded if it ended.
    fn advance(&self, call: &mut Open, kind: FailureKind, end: Duration) -> Option<bool> {
        let mut step = match call.has_begun {
            true => call.request.handle_waited(&self.world),
            false => call.request.begin(&self.world),
        };
        call.has_begun = true;
        loop {
            step = match step {
                Step::Attempt if self.world.elapsed() < end => {
                    call.request.handle_failure(kind.failure(), &self.world)
                }
                Step::Attempt => {
                    call.request.handle_success(&self.world);
                    return Some(true);
                }
                Step::Wait { delay, .. } => {
                    call.due = self.world.elapsed() + delay;
                    return None;
                }
                Step::GiveUp(_) | Step::Ask | Step::LeftAlone => return Some(false),
            };
        }
    }

    fn request(&self) -> Orchestrator<Arc<dyn RetryStrategy>> {
        let call = Call::new("get").idempotent(true).timeout(DEADLINE);
        Orchestrator::new(self.strategy.clone(), call)
    }
}
