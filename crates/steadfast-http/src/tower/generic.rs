//! Retries for any service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use steadfast::classify::{ByInfo, Classifier, Unaccepted};
use steadfast::strategy::WhenTooLate;
#[cfg(feature = "tokio")]
use steadfast::world::SystemWorld;
use steadfast::world::{SharedWorld, Timer};
use steadfast::{Error, InvalidSetting, RetryStrategy, retry};
use tower_layer::Layer;
use tower_service::Service;

use super::ready::{CallError, call, never_ready, not_ready};
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
pub struct RetryLayer<R, C = ByInfo, A = AcceptAll> {
    settings: LayerSettings<R>,
    classifier: C,
    accept: A,
}

/// Decides which responses are accepted. Any `Fn(&Response) -> bool` can.
pub trait Accept<Response> {
    /// Returns whether the response is accepted. Any other is a failed attempt.
    fn accepts(&self, response: &Response) -> bool;
}

/// Accepts every response. This is the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl<Response> Accept<Response> for AcceptAll {
    fn accepts(&self, _: &Response) -> bool {
        true
    }
}

impl<Response, F: Fn(&Response) -> bool> Accept<Response> for F {
    fn accepts(&self, response: &Response) -> bool {
        self(response)
    }
}

#[derive(Clone)]
struct LayerSettings<R> {
    strategy: Arc<dyn RetryStrategy>,
    operation: &'static str,
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    when_too_late: WhenTooLate,
    idempotent: Arc<IdempotentRequest<R>>,
    prepare: Arc<Prepare<R>>,
    world: SharedWorld,
}

type IdempotentRequest<R> = dyn Fn(&R) -> bool + Send + Sync;
type Prepare<R> = dyn Fn(&mut R, AttemptMark) + Send + Sync;

/// Waits on tokio's timer.
#[cfg(feature = "tokio")]
impl<R> RetryLayer<R> {
    /// Retries by this strategy what the errors say is safe. No request is taken
    /// for idempotent; see [`idempotent`](Self::idempotent).
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself; see
    /// [`within`](Self::within).
    pub fn new(strategy: impl RetryStrategy + 'static) -> Result<Self, InvalidSetting> {
        Self::new_in(SystemWorld, strategy)
    }

    /// Retries by this strategy for this time at most.
    pub fn within(timeout: Duration, strategy: impl RetryStrategy + 'static) -> Self {
        Self::with(SharedWorld::new(SystemWorld), strategy).timeout(timeout)
    }
}

impl<R> RetryLayer<R> {
    /// Does the same as `new`, and waits in this world instead of on tokio. See
    /// [`HttpRetry::new_in`](crate::HttpRetry::new_in).
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself.
    pub fn new_in<W>(
        world: W,
        strategy: impl RetryStrategy + 'static,
    ) -> Result<Self, InvalidSetting>
    where
        W: Timer<Sleep: Send + 'static> + Send + Sync + 'static,
    {
        require_bound(&strategy)?;
        Ok(Self::with(SharedWorld::new(world), strategy))
    }

    fn with(world: SharedWorld, strategy: impl RetryStrategy + 'static) -> Self {
        let settings = LayerSettings {
            strategy: Arc::new(strategy),
            operation: "call",
            timeout: None,
            attempt_timeout: None,
            when_too_late: WhenTooLate::FailFast,
            idempotent: Arc::new(|_: &R| false),
            prepare: Arc::new(|_: &mut R, _| ()),
            world,
        };
        Self {
            settings,
            classifier: ByInfo,
            accept: AcceptAll,
        }
    }
}

impl<R, C, A> RetryLayer<R, C, A> {
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

    /// Sets what happens if a retry's delay reaches the deadline. By default the request
    /// fails at once, whatever the strategy.
    #[must_use]
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.settings.when_too_late = rule;
        self
    }

    /// Classifies errors with this instead of with their own
    /// [`RetryInfo`](steadfast::classify::RetryInfo).
    pub fn classify<D>(self, classifier: D) -> RetryLayer<R, D, A> {
        RetryLayer {
            settings: self.settings,
            classifier,
            accept: self.accept,
        }
    }

    /// Accepts only these responses. Another one is a failed attempt: the request was
    /// carried out, so it is sent again only if it is idempotent. If none is accepted in
    /// the end, the last response is the result.
    ///
    /// ```
    /// # use steadfast::Standard;
    /// # use steadfast_http::tower::RetryLayer;
    /// let layer = RetryLayer::new(Standard::guidance())?
    ///     .idempotent(|_job: &u32| true)
    ///     .accept(|state: &String| state == "done");
    /// # let _ = layer;
    /// # Ok::<(), steadfast::InvalidSetting>(())
    /// ```
    pub fn accept<Response, P>(self, accept: P) -> RetryLayer<R, C, P>
    where
        P: Fn(&Response) -> bool,
    {
        RetryLayer {
            settings: self.settings,
            classifier: self.classifier,
            accept,
        }
    }

    /// Takes time and randomness from this world, and waits in it: the timer of another
    /// executor, or a [`VirtualWorld`](steadfast::VirtualWorld) in a test.
    #[must_use]
    pub fn world<W>(mut self, world: W) -> Self
    where
        W: Timer<Sleep: Send + 'static> + Send + Sync + 'static,
    {
        self.settings.world = SharedWorld::new(world);
        self
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

impl<S, R: Clone, C: Clone, A: Clone> Layer<S> for RetryLayer<R, C, A> {
    type Service = RetryService<S, R, C, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let layer = self.clone();
        RetryService { inner, layer }
    }
}

impl<R, C, A> fmt::Debug for RetryLayer<R, C, A> {
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
pub struct RetryService<S, R, C = ByInfo, A = AcceptAll> {
    inner: S,
    layer: RetryLayer<R, C, A>,
}

impl<S, R, C, A> Service<R> for RetryService<S, R, C, A>
where
    S: Service<R> + Clone + Send + 'static,
    S::Response: Send,
    S::Error: Send,
    S::Future: Send,
    R: Clone + Send + 'static,
    C: Classifier<S::Error> + Clone + Send + Sync + 'static,
    A: Accept<S::Response> + Clone + Send + Sync + 'static,
{
    type Response = S::Response;
    type Error = Error<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(ready!(self.inner.poll_ready(cx)).map_err(never_ready))
    }

    fn call(&mut self, request: R) -> Self::Future {
        // A permit that readiness acquired is used by this request.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        Box::pin(send(ready, self.layer.clone(), request))
    }
}

async fn send<S, R, C, A>(
    service: S,
    layer: RetryLayer<R, C, A>,
    mut request: R,
) -> Result<S::Response, Error<S::Error>>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    R: Clone + Send + 'static,
    C: Classifier<S::Error>,
    A: Accept<S::Response>,
{
    let RetryLayer {
        settings,
        classifier,
        accept,
    } = layer;
    let mut retry = retry(&*settings.strategy)
        .world(&settings.world)
        .operation(settings.operation)
        .when_too_late(settings.when_too_late)
        .idempotent((settings.idempotent)(&request));
    if let Some(timeout) = settings.timeout {
        retry = retry.timeout(timeout);
    }
    if let Some(timeout) = settings.attempt_timeout {
        retry = retry.attempt_timeout(timeout);
    }
    let mut clone = service.clone();
    let mut ready = Some(service);
    let result = retry
        .classify(|error: &CallError<S::Error>| match error {
            CallError::NotReady(_) => not_ready(),
            CallError::Failed(error) => classifier.classify(error),
        })
        .run_until(
            |response| accept.accepts(response),
            |attempt| {
                // Mutable borrows, so that neither need be `Sync`.
                let (clone, request) = (&mut clone, &mut request);
                let mut request = request.clone();
                (settings.prepare)(&mut request, attempt.into());
                let is_ready = ready.is_some();
                let mut service = ready.take().unwrap_or_else(|| clone.clone());
                async move { call(&mut service, is_ready, request).await }
            },
        )
        .await;
    result.or_else(|error| {
        let (report, last) = error.into_parts();
        match last {
            Some(Unaccepted::Value(response)) => Ok(response),
            Some(Unaccepted::Error(error)) => {
                Err(Error::from_parts(report, Some(error.into_inner())))
            }
            None => Err(Error::from_parts(report, None)),
        }
    })
}
