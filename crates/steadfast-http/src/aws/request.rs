//! One request of an AWS client, as a request of the engine.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use steadfast::strategy::Cause;
use steadfast::world::Roll;
use steadfast::{Call, Failure, Orchestrator, RetryEvent, RetryStrategy, Step, World};

use super::deviation::{Decision, Deviation};
use super::intern::intern;
use super::retry::{AwsRetry, Inner};
use crate::classify::cannot_resend;

/// The operation of a request; the context that observers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwsOperation {
    /// The service, such as `SQS`.
    pub service: &'static str,
    /// The operation, such as `SendMessage`.
    pub name: &'static str,
}

impl AwsOperation {
    pub(super) fn load(cfg: &ConfigBag) -> Self {
        let (service, name) = match cfg.load::<Metadata>() {
            Some(metadata) => (metadata.service(), metadata.name()),
            None => ("", ""),
        };
        Self {
            service: intern(service),
            name: intern(name),
        }
    }
}

impl fmt::Display for AwsOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.service, self.name)
    }
}

/// A request and its retry token, stored in the request's own configuration.
#[derive(Clone)]
pub(super) struct AwsRequest {
    owner: Arc<Inner>,
    state: Arc<Mutex<RequestState>>,
}

struct RequestState {
    started: Instant,
    /// The client's own configuration.
    config: RetryConfig,
    /// None before the first attempt.
    request: Option<Orchestrator<Arc<dyn RetryStrategy>>>,
    /// The engine waits for nothing before the next attempt.
    ready: bool,
    attempt: u32,
    replayable: bool,
    sending: bool,
    decision: Option<Decision>,
    /// How long the error of a request that was shed is held back.
    held_back: Option<Duration>,
}

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
        let state = RequestState {
            started: world.now(),
            config: RetryConfig::standard(),
            request: None,
            ready: false,
            attempt: 0,
            replayable: true,
            sending: false,
            decision: None,
            held_back: None,
        };
        Self {
            owner: Arc::clone(&retry.inner),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Loads the request, if it belongs to this interceptor.
    pub(super) fn load(retry: &AwsRetry, cfg: &ConfigBag) -> Option<Self> {
        let request = cfg.load::<Self>()?;
        Arc::ptr_eq(&request.owner, &retry.inner).then(|| request.clone())
    }

    /// Keeps the client's own configuration.
    pub(super) fn keep_config(&self, cfg: &ConfigBag) {
        if let Some(config) = cfg.load::<RetryConfig>() {
            self.state().config = config.clone();
        }
    }

    /// Returns the client's own configuration.
    pub(super) fn config(&self) -> RetryConfig {
        self.state().config.clone()
    }

    /// Returns whether an attempt was begun.
    pub(super) fn is_begun(&self) -> bool {
        self.state().request.is_some()
    }

    /// Begins the request. Its time counts from the start of the operation.
    pub(super) fn begin(&self, call: Call, cfg: &ConfigBag, world: &dyn World) -> Step {
        let timeout = cfg.load::<TimeoutConfig>();
        let call = match timeout.and_then(TimeoutConfig::operation_timeout) {
            Some(timeout) => call.timeout(timeout),
            None => call,
        };
        let mut state = self.state();
        let at = state.started;
        let request = Orchestrator::new(Arc::clone(&self.owner.strategy), call);
        let request = state.request.insert(request);
        let step = request.begin(&StartWorld { at, world });
        if let (Step::Wait { delay, .. }, true) = (&step, request.refusal().is_some()) {
            state.held_back = Some(*delay);
        }
        step
    }

    /// Returns why the strategy shed the request, if it did.
    pub(super) fn shed(&self) -> Option<String> {
        let state = self.state();
        let refusal = state.request.as_ref()?.refusal()?;
        (refusal.cause() == Cause::Shed).then(|| format!("{refusal}; nothing was sent"))
    }

    /// Notes that the SDK begins an attempt, and returns whether one was decided.
    pub(super) fn begin_attempt(
        &self,
        attempt: u32,
        replayable: bool,
        world: &dyn World,
    ) -> Option<Deviation> {
        let mut state = self.state();
        state.attempt = attempt;
        state.replayable = replayable;
        state.sending = false;
        let decision = state.decision.take()?;
        decision.check_attempt(attempt, world.now())
    }

    /// Continues after the wait.
    pub(super) fn resume(&self, world: &dyn World) -> Step {
        let mut state = self.state();
        match (std::mem::take(&mut state.ready), &mut state.request) {
            (true, _) => Step::Attempt,
            (false, Some(request)) => request.handle_waited(world),
            (false, None) => Step::LeftAlone,
        }
    }

    /// Notes that bytes may be sent from now on.
    pub(super) fn set_sending(&self) {
        self.state().sending = true;
    }

    /// Returns whether bytes of the attempt may have been sent.
    pub(super) fn is_sending(&self) -> bool {
        self.state().sending
    }

    /// Returns the step after the last attempt.
    pub(super) fn next_step(&self) -> NextStep {
        let decision = self.state().decision;
        decision.map_or(NextStep::GiveUp, |decision| decision.next)
    }

    pub(super) fn succeed(&self, world: &dyn World) {
        if let Some(request) = &mut self.state().request {
            request.handle_success(world);
        }
    }

    pub(super) fn fail(&self, failure: Failure, world: &dyn World) -> NextStep {
        let mut state = self.state();
        let failure = match state.replayable {
            true => failure,
            false => cannot_resend(failure, "the body is a stream"),
        };
        let held_back = state.held_back.take();
        let Some(request) = &mut state.request else {
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
            Step::Ask(_) | Step::GiveUp(_) | Step::LeftAlone => {
                held_back.map_or(NextStep::GiveUp, NextStep::GiveUpAfter)
            }
        };
        state.ready = ready;
        let (at, attempt) = (world.now(), state.attempt);
        state.decision = Some(Decision { next, at, attempt });
        next
    }

    /// Notes that the SDK ends the operation.
    pub(super) fn end(&self, world: &dyn World) -> Option<Deviation> {
        let decision = self.state().decision.take()?;
        decision.check_end(world.now())
    }

    fn state(&self) -> MutexGuard<'_, RequestState> {
        // The engine catches panics, so poison is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
