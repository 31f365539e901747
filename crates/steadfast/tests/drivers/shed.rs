//! Requests that the strategy sheds: no attempt is made (D41).

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::strategy::{Admission, Cause, Decision, Refusal, RetryToken};
use steadfast::{Error, Failure, Request, RetryEvent, RetryStrategy, Verdict, World, retry};

const LATER: Duration = Duration::from_secs(2);

/// Sheds every request.
struct Shedding;

impl RetryStrategy for Shedding {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Admission {
        Admission::Refused(Refusal::shed(LATER))
    }

    fn refresh_retry_token(
        &self,
        _: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        unreachable!("a request that was shed has no token")
    }
}

fn check(error: &Error<io::Error>, events: &AtomicU32) {
    assert_eq!(error.verdict(), Verdict::Shed);
    assert!(error.is_shed() && !error.is_ambiguous() && !error.is_timeout());
    assert!(error.was_refused_for(Cause::Shed));
    assert_eq!(error.try_again_in(), Some(LATER));
    assert_eq!(error.report().attempts(), 0);
    assert_eq!(
        error.to_string(),
        "put was shed, was not applied: the client sheds load, nothing was sent; \
         try again in 2.00 s"
    );
    assert_eq!(events.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_shed_makes_no_attempt_and_does_not_wait() {
    let events = AtomicU32::new(0);
    let observer = |event: &RetryEvent<'_>| {
        assert!(
            event
                .to_string()
                .ends_with("was shed: the client sheds load; try again in 2s"),
            "{event}"
        );
        events.fetch_add(1, Ordering::Relaxed);
    };
    let error = retry(&Shedding)
        .operation("put")
        .observe(&observer)
        .run(async |_| -> io::Result<()> { panic!("an attempt was made") })
        .await
        .expect_err("it is shed");
    check(&error, &events);
    assert_eq!(error.report().elapsed(), Some(Duration::ZERO));
}

#[test]
fn a_blocking_call_that_is_shed_makes_no_attempt() {
    let events = AtomicU32::new(0);
    let observer = |_: &RetryEvent<'_>| {
        events.fetch_add(1, Ordering::Relaxed);
    };
    let error = retry(&Shedding)
        .operation("put")
        .observe(&observer)
        .run_blocking(|_| -> io::Result<()> { panic!("an attempt was made") })
        .expect_err("it is shed");
    check(&error, &events);
}
