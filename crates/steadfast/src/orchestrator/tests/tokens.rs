//! Laws 5 and 10: the use of tokens, and requests at the same time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// Grants every retry after a millisecond, and notes which tokens it issues and which
/// of them come back to it.
struct Registrar {
    id: StrategyId,
    issued: AtomicU32,
    returned: Mutex<Vec<u32>>,
}

impl Registrar {
    fn new() -> Self {
        Self {
            id: StrategyId::unique(),
            issued: AtomicU32::new(0),
            returned: Mutex::default(),
        }
    }

    fn issue(&self, token: RetryToken) -> RetryToken {
        token.with_state(self.issued.fetch_add(1, Ordering::Relaxed))
    }

    fn note(&self, token: &RetryToken) {
        assert!(token.check_issuer(&self.id).is_ok());
        let number = token.state::<u32>().expect("every issued token has one");
        self.returned.lock().unwrap().push(*number);
    }

    /// Every token that was issued came back, once and in order.
    fn assert_all_returned_once(&self, how: &str) {
        let issued: Vec<u32> = (0..self.issued.load(Ordering::Relaxed)).collect();
        assert_eq!(*self.returned.lock().unwrap(), issued, "{how}");
    }
}

impl RetryStrategy for Registrar {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Admission {
        Admission::Token(self.issue(RetryToken::issued_by(&self.id)))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        self.note(&token);
        Ok(self.issue(token.next(MS))).into()
    }

    fn record_success(&self, token: Option<RetryToken>, _: &dyn World) -> Result<(), Refusal> {
        self.note(&token.expect("no attempt is free"));
        Ok(())
    }

    fn record_end(&self, token: RetryToken, _: Ending<'_>, _: &dyn World) {
        self.note(&token);
    }
}

#[test]
fn law_5_each_token_comes_back_once_however_the_request_ends() {
    type End = fn(Orchestrator<&Registrar>, &VirtualWorld);
    let ends: [(&str, End); 7] = [
        ("success", |mut request, world| {
            request.handle_success(world);
            request.handle_success(world);
        }),
        ("conclusive answer", |mut request, world| {
            request.handle_final_response(Stage::Responded, world)
        }),
        ("unsendable", |mut request, world| {
            request.handle_unsendable(world)
        }),
        ("refused by law", |mut request, world| {
            assert!(!fails(&mut request, Failure::in_flight(&LOCKED), world));
        }),
        (
            "deadline",
            |mut request, world| {
                while fails(&mut request, locked(), world) {}
            },
        ),
        ("cancelled", |mut request, world| {
            let _ = request.handle_cancel(world);
        }),
        ("dropped", |request, _| drop(request)),
    ];
    for (how, end) in ends {
        let (strategy, world) = (Registrar::new(), VirtualWorld::new());
        let mut request = begun(&strategy, Call::new("set").timeout(20 * MS), &world);
        for _ in 0..3 {
            assert!(fails(&mut request, locked(), &world));
        }
        end(request, &world);
        strategy.assert_all_returned_once(how);
    }
}

#[test]
fn law_10_a_waiting_request_does_not_hold_up_a_later_one() {
    let world = VirtualWorld::new();
    let strategy = Standard::guidance();
    let mut first = begun(&strategy, Call::new("first"), &world);
    let delay = waits(first.handle_failure(locked(), &world));
    assert!(delay > Duration::ZERO);
    // The later request makes its attempt at once and ends first.
    let mut second = begun(&strategy, Call::new("second"), &world);
    second.handle_success(&world);
    world.advance(delay);
    attempts(first.handle_waited(&world));
}
