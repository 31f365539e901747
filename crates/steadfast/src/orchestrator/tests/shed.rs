//! Tests for requests that the strategy sheds (D41).

use super::*;
use crate::error::Error;
use crate::reason::LOAD_SHED;

/// Sheds every request, and says when to try again.
fn shedding() -> Own {
    Own::admitting(|_| Admission::Refused(Refusal::shed(2 * SECOND)))
        .deciding(|_| unreachable!("a request that was shed has no token"))
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_shed_request_makes_no_attempt_and_is_never_ambiguous() {
    for idempotent in [true, false] {
        let world = VirtualWorld::new().recording();
        let call = Call::new("put").idempotent(idempotent).timeout(SECOND);
        let strategy = shedding();
        let mut request = Orchestrator::new(&strategy, call);
        assert_eq!(gives_up(request.begin(&world)), Verdict::Shed);
        assert!(!Verdict::Shed.is_ambiguous() && !Verdict::Shed.is_timeout());
        assert!(matches!(
            request.handle_failure(locked(), &world),
            Step::LeftAlone
        ));
        assert_eq!(
            events(&world),
            ["put #0 LOAD_SHED refused shed retries=0 reasons=0"]
        );

        let report = request.take_report();
        drop(request);
        assert_eq!(strategy.take_told(), [Told::Began], "it had no token");
        assert_eq!((report.attempts(), report.retries()), (0, 0));
        assert_eq!(report.elapsed(), Some(Duration::ZERO));
        let refusal = report.refusal().expect("it was refused");
        assert_eq!(refusal.cause(), Cause::Shed);
        assert_eq!(refusal.delay(), Some(2 * SECOND));
    }
}

#[test]
fn an_outer_call_sees_a_shed_request_as_not_sent_with_a_hint() {
    use crate::classify::RetryInfo;

    let world = VirtualWorld::new();
    let mut request = Orchestrator::new(shedding(), Call::new("put"));
    gives_up(request.begin(&world));
    let error: Error<std::io::Error> = Error::new(request.take_report(), None);
    let failure = error.to_failure();
    assert_eq!(failure.stage, crate::failure::Stage::NotSent);
    assert!(std::ptr::eq(failure.reason, &LOAD_SHED));
    assert_eq!(failure.hint, Some(2 * SECOND));
    assert_ne!(failure.safety, Safety::No);
}

#[test]
fn a_long_poll_that_is_shed_learns_of_it_when_it_may_try_again() {
    let world = VirtualWorld::new();
    let call = Call::new("poll").long_polling(true);
    let mut request = Orchestrator::new(shedding(), call);
    assert_eq!(waits(request.begin(&world)), 2 * SECOND);
    world.advance(2 * SECOND);
    assert_eq!(gives_up(request.handle_waited(&world)), Verdict::Shed);
    assert_eq!(request.take_report().elapsed(), Some(2 * SECOND));
}
