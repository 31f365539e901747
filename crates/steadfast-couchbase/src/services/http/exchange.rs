//! One request to one node, and what became of it.

use std::sync::Arc;
use std::time::Instant;

use hyper::header::{AUTHORIZATION, HeaderMap, USER_AGENT};
use hyper::{Request, Uri};
use steadfast::reason::TIMEOUT;
use steadfast::{Failure, Stage};
use steadfast_wire::config::Service;
use tokio::sync::watch;

use super::endpoint::Outlook;
use super::outgoing::{Mark, Marked};
use super::reader::{Unread, chain};
use super::watch::{Interrupted, Watch};
use super::{Endpoint, Outgoing, Reader};
use crate::breaker::{Breaker, Outcome, Permit};
use crate::drive::Tried;
use crate::error::{ErrorKind, HttpContext, Place};
use crate::observe::{Finished, SlowRequest, record_request};
use crate::reason::{
    CIRCUIT_BREAKER_OPEN, SERVICE_NOT_AVAILABLE, SOCKET_CLOSED_WHILE_IN_FLIGHT,
    SOCKET_NOT_AVAILABLE, UNKNOWN,
};
use crate::services::host::Host;
use crate::services::name;
use crate::world::now;

/// Sends the attempts of one operation, and remembers what the next should know.
pub(crate) struct Exchange {
    host: Arc<dyn Host>,
    service: Service,
    changes: watch::Receiver<u64>,
    /// What was known when the last attempt was made.
    outlook: Option<Outlook>,
    /// The only node that may be asked, if the operation is about it.
    only: Option<Endpoint>,
    /// The node that was asked last: if there is a next attempt, that one failed.
    last: Option<Endpoint>,
    /// What the error is to say.
    pub(crate) context: HttpContext,
}

/// An answer whose body is still to be read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Reader,
}

/// An attempt that came to nothing.
pub(crate) enum Setback {
    /// It failed; if it is not retried, with an error of this kind.
    Failed(Failure, ErrorKind),
    /// The client was closed.
    Closed(Failure),
}

impl Exchange {
    pub(crate) fn new(host: Arc<dyn Host>, service: Service) -> Self {
        let changes = host.changes();
        Self {
            host,
            service,
            changes,
            outlook: None,
            only: None,
            last: None,
            context: HttpContext::default(),
        }
    }

    /// Asks this node and no other.
    pub(crate) fn only(mut self, endpoint: Endpoint) -> Self {
        self.only = Some(endpoint);
        self
    }

    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// Sends a request to a node, and waits for the head of its answer. Dropping
    /// the future closes the connection if the request was under way.
    pub(crate) async fn send(
        &mut self,
        outgoing: Outgoing,
        deadline: Option<Instant>,
    ) -> Result<Answer, Setback> {
        // From here on a change is one that this attempt did not know of.
        self.changes.borrow_and_update();
        if self.host.is_closed() {
            return Err(Setback::Closed(Failure::not_sent(&SOCKET_NOT_AVAILABLE)));
        }
        let endpoint = self.pick()?;
        self.context.dispatched_to = Some(endpoint.authority.clone());
        self.last = Some(endpoint.clone());
        let (request, mark) = match self.request(&endpoint, outgoing) {
            Ok(request) => request,
            Err(error) => {
                // A path of the user's that is none, or a node's name.
                let failure = Failure::not_sent(&UNKNOWN).with_note(error.to_string());
                return Err(Setback::Failed(failure, ErrorKind::InvalidArgument));
            }
        };
        let permit = self.permit(&endpoint)?;
        let mut watch = Watch::new(&self.host, deadline);
        let response = self.host.services().client().request(request);
        let response = watch.over(response).await;
        let outcome = match &response {
            Ok(Ok(_)) => Some(Outcome::Alive),
            Ok(Err(_)) | Err(Interrupted::Deadline) => Some(Outcome::Failed),
            // The client itself ended it, which says nothing of the node.
            Err(Interrupted::Closed) => None,
        };
        if let (Some((breaker, permit)), Some(outcome)) = (permit, outcome) {
            breaker.record(permit, outcome, now());
        }
        match response {
            Ok(Ok(response)) => {
                let (head, body) = response.into_parts();
                self.context.status = Some(head.status.as_u16());
                Ok(Answer {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body: Reader::new(body, watch),
                })
            }
            Ok(Err(error)) => Err(self.unanswered(&error, &mark)),
            Err(interrupted) => Err(self.interrupted(interrupted, mark.is_set())),
        }
    }

    /// The body of an answer was not read to its end.
    pub(crate) fn unread(&mut self, unread: &Unread) -> Setback {
        match unread {
            Unread::Interrupted(interrupted) => self.interrupted(*interrupted, true),
            Unread::Cut(_) => self.in_flight(unread.to_string()),
        }
    }

    /// The node answered something that nobody can make sense of. It may have
    /// done what it was asked, and asking again would not make it clearer.
    pub(crate) fn senseless(&self, what: impl std::fmt::Display) -> Setback {
        let failure = Failure::inconclusive(&UNKNOWN).with_note(what.to_string());
        Setback::Failed(self.at_peer(failure), ErrorKind::DecodingFailure)
    }

    /// Told how the request ended, for metrics and reports.
    pub(crate) fn finished(&self, operation: &'static str, place: &Place, finished: &Finished) {
        let service = name(self.service);
        let names = [&place.bucket, &place.scope, &place.collection];
        let names = names.map(|name| name.as_deref().unwrap_or_default());
        record_request(service, operation, names, finished);
        let reports = self.host.reports();
        if reports.is_slow_http(finished.elapsed) {
            let slow = SlowRequest {
                operation,
                service,
                retries: finished.retries,
                timeout: None,
                last_opaque: None,
                last_local: None,
                last_remote: self.context.dispatched_to.clone(),
                last_server_duration: None,
            };
            reports.slow(finished.elapsed, slow);
        }
    }

    /// Names the peer on a failure.
    pub(crate) fn at_peer(&self, failure: Failure) -> Failure {
        match &self.context.dispatched_to {
            Some(peer) => failure.with_peer(peer.clone()),
            None => failure,
        }
    }

    /// Completes when the client is closed.
    pub(crate) async fn closed(&self) {
        let mut changes = self.host.changes();
        while !self.host.is_closed() {
            if changes.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Completes when waiting on after this failure has become pointless: an
    /// attempt that could not be sent waits until it could go elsewhere, or would
    /// fail for another reason (D24); one that was answered waits for its time.
    /// The end of the client ends either.
    pub(crate) async fn woken(&mut self, failure: &Failure) {
        loop {
            if self.changes.changed().await.is_err() {
                std::future::pending().await
            }
            if self.host.is_closed() {
                return;
            }
            match failure.stage {
                Stage::NotSent if self.only.is_none() => {
                    let outlook = Outlook::now(&*self.host, self.service);
                    if self.outlook.as_ref() != Some(&outlook) {
                        return;
                    }
                }
                Stage::NotSent | Stage::InFlight | Stage::Inconclusive | Stage::Responded => {}
            }
        }
    }

    fn pick(&mut self) -> Result<Endpoint, Setback> {
        if let Some(only) = &self.only {
            return Ok(only.clone());
        }
        let outlook = Outlook::now(&*self.host, self.service);
        let endpoints = self.outlook.insert(outlook).endpoints.clone();
        let Some(endpoints) = endpoints else {
            let note = "there is no cluster config yet";
            let failure = Failure::not_sent(&SERVICE_NOT_AVAILABLE).with_note(note);
            return Err(self.undispatched(failure, ErrorKind::RequestCanceled));
        };
        let turns = self.host.services().turns();
        turns
            .pick(self.service, endpoints, self.last.as_ref())
            .ok_or_else(|| {
                let note = format!("no node has the service {}", name(self.service));
                let failure = Failure::not_sent(&SERVICE_NOT_AVAILABLE).with_note(note);
                self.undispatched(failure, ErrorKind::ServiceNotAvailable)
            })
    }

    /// Leave to ask a node. A breaker that is open is a reason like any other.
    fn permit(&self, endpoint: &Endpoint) -> Result<Option<(Arc<Breaker>, Permit)>, Setback> {
        let Some(breaker) = self.host.services().breakers().of(endpoint) else {
            return Ok(None);
        };
        match breaker.allow(now()) {
            Ok(permit) => Ok(Some((breaker, permit))),
            Err(_) => {
                let failure = self.at_peer(Failure::not_sent(&CIRCUIT_BREAKER_OPEN));
                Err(Setback::Failed(failure, ErrorKind::ServiceNotAvailable))
            }
        }
    }

    /// An operation that cannot be dispatched. If the client knows why, and
    /// waiting will not mend it, that is the reason (D19).
    fn undispatched(&self, failure: Failure, kind: ErrorKind) -> Setback {
        let failure = match self.host.terminal() {
            Some((reason, note)) => Failure::not_sent(reason).with_note(note),
            None => failure,
        };
        Setback::Failed(self.at_peer(failure), kind)
    }

    fn request(
        &self,
        endpoint: &Endpoint,
        outgoing: Outgoing,
    ) -> Result<(Request<Marked>, Mark), hyper::http::Error> {
        let uri = Uri::builder()
            .scheme(if endpoint.tls { "https" } else { "http" })
            .authority(&*endpoint.authority)
            .path_and_query(outgoing.path)
            .build()?;
        let mut request = Request::builder().method(outgoing.method).uri(uri);
        for (name, value) in &outgoing.headers {
            request = request.header(*name, value);
        }
        request = request.header(USER_AGENT, self.host.agent());
        if let Some(authorization) = self.host.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        let (body, mark) = Marked::new(outgoing.body);
        Ok((request.body(body)?, mark))
    }

    /// No answer came, and it is not for want of time.
    fn unanswered(&self, error: &hyper_util::client::legacy::Error, mark: &Mark) -> Setback {
        let note = chain(error);
        if mark.is_set() {
            return self.in_flight(note);
        }
        let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).with_note(note);
        self.undispatched(failure, ErrorKind::RequestCanceled)
    }

    /// The connection ended after bytes may have left.
    fn in_flight(&self, note: String) -> Setback {
        let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT).with_note(note);
        Setback::Failed(self.at_peer(failure), ErrorKind::RequestCanceled)
    }

    fn interrupted(&self, interrupted: Interrupted, sent: bool) -> Setback {
        match (interrupted, sent) {
            (Interrupted::Closed, true) => {
                let failure = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
                Setback::Closed(self.at_peer(failure))
            }
            (Interrupted::Closed, false) => {
                Setback::Closed(self.at_peer(Failure::not_sent(&SOCKET_NOT_AVAILABLE)))
            }
            (Interrupted::Deadline, true) => {
                let failure = Failure::in_flight(&TIMEOUT).with_note("no answer in time");
                Setback::Failed(
                    self.at_peer(failure.timed_out()),
                    ErrorKind::AmbiguousTimeout,
                )
            }
            (Interrupted::Deadline, false) => {
                let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE).timed_out();
                let failure = failure.with_note("no connection in time");
                self.undispatched(failure, ErrorKind::RequestCanceled)
            }
        }
    }
}

impl From<Setback> for Tried {
    fn from(setback: Setback) -> Self {
        match setback {
            Setback::Failed(failure, kind) => Self::Failed(failure, kind),
            Setback::Closed(failure) => Self::Closed(failure),
        }
    }
}
