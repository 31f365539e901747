//! Scripts: the attempts and interruptions of one request, as data.

use std::fmt;
use std::time::Duration;

use proptest::prelude::*;
use steadfast::{Call, Failure, reason};

use crate::durations;

/// One request and the attempts that it will make. When the script has no more
/// of them, the next attempt succeeds.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) idempotent: bool,
    pub(crate) timeout: Option<Duration>,
    /// Counted from the beginning of the world.
    pub(crate) starts: Duration,
    pub(crate) tries: Vec<Try>,
    /// Attempts that reach the deadline are cut there, as the async driver
    /// does; else they end when they end, as under the blocking driver.
    pub(crate) cut: bool,
    /// Waits end early, as when what was waited for arrives.
    pub(crate) woken_early: bool,
    /// Nobody waits for the request any more when it would take this step.
    pub(crate) left: Option<(usize, Left)>,
}

/// How a request is left alone before its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Left {
    Dropped,
    Cancelled,
}

#[derive(Clone)]
pub(crate) struct Try {
    pub(crate) takes: Duration,
    /// A success if there is none.
    pub(crate) failure: Option<Failure>,
}

impl Script {
    pub(crate) fn call(&self) -> Call {
        let call = Call::new("op").idempotent(self.idempotent);
        match self.timeout {
            Some(timeout) => call.timeout(timeout),
            None => call,
        }
    }

    /// The same script without what a strategy cannot model for beforehand.
    pub(crate) fn unhurried(mut self) -> Self {
        self.cut = true;
        self.woken_early = false;
        self.left = None;
        self
    }
}

impl fmt::Debug for Try {
    /// On one line: a script that fails is read as a list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let takes = self.takes;
        let Some(failure) = &self.failure else {
            return write!(f, "{takes:?} success");
        };
        let Failure {
            reason,
            stage,
            safety,
            fault,
            hint,
            throttling,
            timeout,
            ..
        } = failure;
        write!(
            f,
            "{takes:?} {reason} {} safe: {safety:?} fault: {fault:?} hint: {hint:?} \
             throttling: {throttling} timeout: {timeout}",
            stage.name()
        )
    }
}

/// Attempts after which a write may be sent again, and most strategies agree.
fn safe_tries() -> impl Strategy<Value = Try> {
    let failure = prop_oneof![
        Just(Failure::not_sent(&reason::NOT_AVAILABLE)),
        Just(Failure::responded(&reason::RETRY_SAFE)),
    ];
    failure.prop_map(|failure| Try {
        takes: Duration::ZERO,
        failure: Some(failure),
    })
}

pub(crate) fn scripts(failures: BoxedStrategy<Failure>) -> BoxedStrategy<Script> {
    let takes = prop_oneof![2 => Just(Duration::ZERO), 1 => durations()];
    let failure = prop::option::weighted(0.8, failures);
    let left = prop::sample::select(vec![Left::Dropped, Left::Cancelled]);
    let one = (takes, failure).prop_map(|(takes, failure)| Try { takes, failure });
    // Failures that the law lets a write repeat come first in three of four scripts: otherwise
    // hardly a write reaches its third attempt.
    let safe = prop_oneof![1 => Just(0..1usize), 3 => Just(2..5usize)]
        .prop_flat_map(|count| prop::collection::vec(safe_tries(), count));
    let any_number = prop::collection::vec(one, 0..40);
    (
        any::<bool>(),
        prop::option::weighted(0.7, durations()),
        durations(),
        (safe, any_number).prop_map(|(safe, others)| [safe, others].concat()),
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.3, (0..30usize, left)),
    )
        .prop_map(
            |(idempotent, timeout, starts, tries, cut, woken_early, left)| Script {
                idempotent,
                timeout,
                starts,
                tries,
                cut,
                woken_early,
                left,
            },
        )
        .boxed()
}
