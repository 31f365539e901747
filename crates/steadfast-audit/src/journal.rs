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
}

/// The attempts of a case, shared by its connections.
#[derive(Clone)]
pub(crate) struct ArrivalLog {
    origin: Instant,
    arrivals: Arc<Mutex<Vec<HttpArrival>>>,
}

impl ArrivalLog {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            arrivals: Arc::default(),
        }
    }

    /// Records an arrival, and returns its index. `fails` decides by the index.
    pub(crate) fn record(&self, arrival: HttpArrival, fails: impl Fn(usize) -> bool) -> usize {
        let mut arrivals = self.lock();
        let index = arrivals.len();
        let (at, failed) = (self.origin.elapsed(), fails(index));
        arrivals.push(HttpArrival {
            at,
            failed,
            ..arrival
        });
        index
    }

    /// Records an arrival only if it fails.
    pub(crate) fn record_failing(
        &self,
        arrival: HttpArrival,
        fails: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut arrivals = self.lock();
        let (index, at) = (arrivals.len(), self.origin.elapsed());
        fails(index).then(|| {
            arrivals.push(HttpArrival {
                at,
                failed: true,
                ..arrival
            });
            index
        })
    }

    /// Notes how much of the body was read.
    pub(crate) fn note_body(&self, index: usize, body: u64) {
        if let Some(arrival) = self.lock().get_mut(index) {
            arrival.body = body;
        }
    }

    /// Notes that the server is done with an attempt.
    pub(crate) fn finish(&self, index: usize) {
        let now = self.origin.elapsed();
        if let Some(arrival) = self.lock().get_mut(index) {
            arrival.over.get_or_insert(now);
        }
    }

    /// Notes that the client got the whole response after all.
    pub(crate) fn succeed(&self, index: usize) {
        if let Some(arrival) = self.lock().get_mut(index) {
            arrival.failed = false;
        }
    }

    /// Decides whether the attempt with this index fails.
    pub(crate) fn fails(&self, index: usize) -> bool {
        self.lock().get(index).is_some_and(|arrival| arrival.failed)
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
