//! A strategy that panics once, in a chosen method.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use steadfast::strategy::{Answer, Decision, Ending, ForeignToken, RetryToken, StrategyInfo};
use steadfast::{Backoff, BestEffort, Failure, Request, RetryStrategy, World};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    Acquire,
    Refresh,
    RecordSuccess,
    RecordEnd,
    DecisionAtOnce,
    DecisionLater,
    Describe,
}

/// Best effort without delays, apart from its one fault.
pub(crate) struct Faulty {
    inner: BestEffort,
    fault: Fault,
    armed: AtomicBool,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Self {
        Self::waiting(fault, Duration::ZERO)
    }

    pub(crate) fn waiting(fault: Fault, delay: Duration) -> Self {
        Self {
            inner: BestEffort::new(Backoff::constant(delay)),
            fault,
            armed: AtomicBool::new(true),
        }
    }

    /// Whether the fault has come about.
    pub(crate) fn has_panicked(&self) -> bool {
        !self.armed.load(Ordering::Relaxed)
    }

    fn is_due(&self, fault: Fault) -> bool {
        self.fault == fault && self.armed.swap(false, Ordering::Relaxed)
    }

    fn panic_if_due(&self, fault: Fault) {
        if self.is_due(fault) {
            panic!("a fault in {fault:?}");
        }
    }
}

impl RetryStrategy for Faulty {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        self.panic_if_due(Fault::Acquire);
        self.inner.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.panic_if_due(Fault::Refresh);
        if self.is_due(Fault::DecisionAtOnce) {
            return Decision::pending(async { panic!("a fault in a decision") });
        }
        if self.is_due(Fault::DecisionLater) {
            return Decision::pending(async {
                pending_once().await;
                panic!("a fault in a decision");
            });
        }
        self.inner
            .refresh_retry_token(token, request, failure, world)
    }

    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        self.panic_if_due(Fault::RecordSuccess);
        self.inner.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.panic_if_due(Fault::RecordEnd);
        self.inner.record_end(token, ending, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for Faulty {
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.panic_if_due(Fault::Describe);
        self.inner.info().describe(f)
    }
}

/// Not tokio's `yield_now`, which needs the runtime that a blocking call blocks.
async fn pending_once() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
