//! One HTTP operation, attempt by attempt: picks a node, sends the request and
//! says how far it came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::header::{AUTHORIZATION, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Uri};
use steadfast::breaker::{BreakerPermit, CircuitBreaker, Signal};
use steadfast::report::Report;
use steadfast::strategy::AnyStrategy;
use steadfast::{Call, Failure, LoadAware, Stage};
use steadfast_wire::config::Service;
use tokio::sync::watch;

use super::client::{HttpRequest, RequestBody, SentMark};
use super::endpoint::{Destinations, Endpoint};
use super::pool::KnownEndpoint;
use super::response::{HttpResponse, ReadError, ResponseBody, WaitLimit, chain};
use crate::client::Core;
use crate::cluster::Handle;
use crate::drive::{AttemptError, Attempts, Driven, drive};
use crate::error::{Error, ErrorKind, HttpContext, OperationTarget};
use crate::observe::{Dispatch, Finished, SlowRequest, record_request};
use crate::options::RetryIf;
use crate::reason::{CIRCUIT_BREAKER_OPEN, SERVICE_NOT_AVAILABLE, SOCKET_NOT_AVAILABLE, UNKNOWN};
use crate::request_options::RequestOptions;
use crate::services::name;
use crate::world::now;

/// The part of an operation that differs between services.
pub(crate) trait HttpOperation: Send + Sync {
    /// The result of the operation.
    type Output: Send;

    /// Returns the request of the next attempt. `remaining` is the time that it has.
    fn request(&mut self, remaining: Option<Duration>) -> HttpRequest;

    /// Reads a response as far as the result needs it.
    ///
    /// Cancel-safe: dropping the future closes the connection.
    fn read(
        &mut self,
        response: HttpResponse,
        sender: &HttpSender,
    ) -> impl Future<Output = Result<Self::Output, ReadError>> + Send;

    /// Keeps the report of retries, for an error that the result may still have.
    fn keep_report(_output: &mut Self::Output, _report: Report) {}
}

/// Sends the attempts of one operation, and keeps what the next one needs.
#[derive(Clone)]
pub(crate) struct HttpSender {
    pub(crate) client: Arc<Handle>,
    service: Service,
    /// The name of the operation.
    pub(crate) name: &'static str,
    /// Whether the operation may be executed twice without harm.
    pub(crate) idempotent: bool,
    /// Whether the request may have several statements, executed one by one.
    pub(crate) batch: bool,
    /// What the operation is about.
    pub(crate) target: OperationTarget,
    /// What the error will say of the request and its last response.
    pub(crate) context: HttpContext,
    pub(crate) options: RequestOptions,
    /// The only node that may be asked, if the operation is about that node.
    pub(crate) only: Option<Endpoint>,
    /// The node of the first attempt, if it was chosen before.
    first: Option<Endpoint>,
    /// The node of the last attempt: if there is a next one, that node failed.
    last: Option<Endpoint>,
    /// The nodes that were known when the last attempt was made.
    destinations: Option<Destinations>,
    changes: watch::Receiver<u64>,
    /// The time in which the last response asks not to be called again.
    pub(super) retry_after: Option<Duration>,
    timeout: Option<Duration>,
}

/// An operation and its sender, as [`drive`] runs them.
struct Running<'a, O> {
    operation: O,
    sender: &'a mut HttpSender,
}

/// Runs an operation to its result.
///
/// Cancel-safe: dropping the future abandons the attempt in progress.
pub(crate) async fn run<O: HttpOperation>(
    operation: O,
    sender: &mut HttpSender,
) -> Result<O::Output, Error> {
    let (client, options) = (sender.client.clone(), &sender.options);
    let default = client.timeout(sender.service);
    let timeout = options.timeout(default, Duration::ZERO);
    let service = name(sender.service);
    let call = Call::new(sender.name)
        .service(service)
        .idempotent(sender.idempotent)
        .timeout(timeout);
    let call = options.describe(call);
    let own = options.strategy(&client.core.strategy);
    sender.timeout = Some(timeout);
    let strategy = match (own, sender.load_aware()) {
        (None, None) => AnyStrategy::Borrowed(&*client.core.strategy),
        (Some(own), None) => AnyStrategy::Shared(own),
        (None, Some(load_aware)) => AnyStrategy::Shared(Arc::new(load_aware)),
        (Some(own), Some(load_aware)) => AnyStrategy::Shared(Arc::new(load_aware.around(own))),
    };
    let mut running = Running { operation, sender };
    drive(call, strategy, &client.core, &mut running).await
}

impl<O: HttpOperation> Attempts for Running<'_, O> {
    /// Cancel-safe: dropping the future closes the connection.
    async fn attempt(&mut self, deadline: Option<Instant>) -> Result<O::Output, AttemptError> {
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(now()));
        let request = self.operation.request(remaining);
        let response = self.sender.send(request, deadline).await?;
        let read = self.operation.read(response, self.sender).await;
        read.map_err(|error| self.sender.failed(error, true))
    }

    /// Completes when a wait after a failure at this stage is pointless. A request that was not
    /// sent waits until it could go elsewhere, or would fail for another reason (D24);
    /// after a response the full delay is kept. Closing the client ends both. Cancel-safe.
    async fn woken(&mut self, stage: Stage) {
        let sender = &mut *self.sender;
        loop {
            if sender.changes.changed().await.is_err() {
                std::future::pending().await
            }
            if sender.client.core.is_closed() {
                return;
            }
            match stage {
                Stage::NotSent if sender.only.is_none() => {
                    let current = Destinations::current(&sender.client.core, sender.service);
                    if sender.destinations.as_ref() != Some(&current) {
                        return;
                    }
                }
                Stage::NotSent | Stage::InFlight | Stage::Inconclusive | Stage::Responded => {}
            }
        }
    }

    fn keep_report(&mut self, output: &mut O::Output, report: Report) {
        O::keep_report(output, report);
    }
}

impl<O: HttpOperation> Driven for Running<'_, O> {
    type Output = O::Output;

    fn add_context(&mut self, error: Error) -> Error {
        error
            .with_target(self.sender.target.clone())
            .with_http(self.sender.context.clone())
    }

    fn retry_if(&self) -> Option<&RetryIf> {
        let sender = &*self.sender;
        let of_client = &sender.client.core.options.retry_if;
        sender.options.retry_if.as_ref().or(of_client.as_ref())
    }

    fn finished(&mut self, finished: &Finished, _: Option<&O::Output>) {
        let sender = &*self.sender;
        let (service, operation) = (name(sender.service), sender.name);
        let core = &sender.client.core;
        record_request(service, operation, sender.target.names(), finished, core);
        if core.reports.is_slow_http(finished) {
            let slow = SlowRequest {
                operation,
                service,
                retries: finished.retries,
                timeout: sender.timeout,
                last_opaque: None,
                last_local: None,
                last_remote: sender.context.dispatched_to.clone(),
                last_server_duration: None,
            };
            core.reports.slow(finished.elapsed(), slow);
        }
    }

    fn core(&self) -> &Core {
        &self.sender.client.core
    }

    fn place(&self) -> [&str; 3] {
        self.sender.target.names()
    }

    fn dispatch(&self, _: Option<&O::Output>) -> Dispatch {
        let context = &self.sender.context;
        Dispatch {
            node: context.dispatched_to.clone(),
            id: context.client_context_id.clone(),
            status: context.status.map(|status| status.to_string()),
            ..Dispatch::default()
        }
    }
}

impl HttpSender {
    pub(crate) fn new(client: Arc<Handle>, service: Service, name: &'static str) -> Self {
        let changes = client.core.changes();
        Self {
            client,
            service,
            name,
            idempotent: false,
            batch: false,
            target: OperationTarget::default(),
            context: HttpContext::default(),
            options: RequestOptions::default(),
            only: None,
            first: None,
            last: None,
            destinations: None,
            changes,
            retry_after: None,
            timeout: None,
        }
    }

    /// Makes an error of this operation that no attempt led to.
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.name)
            .with_target(self.target.clone())
            .with_http(self.context.clone())
    }

    /// Sends a request to a node, and waits for the head of the response.
    ///
    /// Cancel-safe: dropping the future closes the connection if it took up the
    /// request.
    async fn send(
        &mut self,
        request: HttpRequest,
        deadline: Option<Instant>,
    ) -> Result<HttpResponse, AttemptError> {
        // Changes from here on are unknown to this attempt.
        self.changes.borrow_and_update();
        if self.client.core.is_closed() {
            return Err(AttemptError::Closed(Failure::not_sent(
                &SOCKET_NOT_AVAILABLE,
            )));
        }
        let endpoint = match self.first.take() {
            Some(first) => first,
            None => self.pick()?,
        };
        self.context.dispatched_to = Some(endpoint.authority.clone());
        self.last = Some(endpoint.clone());
        let (request, mark) = self.encode(&endpoint, request).map_err(|error| {
            // The user's path, or a node's name, is invalid in an address.
            let failure = Failure::not_sent(&UNKNOWN).with_note(error.to_string());
            AttemptError::Failed(failure, ErrorKind::InvalidArgument)
        })?;
        let permit = self.permit(&endpoint)?;
        let mut limit = WaitLimit::new(&self.client, deadline, endpoint.authority.clone());
        let pool = self.known(&endpoint).pool;
        let response = pool.request(request);
        let response = match limit.apply_to(response).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(ReadError::ConnectionLost(chain(&error))),
            Err(error) => Err(error),
        };
        if let Some((breaker, permit)) = permit {
            match &response {
                Ok(_) => breaker.record(permit, Signal::Alive, now()),
                // The client itself ended the attempt: no evidence about the node.
                Err(ReadError::ClientClosed) => {}
                Err(_) => breaker.record(permit, Signal::Failed, now()),
            }
        }
        let (head, body) = match response {
            Ok(response) => response.into_parts(),
            Err(error) => return Err(self.failed(error, mark.is_set())),
        };
        self.retry_after = head
            .headers
            .get(RETRY_AFTER)
            .and_then(|value| steadfast_http::hint::seconds(value.as_bytes()));
        let status = head.status.as_u16();
        self.context.status = Some(status);
        // Those were of the response before.
        (self.context.code, self.context.message) = (None, None);
        let body = ResponseBody::new(body, limit);
        Ok(HttpResponse { status, body })
    }

    /// Chooses the node of the first attempt and returns its strategy, if the client is of a
    /// fleet.
    fn load_aware(&mut self) -> Option<LoadAware> {
        self.client.core.load_aware.as_ref()?;
        let first = self.pick().ok()?;
        let of_endpoint = self.known(&first).load_aware;
        self.first = Some(first);
        of_endpoint
    }

    fn known(&self, endpoint: &Endpoint) -> KnownEndpoint {
        let core = &self.client.core;
        let of_client = core.load_aware.as_ref();
        core.services.endpoints.get(&endpoint.authority, of_client)
    }

    fn pick(&mut self) -> Result<Endpoint, AttemptError> {
        if let Some(only) = &self.only {
            return Ok(only.clone());
        }
        let core = &self.client.core;
        let destinations = Destinations::current(core, self.service);
        let endpoints = self.destinations.insert(destinations).endpoints.clone();
        let (note, kind) = match endpoints {
            Some(endpoints) => {
                let turns = &core.services.round_robin;
                match turns.pick(self.service, endpoints, self.last.as_ref()) {
                    Some(endpoint) => return Ok(endpoint),
                    None => (
                        format!("no node has the service {}", name(self.service)),
                        ErrorKind::ServiceNotAvailable,
                    ),
                }
            }
            None => (
                "there is no cluster config yet".to_owned(),
                ErrorKind::RequestCanceled,
            ),
        };
        let failure = Failure::not_sent(&SERVICE_NOT_AVAILABLE).with_note(note);
        Err(self.undispatched(failure, kind))
    }

    /// Asks the circuit breaker of a node, if there is one. That it is open is a
    /// reason like any other.
    fn permit(
        &self,
        endpoint: &Endpoint,
    ) -> Result<Option<(Arc<CircuitBreaker>, BreakerPermit)>, AttemptError> {
        let Some(breaker) = self.known(endpoint).breaker else {
            return Ok(None);
        };
        match breaker.allow(now()) {
            Ok(permit) => Ok(Some((breaker, permit))),
            Err(_) => {
                let failure = self.at_peer(Failure::not_sent(&CIRCUIT_BREAKER_OPEN));
                Err(AttemptError::Failed(
                    failure,
                    ErrorKind::ServiceNotAvailable,
                ))
            }
        }
    }

    fn encode(
        &self,
        endpoint: &Endpoint,
        request: HttpRequest,
    ) -> Result<(Request<RequestBody>, SentMark), hyper::http::Error> {
        let uri = Uri::builder()
            .scheme(if endpoint.tls { "https" } else { "http" })
            .authority(&*endpoint.authority)
            .path_and_query(request.path)
            .build()?;
        let mut encoded = Request::builder().method(request.method).uri(uri);
        for (name, value) in &request.headers {
            encoded = encoded.header(*name, value);
        }
        encoded = encoded.header(USER_AGENT, &self.client.core.agent);
        if let Some(authorization) = self.client.authorization() {
            encoded = encoded.header(AUTHORIZATION, authorization);
        }
        let (body, mark) = RequestBody::new(request.body);
        Ok((encoded.body(body)?, mark))
    }
}
