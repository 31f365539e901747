//! Generated failures of every kind.

use proptest::prelude::*;
use steadfast::failure::{FaultSide, Safety};
use steadfast::{Failure, Reason, Stage, reason};

use crate::durations;

pub(crate) static ALWAYS: Reason = Reason::new("ALWAYS").always_retried();
static ALWAYS_AND_SAFE: Reason = Reason::new("ALWAYS_AND_SAFE")
    .always_retried()
    .allowing_non_idempotent_retry();
static ALWAYS_AND_NEVER: Reason = Reason::new("ALWAYS_AND_NEVER")
    .always_retried()
    .never_retried();

/// Any failure at all.
pub(crate) fn failures() -> BoxedStrategy<Failure> {
    prop_oneof![
        6 => of_reasons(asked()),
        1 => of_reasons(vec![&ALWAYS, &ALWAYS_AND_SAFE, &ALWAYS_AND_NEVER]),
    ]
    .boxed()
}

/// Failures about which the strategy is asked, or nobody.
pub(crate) fn failures_that_ask() -> BoxedStrategy<Failure> {
    of_reasons(asked()).boxed()
}

fn asked() -> Vec<&'static Reason> {
    vec![
        &reason::UNKNOWN,
        &reason::OPERATION_FAILED,
        &reason::RETRY_SAFE,
        &reason::NOT_AVAILABLE,
        &reason::SOCKET_CLOSED_WHILE_IN_FLIGHT,
        &reason::CIRCUIT_BREAKER_OPEN,
        &reason::THROTTLED,
        &reason::TIMEOUT,
    ]
}

fn of_reasons(reasons: Vec<&'static Reason>) -> BoxedStrategy<Failure> {
    let stages = vec![
        Stage::NotSent,
        Stage::InFlight,
        Stage::Inconclusive,
        Stage::Responded,
    ];
    let safeties =
        prop_oneof![10 => Just(Safety::Yes), 1 => Just(Safety::No), 9 => Just(Safety::Maybe)];
    let faults = vec![FaultSide::Client, FaultSide::Server, FaultSide::Other];
    (
        prop::sample::select(reasons),
        prop::sample::select(stages),
        safeties,
        prop::sample::select(faults),
        prop::option::weighted(0.4, durations()),
        any::<(bool, bool)>(),
    )
        .prop_map(
            |(reason, stage, safety, fault, hint, (throttling, timeout))| {
                let mut failure = match stage {
                    Stage::NotSent => Failure::not_sent(reason),
                    Stage::InFlight => Failure::in_flight(reason),
                    Stage::Inconclusive => Failure::inconclusive(reason),
                    Stage::Responded => Failure::responded(reason),
                };
                failure.safety = safety;
                failure.fault = fault;
                failure.hint = hint;
                failure.throttling = throttling;
                failure.timeout = timeout;
                failure
            },
        )
        .boxed()
}
