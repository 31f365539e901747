//! One request of an AWS client, as a request of the engine.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use aws_smithy_types::timeout::TimeoutConfig;
use steadfast::strategy::WhenTooLate;
use steadfast::world::Roll;
use steadfast::{Call, Failure, Orchestrator, RetryEvent, RetryStrategy, Step, World};

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

/// A request and its retry token, stored in the request's own configuration.
#[derive(Clone)]
pub(super) struct AwsRequest {
    owner: Arc<Inner>,
    state: Arc<Mutex<RequestState>>,
}

struct RequestState {
    started: Instant,
    /// None until the operation is known.
    request: Option<Orchestrator<Arc<dyn RetryStrategy>>>,
    begun: bool,
    replayable: bool,
    sending: bool,
    next: NextStep,
}

/// The step that the SDK has to take after an attempt.
#[derive(Clone, Copy)]
pub(super) enum NextStep {
    Retry(Duration),
    GiveUp,
}

impl AwsRequest {
    /// Starts the clock of an operation.
    pub(super) fn new(retry: &AwsRetry, world: &dyn World) -> Self {
        let state = RequestState {
            started: world.now(),
            request: None,
            begun: false,
            replayable: true,
            sending: false,
            next: NextStep::GiveUp,
        };
        Self {
            owner: Arc::clone(&retry.inner),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Begins the request. Its time counts from the start of the operation.
    pub(super) fn begin(&self, cfg: &ConfigBag, world: &dyn World) {
        let (service, name) = match cfg.load::<Metadata>() {
            Some(metadata) => (metadata.service(), metadata.name()),
            None => ("", ""),
        };
        let mut call = Call::new(intern(name))
            .service("aws")
            .idempotent((self.owner.idempotent)(name))
            .when_too_late(WhenTooLate::FailFast)
            .context(AwsOperation {
                service: intern(service),
                name: intern(name),
            });
        let timeout = cfg.load::<TimeoutConfig>();
        if let Some(timeout) = timeout.and_then(TimeoutConfig::operation_timeout) {
            call = call.timeout(timeout);
        }
        let mut state = self.state();
        let at = state.started;
        let request = Orchestrator::new(Arc::clone(&self.owner.strategy), call);
        let step = state
            .request
            .insert(request)
            .begin(&StartWorld { at, world });
        state.begun = matches!(step, Step::Attempt);
    }

    /// Loads the request, if it belongs to this interceptor.
    pub(super) fn load(retry: &AwsRetry, cfg: &ConfigBag) -> Option<Self> {
        let request = cfg.load::<Self>()?;
        Arc::ptr_eq(&request.owner, &retry.inner).then(|| request.clone())
    }

    /// Begins an attempt, if the deadline allows it.
    pub(super) fn begin_attempt(&self, replayable: bool, world: &dyn World) -> Step {
        let mut state = self.state();
        state.replayable = replayable;
        state.sending = false;
        state.next = NextStep::GiveUp;
        match (std::mem::take(&mut state.begun), &mut state.request) {
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
        self.state().next
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
        let Some(request) = &mut state.request else {
            return NextStep::GiveUp;
        };
        let next = match request.handle_failure(failure, world) {
            Step::Wait { delay, capped } => NextStep::Retry(match capped {
                // The SDK's own timer ends the operation at the deadline. A sleep
                // that ends earlier would be followed by an attempt.
                true => delay.saturating_add(Duration::from_secs(1)),
                false => delay,
            }),
            Step::Attempt => NextStep::Retry(Duration::ZERO),
            Step::Ask(_) | Step::GiveUp(_) | Step::LeftAlone => NextStep::GiveUp,
        };
        state.next = next;
        next
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
