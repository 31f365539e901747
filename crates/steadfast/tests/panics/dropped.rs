//! A strategy that panics when it is told of a dropped request. The panic must
//! not leave the destructor: there it could end the process.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use steadfast::{Call, Failure, Orchestrator, Step, VirtualWorld, retry};

use crate::faulty::{faulty, waiting};
use crate::wrapper::Method;
use crate::{SECOND, assert_still_works, endless, unsent};

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
fn a_request_dropped_in_a_later_attempt_or_in_a_wait_does_not_panic() {
    for waits in [true, false] {
        let strategy = waiting(Method::RecordEnd, SECOND);
        let world = VirtualWorld::new();
        let mut request = Orchestrator::new(&strategy, Call::new("op"));
        assert!(matches!(request.begin(&world), Step::Attempt));
        assert!(matches!(
            request.handle_failure(unsent(), &world),
            Step::Wait { delay: SECOND, .. }
        ));
        if !waits {
            assert!(matches!(request.handle_waited(&world), Step::Attempt));
        }
        drop(request);
        assert_eq!(strategy.count(Method::RecordEnd), 1);
    }
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
