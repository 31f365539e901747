//! Statements of the documents that are about what a user of the crate sees,
//! each on its own. `docs/conformance.md` says which statement each one pins.

use std::fmt;
use std::time::Duration;

use steadfast::classify::RetryInfo;
use steadfast::failure::Safety;
use steadfast::report::Outcome;
use steadfast::strategy::{
    Cause, Decision, Refusal, RetryAction, RetryToken, StrategyId, from_decision,
};
use steadfast::{
    Backoff, BestEffort, Call, Failure, Orchestrator, Reason, RetryStrategy, Standard, Step,
    VirtualWorld, World, from_fn, reason,
};

static NOT_MY_PARTITION: Reason = Reason::new("NOT_MY_PARTITION")
    .allowing_non_idempotent_retry()
    .always_retried();

/// An error of which only the least is known.
#[derive(Debug, PartialEq)]
struct Plain(Safety);

impl RetryInfo for Plain {
    fn is_retry_safe(&self) -> Safety {
        self.0
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plain {:?}", self.0)
    }
}

#[test]
fn a_call_is_not_idempotent_unless_it_says_so() {
    assert!(!Call::new("op").request().is_idempotent());
    let mut attempts = 0;
    let error = steadfast::retry(&BestEffort::default())
        .run_blocking(|_| -> Result<(), Plain> {
            attempts += 1;
            Err(Plain(Safety::Maybe))
        })
        .unwrap_err();
    assert_eq!(attempts, 1);
    assert!(error.was_refused_for(Cause::Unsafe));
}

#[test]
fn the_neutral_reasons_have_the_flags_of_the_table() {
    // Name, allows a retry of what is not idempotent, is always retried.
    for (reason, name, allows, always) in [
        (&reason::UNKNOWN, "UNKNOWN", false, false),
        (
            &reason::SOCKET_CLOSED_WHILE_IN_FLIGHT,
            "SOCKET_CLOSED_WHILE_IN_FLIGHT",
            false,
            false,
        ),
        (
            &reason::CIRCUIT_BREAKER_OPEN,
            "CIRCUIT_BREAKER_OPEN",
            true,
            false,
        ),
        (
            &reason::AUTHENTICATION_ERROR,
            "AUTHENTICATION_ERROR",
            true,
            false,
        ),
        (&reason::TLS_ERROR, "TLS_ERROR", true, false),
    ] {
        assert_eq!(reason.name(), name);
        assert_eq!(reason.allows_non_idempotent_retry(), allows, "{name}");
        assert_eq!(reason.always_retry(), always, "{name}");
        assert_eq!(reason.never_retry(), name == "UNKNOWN", "{name}");
    }
}

#[test]
fn fail_fast_on_everything_is_one_line_and_the_caller_gets_the_original_error() {
    let fail_fast = from_fn(|_, _| RetryAction::no_retry());
    let mut attempts = 0;
    let error = steadfast::retry(&fail_fast)
        .idempotent(true)
        .run_blocking(|_| -> Result<(), Plain> {
            attempts += 1;
            Err(Plain(Safety::Yes))
        })
        .unwrap_err();
    assert_eq!(attempts, 1);
    assert!(error.was_refused_for(Cause::Declined));
    assert!(error.raised().is_none());
    assert_eq!(error.last_error(), Some(&Plain(Safety::Yes)));
    assert!(error.to_string().ends_with(": plain Yes"), "{error}");
}

#[test]
fn a_strategy_sees_the_whole_request() {
    let world = VirtualWorld::new();
    let began = world.now();
    let strategy = from_fn(move |request, failure| {
        assert_eq!((request.operation(), request.service()), ("get", "kv"));
        assert!(request.is_idempotent());
        assert_eq!(request.deadline(), Some(began + Duration::from_secs(9)));
        assert_eq!(failure.reason, &reason::THROTTLED);
        let last = request.history().last().expect("the failure asked about");
        assert_eq!(last.failure.reason, &reason::THROTTLED);
        assert_eq!(
            (last.attempt, last.outcome),
            (request.attempts(), Outcome::Undecided)
        );
        assert_eq!(request.reasons().len(), request.retries().min(1) as usize);
        RetryAction::with_duration(Duration::from_secs(u64::from(request.retries()) + 1))
    });
    let call = Call::new("get").service("kv").idempotent(true);
    let mut request = Orchestrator::new(strategy, call.timeout(Duration::from_secs(9)));
    let _ = request.begin(&world);
    for expected in 1..=3 {
        let failure = Failure::responded(&reason::THROTTLED);
        let Step::Wait { delay, .. } = request.handle_failure(failure, &world) else {
            panic!("not retried");
        };
        assert_eq!(delay, Duration::from_secs(expected));
        world.advance(delay);
        let _ = request.handle_waited(&world);
    }
}

#[test]
fn best_effort_takes_any_backoff() {
    let world = VirtualWorld::new();
    let step = Duration::from_millis(70);
    let backoff = Backoff::linear(step, step, 3 * step).unwrap();
    let mut request = Orchestrator::new(BestEffort::new(backoff), Call::new("get"));
    let _ = request.begin(&world);
    for expected in [70, 140, 210, 210] {
        let failure = Failure::not_sent(&reason::NOT_AVAILABLE);
        let Step::Wait { delay, .. } = request.handle_failure(failure, &world) else {
            panic!("not retried");
        };
        assert_eq!(delay, Duration::from_millis(expected));
        world.advance(delay);
        let _ = request.handle_waited(&world);
    }
}

#[test]
fn a_decision_that_fails_or_panics_later_fails_its_request_with_that() {
    for panics in [false, true] {
        let strategy = from_decision(move |_, _, _| {
            Decision::pending(async move {
                assert!(!panics, "nobody answers");
                Err(Refusal::new(Cause::StrategyFailed).raising("nobody answers"))
            })
        });
        let error = steadfast::retry(&strategy)
            .run_blocking(|_| -> Result<(), Plain> { Err(Plain(Safety::Yes)) })
            .unwrap_err();
        assert!(error.was_refused_for(Cause::StrategyFailed));
        let raised = error.raised().map(ToString::to_string).unwrap_or_default();
        assert!(raised.ends_with("nobody answers"), "{raised}");
        assert_eq!(error.last_error(), Some(&Plain(Safety::Yes)));
    }
}

#[test]
fn a_token_carries_state_of_the_strategys_own_from_attempt_to_attempt() {
    let token = RetryToken::issued_by(&StrategyId::unique()).with_state(vec!["first"]);
    let mut token = token.next(Duration::from_millis(3));
    token.state_mut::<Vec<&str>>().unwrap().push("second");
    let token = token.next(Duration::from_millis(5));
    assert_eq!(token.state(), Some(&vec!["first", "second"]));
    assert_eq!(token.state::<u32>(), None);
    let token = token.with_state(7_u32).with_state(vec!["third"]);
    assert_eq!(token.state::<u32>(), Some(&7), "one state of each type");
    assert_eq!(token.state(), Some(&vec!["third"]));
    assert_eq!(
        (token.retries(), token.delay()),
        (2, Duration::from_millis(5))
    );
}

#[test]
fn the_guidance_never_waits_longer_than_twenty_seconds_by_itself() {
    let world = VirtualWorld::new(); // rolls ones: the longest delays
    let strategy = Standard::builder().max_attempts(8).build().unwrap();
    let call = Call::new("op").idempotent(true);
    let admission = strategy.acquire_initial_token(&call.request(), &world);
    let mut token = admission.into_token().unwrap();
    let mut delays = Vec::new();
    for _ in 0..7 {
        let failure = Failure::responded(&reason::OPERATION_FAILED);
        let decision = strategy.refresh_retry_token(token, &call.request(), &failure, &world);
        let Decision::Ready(Ok(next)) = decision else {
            panic!("{decision:?}");
        };
        delays.push(next.delay().as_secs());
        token = next;
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 20, 20]);
    strategy.record_success(Some(token), &world).unwrap();
}

#[test]
fn a_retry_that_asks_no_strategy_leaves_its_event_all_the_same() {
    let world = VirtualWorld::new().recording();
    let never = from_fn(|_, _| RetryAction::no_retry());
    let mut request = Orchestrator::new(never, Call::new("op"));
    let _ = request.begin(&world);
    for _ in 0..2 {
        let failure = Failure::responded(&NOT_MY_PARTITION);
        let Step::Wait { delay, .. } = request.handle_failure(failure, &world) else {
            panic!("not retried");
        };
        world.advance(delay);
        let _ = request.handle_waited(&world);
    }
    let events = world.take_events();
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.failure.reason, event.attempt, event.outcome))
        .collect();
    let retry = |millis| Outcome::Retry {
        delay: Duration::from_millis(millis),
        capped: false,
    };
    assert_eq!(
        told,
        [
            (&NOT_MY_PARTITION, 1, retry(1)),
            (&NOT_MY_PARTITION, 2, retry(10)),
        ]
    );
}

/// What the documents ask of docs: each sentence stands in the docs of its item.
#[test]
fn the_docs_say_what_the_documents_ask_of_them() {
    const FAIL_FAST: &str = include_str!("../src/strategy/fail_fast.rs");
    const TERMINAL: &str = include_str!("../src/strategy/gate/terminal.rs");
    const CLIENT: &str = include_str!("../../steadfast-couchbase/src/fast_fail.rs");
    const ORCHESTRATOR: &str = include_str!("../src/orchestrator/mod.rs");
    for (file, sentence) in [
        (FAIL_FAST, "For work that a client repeats anyway"),
        (
            FAIL_FAST,
            "The RFC advises clients not to offer it to their users",
        ),
        (TERMINAL, "**Volatile.** Reasons may be added to the list"),
        (
            TERMINAL,
            "A program that depends on an exact list should pass its own.",
        ),
        (CLIENT, "Makes the client's default strategy"),
        (ORCHESTRATOR, "No ordering is promised between requests"),
    ] {
        let docs = file.lines().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"))
        });
        let docs: Vec<&str> = docs.flat_map(str::split_whitespace).collect();
        assert!(docs.join(" ").contains(sentence), "{sentence}");
    }
}
