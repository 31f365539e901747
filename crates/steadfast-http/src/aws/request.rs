//! One request of an AWS client, as a request of the engine.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use aws_smithy_types::retry::RetryConfig;
use steadfast::strategy::Cause;
use steadfast::world::Roll;
use steadfast::{Call, Failure, Orchestrator, RetryEvent, RetryStrategy, Step, World};

use super::deviation::{Decision, Deviation};
use super::retry::{AwsRetry, AwsSettings};
use crate::classify::cannot_resend;

/// A request and its retry token, stored in the request's own configuration.
pub(super) struct AwsRequest {
    owner: Arc<AwsSettings>,
    started: Instant,
    /// The client's own configuration.
    pub(super) config: RetryConfig,
    /// None before the first attempt. Never locked: the configuration requires `Sync`.
    request: Mutex<Option<AwsOrchestrator>>,
    /// The engine waits for nothing before the next attempt.
    ready: bool,
    attempt: u32,
    replayable: bool,
    sending: bool,
    decision: Option<Decision>,
    /// How long the error of a request that was shed is held back.
    held_back: Option<Duration>,
}

type AwsOrchestrator = Orchestrator<Arc<dyn RetryStrategy>>;

/// The step that the SDK has to take after an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum NextStep {
    Retry(Duration),
    GiveUp,
    /// Gives up, and delays the error that the caller gets.
    GiveUpAfter(Duration),
}

impl AwsRequest {
    /// Starts the clock of an operation.
    pub(super) fn new(retry: &AwsRetry, world: &dyn World) -> Self {
        Self {
            owner: Arc::clone(&retry.inner),
            started: world.now(),
            config: RetryConfig::standard(),
            request: Mutex::new(None),
            ready: false,
            attempt: 0,
            replayable: true,
            sending: false,
            decision: None,
            held_back: None,
        }
    }

    /// Loads the request, if it belongs to this interceptor.
    pub(super) fn load<'a>(retry: &AwsRetry, cfg: &'a mut ConfigBag) -> Option<&'a mut Self> {
        let request = cfg.get_mut_from_interceptor_state::<Self>()?;
        Arc::ptr_eq(&request.owner, &retry.inner).then_some(request)
    }

    /// Returns whether an attempt was begun.
    pub(super) fn is_begun(&mut self) -> bool {
        self.request().is_some()
    }

    /// Begins the request. Its time counts from the start of the operation.
    pub(super) fn begin(&mut self, call: Call, world: &dyn World) -> Step {
        let at = self.started;
        let request = Orchestrator::new(Arc::clone(&self.owner.strategy), call);
        let request = self.request().insert(request);
        let step = request.begin(&StartWorld { at, world });
        if let (Step::Wait { delay, .. }, true) = (&step, request.refusal().is_some()) {
            self.held_back = Some(*delay);
        }
        step
    }

    /// Returns why the strategy shed the request, if it did.
    pub(super) fn shed(&mut self) -> Option<String> {
        let refusal = self.request().as_ref()?.refusal()?;
        (refusal.cause() == Cause::Shed).then(|| format!("{refusal}; nothing was sent"))
    }

    /// Notes that the SDK begins an attempt, and returns whether one was decided.
    pub(super) fn begin_attempt(
        &mut self,
        attempt: u32,
        replayable: bool,
        world: &dyn World,
    ) -> Option<Deviation> {
        self.attempt = attempt;
        self.replayable = replayable;
        self.sending = false;
        let decision = self.decision.take()?;
        decision.check_attempt(attempt, world.now())
    }

    /// Continues after the wait.
    pub(super) fn resume(&mut self, world: &dyn World) -> Step {
        match (std::mem::take(&mut self.ready), self.request()) {
            (true, _) => Step::Attempt,
            (false, Some(request)) => request.handle_waited(world),
            (false, None) => Step::LeftAlone,
        }
    }

    /// Notes that bytes may be sent from now on.
    pub(super) fn set_sending(&mut self) {
        self.sending = true;
    }

    /// Returns whether bytes of the attempt may have been sent.
    pub(super) fn is_sending(&self) -> bool {
        self.sending
    }

    /// Returns the step after the last attempt.
    pub(super) fn next_step(&self) -> NextStep {
        self.decision
            .map_or(NextStep::GiveUp, |decision| decision.next)
    }

    pub(super) fn succeed(&mut self, world: &dyn World) {
        if let Some(request) = self.request() {
            request.handle_success(world);
        }
    }

    pub(super) fn fail(&mut self, failure: Failure, world: &dyn World) -> NextStep {
        let failure = match self.replayable {
            true => failure,
            false => cannot_resend(failure, "the body is a stream"),
        };
        let held_back = self.held_back.take();
        let Some(request) = self.request() else {
            return NextStep::GiveUp;
        };
        let step = request.handle_failure(failure, world);
        let ready = matches!(step, Step::Attempt);
        let next = match step {
            Step::Wait { delay, .. } if request.refusal().is_some() => NextStep::GiveUpAfter(delay),
            Step::Wait { delay, capped } => NextStep::Retry(match capped {
                // The SDK's own timer ends the operation at the deadline. A sleep
                // that ends earlier would be followed by an attempt.
                true => delay.saturating_add(Duration::from_secs(1)),
                false => delay,
            }),
            Step::Attempt => NextStep::Retry(Duration::ZERO),
            Step::Ask | Step::GiveUp(_) | Step::LeftAlone => {
                held_back.map_or(NextStep::GiveUp, NextStep::GiveUpAfter)
            }
        };
        self.ready = ready;
        let (at, attempt) = (world.now(), self.attempt);
        self.decision = Some(Decision { next, at, attempt });
        next
    }

    /// Notes that the SDK ends the operation.
    pub(super) fn end(&mut self, world: &dyn World) -> Option<Deviation> {
        let decision = self.decision.take()?;
        decision.check_end(world.now())
    }

    fn request(&mut self) -> &mut Option<AwsOrchestrator> {
        // The engine catches panics, so poison is harmless.
        let request = self.request.get_mut();
        request.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The world at the start of the operation.
struct StartWorld<'a> {
    at: Instant,
    world: &'a dyn World,
}

impl World for StartWorld<'_> {
    fn now(&self) -> Instant {
        self.at
    }

    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        self.world.observe(event);
    }
}

impl Storable for AwsRequest {
    type Storer = StoreReplace<Self>;
}

impl fmt::Debug for AwsRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsRequest").finish_non_exhaustive()
    }
}
