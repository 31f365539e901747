//! The engine, by the call site that its users write.

use std::time::Duration;
use steadfast::classify::RetryInfo;
use steadfast::failure::Safety;
use steadfast::strategy::{Admission, Cause, Decision, Ending, Refusal, RetryToken};
use steadfast::{
    Backoff, BestEffort, Failure, Jitter, LoadAware, Request, RetryStrategy, Standard, World, retry,
};

use super::{Contender, Limit};
use crate::operation::{Peer, Unavailable, ask, drive, repeat};

/// Instructions of a first try that succeeds and of one that fails. The state of a request
/// that failed is one allocation.
pub(super) fn all() -> [Contender; 7] {
    let standard_with_deadline = limited(standard_with_deadline(), 280.0, 1850.0);
    let load_aware = limited(load_aware(), 371.0, 3600.0);
    [
        limited(best_effort(), 250.0, 1250.0),
        limited(standard(), 260.0, 1400.0),
        limited(standard_as_dyn(), 320.0, 1450.0),
        changed(standard_with_deadline, |[first, _]| first.clock_reads = 1.0),
        // It is around a strategy with a budget, so its token notes two payments.
        changed(load_aware, |[_, failed]| failed.allocations = 3.0),
        limited(own(), 250.0, 1100.0),
        limited(wrapper(), 260.0, 1400.0),
    ]
}

fn limited(contender: Contender, first_try: f64, one_failure: f64) -> Contender {
    let limit = |allocations, instructions| Limit {
        allocations,
        instructions,
        clock_reads: 0.0,
    };
    Contender {
        limits: Some([limit(0.0, first_try), limit(1.0, one_failure)]),
        ..contender
    }
}

fn changed(mut contender: Contender, change: impl FnOnce(&mut [Limit; 2])) -> Contender {
    if let Some(limits) = &mut contender.limits {
        change(limits);
    }
    contender
}

fn best_effort() -> Contender {
    let strategy = BestEffort::new(Backoff::none());
    Contender::new("steadfast, best effort", move |failures, calls| {
        under(&strategy, failures, calls);
    })
}

fn standard() -> Contender {
    let strategy = strategy();
    Contender::new("steadfast, standard", move |failures, calls| {
        under(&strategy, failures, calls);
    })
}

/// Aware of the load of its peer. Its own delays are too long for retries, and a retry that
/// succeeds is free.
fn load_aware() -> Contender {
    let own = LoadAware::new();
    let around = LoadAware::new().around(strategy());
    Contender::new(
        "steadfast, load-aware",
        move |failures, calls| match failures {
            0 => under(&own, failures, calls),
            _ => under(&around, failures, calls),
        },
    )
}

fn standard_as_dyn() -> Contender {
    let strategy: Box<dyn RetryStrategy> = Box::new(strategy());
    Contender::new("steadfast, standard as &dyn", move |failures, calls| {
        under(&*strategy, failures, calls);
    })
}

fn standard_with_deadline() -> Contender {
    let strategy = strategy();
    Contender::new(
        "steadfast, standard with a deadline",
        move |failures, calls| {
            let peer = Peer::default();
            repeat(&peer, failures, calls, || {
                drive(
                    retry(&strategy)
                        .operation("ask")
                        .idempotent(true)
                        .timeout(Duration::from_secs(10))
                        .run(|_attempt| ask(&peer)),
                )
            });
        },
    )
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

/// The preset whose success gives back what its retry cost, so that the budget stays full
/// however long the benchmark runs. Its delays are cut to nothing, but still drawn at random.
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

    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        self.0.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.0.record_end(token, ending, world);
    }
}

fn own() -> Contender {
    let strategy = Own;
    Contender::new("steadfast, a user's strategy", move |failures, calls| {
        under(&strategy, failures, calls);
    })
}

fn wrapper() -> Contender {
    let strategy = Wrapper(strategy());
    Contender::new(
        "steadfast, a user's wrapper of standard",
        move |failures, calls| {
            under(&strategy, failures, calls);
        },
    )
}
