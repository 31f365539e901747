//! The engine, by the call site that its users write.

use std::time::Duration;
use steadfast::brake::Brake;
use steadfast::budget::Costs;
use steadfast::classify::RetryInfo;
use steadfast::failure::Safety;
use steadfast::{Backoff, BestEffort, Budget, Jitter, RetryStrategy, Standard, StrategyExt, retry};

use super::{BEST_EFFORT, Contender, FLEET, STANDARD, STANDARD_DEADLINE, STANDARD_DYN, TIMEOUT};
use crate::operation::{Peer, Unavailable, ask, drive, repeat};

pub(super) fn all() -> [Contender; 5] {
    [
        best_effort(),
        standard(),
        standard_as_dyn(),
        standard_with_deadline(),
        fleet(),
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

/// With a budget that traffic bounds, and a brake. Its retries are cheap, so that a
/// client whose every request fails once can pay for them.
fn fleet() -> Contender {
    let budget = Budget::of_traffic().to_builder();
    let budget = budget.costs(Costs::new(1, 1, 1)).build();
    let builder = strategy().to_builder().budget(budget.expect("valid costs"));
    let strategy = builder
        .build()
        .expect("valid settings")
        .with_brake(Brake::new());
    Contender::new(FLEET, move |failures, calls| {
        under(&strategy, failures, calls);
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
