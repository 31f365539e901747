//! One request of a client, as the engine has it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use aws_smithy_types::timeout::TimeoutConfig;
use steadfast::failure::Safety;
use steadfast::world::Roll;
use steadfast::{Call, Failure, Orchestrator, RetryEvent, RetryStrategy, Step, World};

use super::names::lasting;
use super::retry::{AwsRetry, Inner};

/// The operation of a request, as its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwsOperation {
    /// The service, such as `SQS`.
    pub service: &'static str,
    /// The operation, such as `SendMessage`.
    pub name: &'static str,
}

/// The request, kept in its own configuration: its token goes where it goes, and
/// is dropped with it.
#[derive(Clone)]
pub(super) struct Running {
    owner: Arc<Inner>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// When the operation was started.
    started: Instant,
    /// None until it is known what the operation is.
    request: Option<Orchestrator<Arc<dyn RetryStrategy>>>,
    begun: bool,
    replayable: bool,
    sending: bool,
    decided: Decided,
}

/// What the SDK is to do.
#[derive(Clone, Copy)]
pub(super) enum Decided {
    Retry(Duration),
    GiveUp,
}

impl Running {
    /// An operation is started. What it is, is not known yet.
    pub(super) fn start(retry: &AwsRetry, world: &dyn World) -> Self {
        let state = State {
            started: world.now(),
            request: None,
            begun: false,
            replayable: true,
            sending: false,
            decided: Decided::GiveUp,
        };
        Self {
            owner: Arc::clone(&retry.inner),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Begins the request, as of when the operation was started.
    pub(super) fn begin(&self, cfg: &ConfigBag, world: &dyn World) {
        let (service, name) = match cfg.load::<Metadata>() {
            Some(metadata) => (metadata.service(), metadata.name()),
            None => ("", ""),
        };
        let mut call = Call::new(lasting(name))
            .service("aws")
            .idempotent((self.owner.idempotent)(name))
            .context(AwsOperation {
                service: lasting(service),
                name: lasting(name),
            });
        let timeout = cfg.load::<TimeoutConfig>();
        if let Some(timeout) = timeout.and_then(TimeoutConfig::operation_timeout) {
            call = call.timeout(timeout);
        }
        let mut state = self.state();
        let at = state.started;
        let request = Orchestrator::new(Arc::clone(&self.owner.strategy), call);
        let step = state.request.insert(request).begin(&Began { at, world });
        state.begun = matches!(step, Step::Attempt);
    }

    /// The request, if it is this interceptor's.
    pub(super) fn of(retry: &AwsRetry, cfg: &ConfigBag) -> Option<Self> {
        let running = cfg.load::<Self>()?;
        Arc::ptr_eq(&running.owner, &retry.inner).then(|| running.clone())
    }

    /// An attempt is about to be made, if it still may.
    pub(super) fn attempt(&self, replayable: bool, world: &dyn World) -> Step {
        let mut state = self.state();
        state.replayable = replayable;
        state.sending = false;
        state.decided = Decided::GiveUp;
        match (std::mem::take(&mut state.begun), &mut state.request) {
            (true, _) => Step::Attempt,
            (false, Some(request)) => request.handle_waited(world),
            (false, None) => Step::LeftAlone,
        }
    }

    /// The attempt is about to be written.
    pub(super) fn sending(&self) {
        self.state().sending = true;
    }

    /// Whether bytes of the attempt may have left.
    pub(super) fn is_sending(&self) -> bool {
        self.state().sending
    }

    /// What is to come after the attempt that ended last.
    pub(super) fn decided(&self) -> Decided {
        self.state().decided
    }

    pub(super) fn succeed(&self, world: &dyn World) {
        if let Some(request) = &mut self.state().request {
            request.handle_success(world);
        }
    }

    pub(super) fn fail(&self, failure: Failure, world: &dyn World) -> Decided {
        let mut state = self.state();
        let failure = match state.replayable {
            true => failure,
            false => {
                let before = failure.note().unwrap_or("failed");
                let note = format!("{before}; the body is a stream, so it cannot be sent again");
                failure.with_safety(Safety::No).with_note(note)
            }
        };
        let Some(request) = &mut state.request else {
            return Decided::GiveUp;
        };
        let decided = match request.handle_failure(failure, world) {
            Step::Wait { delay, capped } => Decided::Retry(match capped {
                // The SDK's own timer ends the operation at its deadline. The
                // sleep must not be over first, or an attempt would follow it.
                true => delay.saturating_add(Duration::from_secs(1)),
                false => delay,
            }),
            Step::Attempt => Decided::Retry(Duration::ZERO),
            Step::Ask(_) | Step::GiveUp(_) | Step::LeftAlone => Decided::GiveUp,
        };
        state.decided = decided;
        decided
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The engine survives panics of what it calls, so there is no state
        // that a panic could have left half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The world as it was when the operation began.
struct Began<'a> {
    at: Instant,
    world: &'a dyn World,
}

impl World for Began<'_> {
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

impl Storable for Running {
    type Storer = StoreReplace<Self>;
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}
