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
pub struct RetryLayer<R, C = ByInfo> {
    settings: LayerSettings<R>,
    classifier: C,
}

#[derive(Clone)]
struct LayerSettings<R> {
    strategy: Arc<dyn RetryStrategy>,
    operation: &'static str,
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    idempotent: Arc<Idempotent<R>>,
    prepare: Arc<Prepare<R>>,
}

type Idempotent<R> = dyn Fn(&R) -> bool + Send + Sync;
type Prepare<R> = dyn Fn(&mut R, AttemptMark) + Send + Sync;

impl<R> RetryLayer<R> {
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
        let settings = LayerSettings {
            strategy: Arc::new(strategy),
            operation: "call",
            timeout,
            attempt_timeout: None,
            idempotent: Arc::new(|_: &R| false),
            prepare: Arc::new(|_: &mut R, _| ()),
        };
        let classifier = ByInfo;
        Self {
            settings,
            classifier,
        }
    }
}

impl<R, C> RetryLayer<R, C> {
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
    /// [`RetryInfo`](steadfast::classify::RetryInfo).
    pub fn classify<D>(self, classifier: D) -> RetryLayer<R, D> {
        let settings = self.settings;
        RetryLayer {
            settings,
            classifier,
        }
    }

    /// States which requests may be sent twice. By default none may.
    #[must_use]
    pub fn idempotent(mut self, idempotent: impl Fn(&R) -> bool + Send + Sync + 'static) -> Self {
        self.settings.idempotent = Arc::new(idempotent);
        self
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
    #[must_use]
    pub fn prepare(
        mut self,
        prepare: impl Fn(&mut R, AttemptMark) + Send + Sync + 'static,
    ) -> Self {
        self.settings.prepare = Arc::new(prepare);
        self
    }
}

impl<S, R: Clone, C: Clone> Layer<S> for RetryLayer<R, C> {
    type Service = RetryService<S, R, C>;

    fn layer(&self, inner: S) -> Self::Service {
        let layer = self.clone();
        RetryService { inner, layer }
    }
}

impl<R, C> fmt::Debug for RetryLayer<R, C> {
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
pub struct RetryService<S, R, C = ByInfo> {
    inner: S,
    layer: RetryLayer<R, C>,
}

impl<S, R, C> Service<R> for RetryService<S, R, C>
where
    S: Service<R> + Clone + Send + 'static,
    S::Response: Send,
    S::Error: Send,
    S::Future: Send,
    R: Clone + Send + 'static,
    C: Classifier<S::Error> + Clone + Send + Sync + 'static,
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

async fn send<S, R, C>(
    mut services: AttemptServices<S>,
    layer: RetryLayer<R, C>,
    mut request: R,
) -> Result<S::Response, Error<S::Error>>
where
    S: Service<R> + Clone,
    R: Clone,
    C: Classifier<S::Error>,
{
    let RetryLayer {
        settings,
        classifier,
    } = layer;
    let mut retry = retry(&*settings.strategy)
        .operation(settings.operation)
        .idempotent((settings.idempotent)(&request));
    if let Some(timeout) = settings.timeout {
        retry = retry.timeout(timeout);
    }
    if let Some(timeout) = settings.attempt_timeout {
        retry = retry.attempt_timeout(timeout);
    }
    let result = retry
        .classify(|error: &CallError<S::Error>| match error {
            CallError::NotReady(_) => not_ready(),
            CallError::Failed(error) => classifier.classify(error),
        })
        .run(|attempt| {
            // A mutable borrow, so that the request need not be `Sync`.
            let request = &mut request;
            let mut request = request.clone();
            (settings.prepare)(&mut request, attempt.into());
            services.next().call(request)
        })
        .await;
    result.map_err(|error| {
        let (report, last) = error.into_parts();
        Error::from_parts(report, last.map(CallError::into_inner))
    })
}
