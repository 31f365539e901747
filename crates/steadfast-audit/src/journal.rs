//! The record of the attempts that reached the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// An attempt that reached the server.
#[derive(Clone, Debug, Serialize)]
pub struct HttpArrival {
    /// When its request arrived, since the start of the command.
    #[serde(rename = "at_seconds", serialize_with = "crate::report::seconds")]
    pub at: Duration,
    /// When the server had failed it or responded, or the client had gone.
    #[serde(
        rename = "over_seconds",
        serialize_with = "crate::report::maybe_seconds"
    )]
    pub over: Option<Duration>,
    /// The command that it came from, if several ran at once.
    pub command: usize,
    /// The method; unknown if the request was not read.
    pub method: Option<String>,
    /// Its `Idempotency-Key`.
    pub key: Option<String>,
    /// How many bytes of its body were read.
    pub body: u64,
    /// Whether the server failed it on purpose.
    pub failed: bool,
    /// Whether it was surely not applied: the client had not sent all of it, or was told to send
    /// it to another address.
    pub unapplied: bool,
}

impl HttpArrival {
    /// An attempt whose request was not read.
    pub(crate) fn unread() -> Self {
        Self {
            at: Duration::ZERO,
            over: None,
            command: 0,
            method: None,
            key: None,
            body: 0,
            failed: false,
            unapplied: false,
        }
    }
}

/// The attempts of a case, shared by its connections.
#[derive(Clone)]
pub(crate) struct ArrivalLog {
    origin: Instant,
    arrivals: Arc<Mutex<Vec<HttpArrival>>>,
    problem: Arc<Mutex<Option<String>>>,
}

/// An attempt that is being served. It is over when this is dropped.
pub(crate) struct LoggedAttempt {
    log: ArrivalLog,
    index: usize,
    /// Whether the server fails it.
    pub(crate) failed: bool,
}

impl ArrivalLog {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            arrivals: Arc::default(),
            problem: Arc::default(),
        }
    }

    /// Records an attempt. `fails` decides by its index.
    pub(crate) fn record(
        &self,
        arrival: HttpArrival,
        fails: impl Fn(usize) -> bool,
    ) -> LoggedAttempt {
        let attempt = self.record_if(arrival, |index| (true, fails(index)));
        attempt.expect("it is recorded whether it fails or not")
    }

    /// Records an attempt only if it fails.
    pub(crate) fn record_failing(
        &self,
        arrival: HttpArrival,
        fails: impl Fn(usize) -> bool,
    ) -> Option<LoggedAttempt> {
        self.record_if(arrival, |index| (fails(index), true))
    }

    fn record_if(
        &self,
        arrival: HttpArrival,
        decide: impl Fn(usize) -> (bool, bool),
    ) -> Option<LoggedAttempt> {
        let mut arrivals = self.lock();
        let (index, at) = (arrivals.len(), self.origin.elapsed());
        let (recorded, failed) = decide(index);
        recorded.then(|| {
            arrivals.push(HttpArrival {
                at,
                failed,
                ..arrival
            });
            let log = self.clone();
            LoggedAttempt { log, index, failed }
        })
    }

    /// Notes why a connection brought no request.
    pub(crate) fn note_problem(&self, problem: String) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
    }

    /// Returns why the last connection without a request brought none.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn arrivals(&self) -> Vec<HttpArrival> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HttpArrival>> {
        // A list stays whole when a thread panics.
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoggedAttempt {
    /// Notes how much of the body was read.
    pub(crate) fn note_body(&self, body: u64) {
        self.change(|arrival| arrival.body = body);
    }

    /// Notes that no server can have applied the request.
    pub(crate) fn note_unapplied(&self) {
        self.change(|arrival| arrival.unapplied = true);
    }

    /// Notes that the client got the whole response after all.
    pub(crate) fn succeed(&self) {
        self.change(|arrival| arrival.failed = false);
    }

    fn change(&self, change: impl FnOnce(&mut HttpArrival)) {
        if let Some(arrival) = self.log.lock().get_mut(self.index) {
            change(arrival);
        }
    }
}

impl Drop for LoggedAttempt {
    fn drop(&mut self) {
        let now = self.log.origin.elapsed();
        self.change(|arrival| arrival.over = Some(now));
    }
}
