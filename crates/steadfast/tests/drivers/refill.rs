//! A budget that ran dry, and fills up again.

use std::cell::Cell;

use steadfast::strategy::Cause;
use steadfast::{Failure, Standard, VirtualWorld, retry};

use crate::unsent;

#[test]
fn after_an_outage_retries_come_back_as_requests_succeed() {
    let (strategy, world) = (Standard::guidance(), VirtualWorld::new());
    let level = || strategy.budget().level();
    let call = || retry(&strategy).world(&world).classify(Failure::clone);
    let fails = || call().run_blocking(|_| Err::<(), _>(unsent()));
    let succeeds = || call().run_blocking(|_| Ok::<_, Failure>(())).unwrap();

    let dry = |error: &steadfast::Error<_>| error.was_refused_for(Cause::BudgetEmpty);
    while !fails().is_err_and(|error| dry(&error)) {}
    assert_eq!(level(), 0);
    assert_eq!(fails().unwrap_err().report().attempts(), 1, "no retry");

    // A retry costs five, and each success gives one back.
    for success in 1..5 {
        succeeds();
        assert_eq!(level(), success);
        assert_eq!(fails().unwrap_err().report().attempts(), 1, "still none");
    }
    succeeds();
    let attempts = Cell::new(0);
    let retried = call().run_blocking(|attempt| {
        attempts.set(attempt.number());
        if attempt.number() == 1 {
            Err(unsent())
        } else {
            Ok(())
        }
    });
    assert!(retried.is_ok());
    assert_eq!(
        (attempts.get(), level()),
        (2, 1),
        "one retry, and its refund"
    );

    (0..1000).for_each(|_| succeeds());
    assert_eq!(level(), 500, "full, and not more");
}
