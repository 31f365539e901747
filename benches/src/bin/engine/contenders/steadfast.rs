//! The engine, by the call site that its users write.

use std::time::Duration;
use steadfast::classify::RetryInfo;
use steadfast::failure::Safety;
use steadfast::strategy::{Admission, Cause, Decision, Ending, ForeignToken, Refusal, RetryToken};
use steadfast::{
    Backoff, BestEffort, Failure, Jitter, LoadAware, Request, RetryStrategy, Standard, World, retry,
};

use super::{
    BEST_EFFORT, Contender, LOAD_AWARE, OWN, STANDARD, STANDARD_DEADLINE, STANDARD_DYN, TIMEOUT,
    WRAPPER,
};
use crate::operation::{Peer, Unavailable, ask, drive, repeat};

pub(super) fn all() -> [Contender; 7] {
    [
        best_effort(),
        standard(),
        standard_as_dyn(),
        standard_with_deadline(),
        load_aware(),
        own(),
        wrapper(),
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

/// The smallest strategy: two retries at once.
struct Own;

impl RetryStrategy for Own {
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        match token.retries() {
            0..2 => Ok(token.next(Duration::ZERO)).into(),
            _ => Refusal::new(Cause::Declined).into(),
        }
    }
}

struct Wrapper(Standard);

impl RetryStrategy for Wrapper {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        self.0.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.0.refresh_retry_token(token, request, failure, world)
    }

    fn record_success(
        &self,
        token: Option<RetryToken>,
        world: &dyn World,
    ) -> Result<(), ForeignToken> {
        self.0.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.0.record_end(token, ending, world);
    }
}

fn own() -> Contender {
    let strategy = Own;
    Contender::new(OWN, move |failures, calls| {
        under(&strategy, failures, calls);
    })
}

fn wrapper() -> Contender {
    let strategy = Wrapper(strategy());
    Contender::new(WRAPPER, move |failures, calls| {
        under(&strategy, failures, calls);
    })
}
