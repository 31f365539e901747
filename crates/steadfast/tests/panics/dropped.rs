//! A strategy that panics when it is told of a dropped request. The panic must
//! not leave the destructor: there it could end the process.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use steadfast::{Failure, retry};

use crate::faulty::faulty;
use crate::wrapper::Method;
use crate::{assert_still_works, endless};

#[test]
fn a_call_dropped_in_its_first_attempt_does_not_panic() {
    let strategy = faulty(Method::RecordEnd);
    {
        let mut call = pin!(retry(&strategy).classify(Failure::clone).run(endless));
        assert!(poll(call.as_mut()).is_pending());
    }
    assert_eq!(strategy.count(Method::RecordEnd), 1);
    assert_still_works(&strategy);
}

#[test]
fn a_call_dropped_by_another_panic_does_not_abort_the_process() {
    let strategy = faulty(Method::RecordEnd);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut call = pin!(retry(&strategy).classify(Failure::clone).run(endless));
        assert!(poll(call.as_mut()).is_pending());
        panic!("something else went wrong");
    }));
    let payload = caught.expect_err("it panicked");
    assert_eq!(
        payload.downcast_ref::<&str>(),
        Some(&"something else went wrong")
    );
    assert_eq!(strategy.count(Method::RecordEnd), 1);
    assert_still_works(&strategy);
}

#[test]
fn an_operation_that_panics_unwinds_through_the_call_and_is_reported_to_the_strategy() {
    let strategy = faulty(Method::RecordEnd);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        retry(&strategy)
            .classify(Failure::clone)
            .run_blocking(|_| -> Result<(), Failure> { panic!("the operation's own") })
    }));
    assert!(caught.is_err(), "an operation's panic is its caller's");
    assert_eq!(strategy.count(Method::RecordEnd), 1);
    assert_still_works(&strategy);
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
