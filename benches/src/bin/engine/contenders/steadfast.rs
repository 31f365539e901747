//! The engine, by the call site that its users write.

use std::time::Duration;
use steadfast::classify::RetryInfo;
use steadfast::failure::Safety;
use steadfast::{Backoff, BestEffort, Jitter, LoadAware, RetryStrategy, Standard, retry};

use super::{
    BEST_EFFORT, Contender, LOAD_AWARE, STANDARD, STANDARD_DEADLINE, STANDARD_DYN, TIMEOUT,
};
use crate::operation::{Peer, Unavailable, ask, drive, repeat};

pub(super) fn all() -> [Contender; 5] {
    [
        best_effort(),
        standard(),
        standard_as_dyn(),
        standard_with_deadline(),
        load_aware(),
    ]
}

fn best_effort() -> Contender {
    let strategy = BestEffort::new(Backoff::none());
    Contender::new(BEST_EFFORT, move |failures, calls| {
        under(&strategy, failures, calls);
    })
}

fn standard() -> Contender {
    let strategy = strategy();
    Contender::new(STANDARD, move |failures, calls| {
        under(&strategy, failures, calls);
    })
    .sharing_a_budget()
}

/// Aware of the load of its peer. Its own delays are too long for retries, and a retry that
/// succeeds is free.
fn load_aware() -> Contender {
    let own = LoadAware::new();
    let around = LoadAware::new().around(strategy());
    Contender::new(LOAD_AWARE, move |failures, calls| match failures {
        0 => under(&own, failures, calls),
        _ => under(&around, failures, calls),
    })
    .sharing_a_budget()
}

fn standard_as_dyn() -> Contender {
    let strategy: Box<dyn RetryStrategy> = Box::new(strategy());
    Contender::new(STANDARD_DYN, move |failures, calls| {
        under(&*strategy, failures, calls);
    })
    .sharing_a_budget()
}

fn standard_with_deadline() -> Contender {
    let strategy = strategy();
    Contender::new(STANDARD_DEADLINE, move |failures, calls| {
        let peer = Peer::default();
        repeat(&peer, failures, calls, || {
            drive(
                retry(&strategy)
                    .operation("ask")
                    .idempotent(true)
                    .timeout(TIMEOUT)
                    .run(|_attempt| ask(&peer)),
            )
        });
    })
    .sharing_a_budget()
}

/// Calls without a deadline.
fn under<S: RetryStrategy + ?Sized>(strategy: &S, failures: u32, calls: u64) {
    let peer = Peer::default();
    repeat(&peer, failures, calls, || {
        drive(
            retry(strategy)
                .operation("ask")
                .idempotent(true)
                .run(|_attempt| ask(&peer)),
        )
    });
}

/// The preset whose success gives back what its retry cost, as smithy's does:
/// the budget stays full however long the benchmark runs. Its delays are cut to
/// nothing, but their dice are rolled all the same, as smithy's are.
fn strategy() -> Standard {
    Standard::aws_2_0()
        .to_builder()
        .backoff(Backoff::constant(Duration::ZERO).with_jitter(Jitter::Full))
        .build()
        .expect("a preset with another backoff is possible")
}

impl RetryInfo for Unavailable {
    fn is_retry_safe(&self) -> Safety {
        Safety::Yes
    }
}
