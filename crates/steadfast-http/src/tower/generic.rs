//! Retries for any service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use steadfast::classify::{ByInfo, Classifier};
use steadfast::{Error, InvalidSetting, RetryStrategy, retry};
use tower_layer::Layer;
use tower_service::Service;

use super::ready::{AttemptServices, CallError, never_ready, not_ready};
use crate::extensions::AttemptMark;
use crate::http_retry::require_bound;

/// Wraps services in [`RetryService`].
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use steadfast::Standard;
/// use steadfast_http::tower::RetryLayer;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lookup = service_fn(|name: String| async move { Ok::<_, io::Error>(name.len()) });
/// let layer = RetryLayer::new(Standard::guidance())?
///     .operation("lookup")
///     .timeout(Duration::from_secs(2))
///     .idempotent(|_request: &String| true);
/// assert_eq!(layer.layer(lookup).oneshot("ada".to_owned()).await?, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RetryLayer<C = ByInfo, I = NotIdempotent, P = Unchanged> {
    settings: Settings,
    classifier: C,
    idempotent: I,
    prepare: P,
}

#[derive(Clone)]
struct Settings {
    strategy: Arc<dyn RetryStrategy>,
    operation: &'static str,
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
}

/// Says which requests are idempotent. Any `Fn(&R) -> bool` is one.
pub trait Idempotency<R> {
    /// Returns whether this request may be sent twice.
    fn is_idempotent(&self, request: &R) -> bool;
}

impl<R, F: Fn(&R) -> bool> Idempotency<R> for F {
    fn is_idempotent(&self, request: &R) -> bool {
        self(request)
    }
}

/// Takes no request for idempotent. This is the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotIdempotent;

impl<R> Idempotency<R> for NotIdempotent {
    fn is_idempotent(&self, _: &R) -> bool {
        false
    }
}

/// Prepares a request for an attempt. Any `Fn(&mut R, AttemptMark)` is one.
pub trait Prepare<R> {
    /// Changes the copy of the request that this attempt sends.
    fn prepare(&self, request: &mut R, attempt: AttemptMark);
}

impl<R, F: Fn(&mut R, AttemptMark)> Prepare<R> for F {
    fn prepare(&self, request: &mut R, attempt: AttemptMark) {
        self(request, attempt);
    }
}

/// Sends the request unchanged in every attempt. This is the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchanged;

impl<R> Prepare<R> for Unchanged {
    fn prepare(&self, _: &mut R, _: AttemptMark) {}
}

impl RetryLayer {
    /// Retries by this strategy what the errors say is safe. No request is taken
    /// for idempotent; see [`idempotent`](Self::idempotent).
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself; see
    /// [`within`](Self::within).
    pub fn new(strategy: impl RetryStrategy + 'static) -> Result<Self, InvalidSetting> {
        require_bound(&strategy)?;
        Ok(Self::with(strategy, None))
    }

    /// Retries by this strategy for this time at most.
    pub fn within(timeout: Duration, strategy: impl RetryStrategy + 'static) -> Self {
        Self::with(strategy, Some(timeout))
    }

    fn with(strategy: impl RetryStrategy + 'static, timeout: Option<Duration>) -> Self {
        Self {
            settings: Settings {
                strategy: Arc::new(strategy),
                operation: "call",
                timeout,
                attempt_timeout: None,
            },
            classifier: ByInfo,
            idempotent: NotIdempotent,
            prepare: Unchanged,
        }
    }
}

impl<C, I, P> RetryLayer<C, I, P> {
    /// Names the operation, for errors and events.
    #[must_use]
    pub fn operation(mut self, operation: &'static str) -> Self {
        self.settings.operation = operation;
        self
    }

    /// Limits the time of each request, attempts and waits together.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Limits the time of each attempt.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = Some(timeout);
        self
    }

    /// Classifies errors with this instead of with their own
    /// [`RetryInfo`](steadfast::RetryInfo).
    pub fn classify<D>(self, classifier: D) -> RetryLayer<D, I, P> {
        let Self {
            settings,
            idempotent,
            prepare,
            ..
        } = self;
        RetryLayer {
            settings,
            classifier,
            idempotent,
            prepare,
        }
    }

    /// States which requests may be sent twice.
    pub fn idempotent<R, F: Fn(&R) -> bool>(self, idempotent: F) -> RetryLayer<C, F, P> {
        let Self {
            settings,
            classifier,
            prepare,
            ..
        } = self;
        RetryLayer {
            settings,
            classifier,
            idempotent,
            prepare,
        }
    }

    /// Prepares the copy of the request that an attempt sends. For example, marks
    /// it, so that an inner layer leaves the retries to this one:
    ///
    /// ```
    /// # use steadfast::Standard;
    /// # use steadfast_http::AttemptMark;
    /// # use steadfast_http::tower::RetryLayer;
    /// let layer = RetryLayer::new(Standard::guidance())?
    ///     .prepare(|request: &mut http::Request<String>, attempt: AttemptMark| {
    ///         request.extensions_mut().insert(attempt);
    ///     });
    /// # let _ = layer;
    /// # Ok::<(), steadfast::InvalidSetting>(())
    /// ```
    pub fn prepare<R, F: Fn(&mut R, AttemptMark)>(self, prepare: F) -> RetryLayer<C, I, F> {
        let Self {
            settings,
            classifier,
            idempotent,
            ..
        } = self;
        RetryLayer {
            settings,
            classifier,
            idempotent,
            prepare,
        }
    }
}

impl<S, C: Clone, I: Clone, P: Clone> Layer<S> for RetryLayer<C, I, P> {
    type Service = RetryService<S, C, I, P>;

    fn layer(&self, inner: S) -> Self::Service {
        let layer = self.clone();
        RetryService { inner, layer }
    }
}

impl<C, I, P> fmt::Debug for RetryLayer<C, I, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer")
            .field("operation", &self.settings.operation)
            .field("timeout", &self.settings.timeout)
            .field("attempt_timeout", &self.settings.attempt_timeout)
            .finish_non_exhaustive()
    }
}

/// Makes a call again where its errors say that this is safe and useful.
///
/// The inner service is polled for readiness before every attempt. Dropping a
/// call's future drops the attempt that is under way; its cost stays paid.
#[derive(Clone, Debug)]
pub struct RetryService<S, C = ByInfo, I = NotIdempotent, P = Unchanged> {
    inner: S,
    layer: RetryLayer<C, I, P>,
}

impl<S, R, C, I, P> Service<R> for RetryService<S, C, I, P>
where
    S: Service<R> + Clone + Send + 'static,
    S::Response: Send,
    S::Error: Send,
    S::Future: Send,
    R: Clone + Send + 'static,
    C: Classifier<S::Error> + Clone + Send + Sync + 'static,
    I: Idempotency<R> + Clone + Send + Sync + 'static,
    P: Prepare<R> + Clone + Send + Sync + 'static,
{
    type Response = S::Response;
    type Error = Error<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(ready!(self.inner.poll_ready(cx)).map_err(never_ready))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let services = AttemptServices::take(&mut self.inner);
        Box::pin(send(services, self.layer.clone(), request))
    }
}

async fn send<S, R, C, I, P>(
    mut services: AttemptServices<S>,
    layer: RetryLayer<C, I, P>,
    mut request: R,
) -> Result<S::Response, Error<S::Error>>
where
    S: Service<R> + Clone,
    R: Clone,
    C: Classifier<S::Error>,
    I: Idempotency<R>,
    P: Prepare<R>,
{
    let mut retry = retry(&*layer.settings.strategy)
        .operation(layer.settings.operation)
        .idempotent(layer.idempotent.is_idempotent(&request));
    if let Some(timeout) = layer.settings.timeout {
        retry = retry.timeout(timeout);
    }
    if let Some(timeout) = layer.settings.attempt_timeout {
        retry = retry.attempt_timeout(timeout);
    }
    let result = retry
        .classify(|error: &CallError<S::Error>| match error {
            CallError::NotReady(_) => not_ready(),
            CallError::Failed(error) => layer.classifier.classify(error),
        })
        .run(|attempt| {
            // A mutable borrow, so that the request need not be `Sync`.
            let request = &mut request;
            let mut request = request.clone();
            layer.prepare.prepare(&mut request, attempt.into());
            services.next().call(request)
        })
        .await;
    result.map_err(|error| {
        let (report, last) = error.into_parts();
        Error::from_parts(report, last.map(CallError::into_inner))
    })
}
