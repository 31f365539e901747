//! A strategy of a user around another one.

use std::sync::{Mutex, PoisonError};

use steadfast::strategy::{Admission, Decision, Ending, Refusal, RetryToken, StrategyInfo};
use steadfast::{Failure, Request, RetryStrategy, World};

/// The methods of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Acquire,
    Refresh,
    RecordSuccess,
    RecordEnd,
    Info,
}

/// Passes every call on, and counts it. It can panic in one of its methods, the first time.
pub(crate) struct Wrapper<S> {
    inner: S,
    fault: Option<Method>,
    calls: Mutex<Vec<Method>>,
}

impl<S: RetryStrategy> Wrapper<S> {
    pub(crate) fn new(inner: S, fault: Option<Method>) -> Self {
        Self {
            inner,
            fault,
            calls: Mutex::default(),
        }
    }

    /// How often this method was called.
    pub(crate) fn count(&self, method: Method) -> usize {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().filter(|call| **call == method).count()
    }

    fn enter(&self, method: Method) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !calls.contains(&method);
        calls.push(method);
        drop(calls);
        if is_first && self.fault == Some(method) {
            panic!("a fault in {method:?}");
        }
    }
}

impl<S: RetryStrategy> RetryStrategy for Wrapper<S> {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        self.enter(Method::Acquire);
        self.inner.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.enter(Method::Refresh);
        self.inner
            .refresh_retry_token(token, request, failure, world)
    }

    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        self.enter(Method::RecordSuccess);
        self.inner.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.enter(Method::RecordEnd);
        self.inner.record_end(token, ending, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self.enter(Method::Info);
        self.inner.info()
    }
}
