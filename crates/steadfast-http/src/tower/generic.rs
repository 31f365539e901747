//! Retries for any service.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use steadfast::FailFast;
use steadfast::classify::{ByInfo, Classifier};
use steadfast::failure::Safety;
use steadfast::{
    Call, Error, Failure, InvalidSetting, Orchestrator, RetryStrategy, Step, VirtualWorld, reason,
    retry,
};
use tower_layer::Layer;
use tower_service::Service;

use crate::attempt::AttemptMark;
use crate::http_retry::bounded;

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
pub struct RetryLayer<C = ByInfo, I = NotIdempotent, P = AsItIs> {
    strategy: Arc<dyn RetryStrategy>,
    operation: &'static str,
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    classifier: C,
    idempotent: I,
    prepare: P,
}

/// Says whether sending a request twice does no more than sending it once. Any
/// `Fn(&R) -> bool` does.
pub trait Idempotency<R> {
    /// Whether this one may be sent twice.
    fn is_idempotent(&self, request: &R) -> bool;
}

impl<R, F: Fn(&R) -> bool> Idempotency<R> for F {
    fn is_idempotent(&self, request: &R) -> bool {
        self(request)
    }
}

/// No request may. This is what is used if nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotIdempotent;

impl<R> Idempotency<R> for NotIdempotent {
    fn is_idempotent(&self, _: &R) -> bool {
        false
    }
}

/// Gets a request ready for an attempt. Any `Fn(&mut R, AttemptMark)` does.
pub trait Prepare<R> {
    /// Gets the copy of the request that this attempt sends ready for it.
    fn prepare(&self, request: &mut R, attempt: AttemptMark);
}

impl<R, F: Fn(&mut R, AttemptMark)> Prepare<R> for F {
    fn prepare(&self, request: &mut R, attempt: AttemptMark) {
        self(request, attempt);
    }
}

/// Every attempt sends the request as it is. This is what is used if nothing is
/// said.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsItIs;

impl<R> Prepare<R> for AsItIs {
    fn prepare(&self, _: &mut R, _: AttemptMark) {}
}

impl RetryLayer {
    /// Retries by this strategy what its errors say is safe, as if no request
    /// were idempotent.
    ///
    /// # Errors
    /// If the strategy does not bound the attempts by itself; see
    /// [`within`](Self::within).
    pub fn new(strategy: impl RetryStrategy + 'static) -> Result<Self, InvalidSetting> {
        bounded(&strategy)?;
        Ok(Self::of(strategy, None))
    }

    /// The same, bounded by time.
    pub fn within(timeout: Duration, strategy: impl RetryStrategy + 'static) -> Self {
        Self::of(strategy, Some(timeout))
    }

    fn of(strategy: impl RetryStrategy + 'static, timeout: Option<Duration>) -> Self {
        Self {
            strategy: Arc::new(strategy),
            operation: "call",
            timeout,
            attempt_timeout: None,
            classifier: ByInfo,
            idempotent: NotIdempotent,
            prepare: AsItIs,
        }
    }
}

impl<C, I, P> RetryLayer<C, I, P> {
    /// Names the operation, for errors and events.
    #[must_use]
    pub fn operation(mut self, operation: &'static str) -> Self {
        self.operation = operation;
        self
    }

    /// Gives each request so much time, attempts and waits together.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives each attempt so much time, or what is left of the whole.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Reads errors with this classifier instead of their own
    /// [`RetryInfo`](steadfast::classify::RetryInfo).
    pub fn classify<D>(self, classifier: D) -> RetryLayer<D, I, P> {
        RetryLayer {
            strategy: self.strategy,
            operation: self.operation,
            timeout: self.timeout,
            attempt_timeout: self.attempt_timeout,
            classifier,
            idempotent: self.idempotent,
            prepare: self.prepare,
        }
    }

    /// States which requests may be sent twice.
    pub fn idempotent<R, F: Fn(&R) -> bool>(self, idempotent: F) -> RetryLayer<C, F, P> {
        RetryLayer {
            strategy: self.strategy,
            operation: self.operation,
            timeout: self.timeout,
            attempt_timeout: self.attempt_timeout,
            classifier: self.classifier,
            idempotent,
            prepare: self.prepare,
        }
    }

    /// Gets the copy of the request that an attempt sends ready for it: hands on
    /// the time that it has, or marks it, so that a retrying layer further in
    /// leaves the retries to this one.
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
        RetryLayer {
            strategy: self.strategy,
            operation: self.operation,
            timeout: self.timeout,
            attempt_timeout: self.attempt_timeout,
            classifier: self.classifier,
            idempotent: self.idempotent,
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
            .field("operation", &self.operation)
            .field("timeout", &self.timeout)
            .field("attempt_timeout", &self.attempt_timeout)
            .finish_non_exhaustive()
    }
}

/// A service that makes a call again where its errors say that this is safe and
/// of use.
///
/// The inner service is asked for readiness before every attempt. Dropping a
/// call's future drops the attempt that is under way; what was paid for it
/// stays paid.
#[derive(Clone, Debug)]
pub struct RetryService<S, C = ByInfo, I = NotIdempotent, P = AsItIs> {
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
        // What was asked for readiness is used, and its clone is asked next
        // time: a permit that readiness took is not left behind.
        let later = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, later);
        Box::pin(run(service, self.layer.clone(), request))
    }
}

async fn run<S, R, C, I, P>(
    service: S,
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
    let RetryLayer {
        strategy,
        operation,
        timeout,
        attempt_timeout,
        classifier,
        idempotent,
        prepare,
    } = layer;
    let mut retry = retry(&*strategy)
        .operation(operation)
        .idempotent(idempotent.is_idempotent(&request));
    if let Some(timeout) = timeout {
        retry = retry.timeout(timeout);
    }
    if let Some(timeout) = attempt_timeout {
        retry = retry.attempt_timeout(timeout);
    }
    // The service that is ready makes the first attempt, not a clone, which is
    // not.
    let mut later = service.clone();
    let mut ready = Some(service);
    let result = retry
        .classify(|end: &End<S::Error>| match end {
            End::NotReady(_) => not_ready(),
            End::Failed(error) => classifier.classify(error),
        })
        .run(|attempt| {
            // Borrowed to be changed, so that neither needs to be `Sync`.
            let (later, request) = (&mut later, &mut request);
            let (is_ready, mut service) = match ready.take() {
                Some(service) => (true, service),
                None => (false, later.clone()),
            };
            let mut request = request.clone();
            prepare.prepare(&mut request, attempt.into());
            async move {
                if !is_ready {
                    let readiness = poll_fn(|cx| service.poll_ready(cx)).await;
                    readiness.map_err(End::NotReady)?;
                }
                service.call(request).await.map_err(End::Failed)
            }
        })
        .await;
    result.map_err(|error| {
        let (report, last) = error.into_parts();
        let last = last.map(|(End::NotReady(error) | End::Failed(error))| error);
        Error::from_parts(report, last)
    })
}

/// An attempt that was not made, and one that was.
enum End<E> {
    NotReady(E),
    Failed(E),
}

/// Of a service that is not ready, nothing was asked.
pub(super) fn not_ready() -> Failure {
    Failure::not_sent(&reason::NOT_AVAILABLE).with_note("the service is not ready")
}

/// The error of a service that will not be ready any more, before there is a
/// request to retry.
#[cold]
pub(super) fn never_ready<E>(error: E) -> Error<E> {
    let world = VirtualWorld::new();
    let mut request = Orchestrator::new(FailFast::new(), Call::new("poll_ready"));
    let step = request.begin(&world);
    debug_assert!(
        matches!(step, Step::Attempt),
        "it has no delay and no deadline"
    );
    let step = request.handle_failure(not_ready().with_safety(Safety::No), &world);
    debug_assert!(
        matches!(step, Step::GiveUp(_)),
        "what is not safe is given up"
    );
    Error::from_parts(request.take_report(), Some(error))
}
