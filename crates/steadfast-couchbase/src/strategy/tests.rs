use std::time::Duration;

use steadfast::report::{Certainty, Outcome};
use steadfast::{Call, Orchestrator, Step, StrategyExt, Verdict, VirtualWorld, from_fn};
use steadfast_wire::Status;
use steadfast_wire::error_map::{ErrorMap, ErrorMapBackoff, RetrySpec};

use super::*;
use crate::reason::{KV_ERROR_MAP_RETRY_INDICATED, KV_NOT_MY_VBUCKET, KV_TEMPORARY_FAILURE};

/// The three definitions of RFC 0013, "Example Definition"; the last one's
/// specification is put where the other two have theirs, and named.
const MAP: &[u8] = br#"{"version": 2, "revision": 1, "errors": {
    "fff0": {"name": "DUMMY_ERROR_RETRY_CONSTANT", "desc": "", "attrs": ["auto-retry", "temp"],
        "retry": {"strategy": "constant", "interval": 25, "after": 10, "max-duration": 1500}},
    "fff1": {"name": "DUMMY_ERROR_RETRY_LINEAR", "desc": "", "attrs": ["auto-retry", "temp"],
        "retry": {"strategy": "linear", "interval": 10, "after": 10, "max-duration": 1500,
            "ceil": 200}},
    "fff2": {"name": "DUMMY_ERROR_RETRY_EXPONENTIAL", "desc": "", "attrs": ["auto-retry", "temp"],
        "retry": {"strategy": "exponential", "interval": 2, "after": 10, "max-duration": 1500,
            "ceil": 500}}
}}"#;

fn answered(code: u16) -> Failure {
    let map = ErrorMap::parse(MAP).unwrap();
    let status = Status::from_code(code);
    let directive = RetryDirective::from_definition(status, map.get(status).unwrap()).unwrap();
    directive.attach_to(Failure::responded(&KV_ERROR_MAP_RETRY_INDICATED))
}

fn directed(code: u16, spec: RetrySpec) -> Failure {
    let status = Status::from_code(code);
    RetryDirective { status, spec }.attach_to(Failure::responded(&KV_ERROR_MAP_RETRY_INDICATED))
}

fn spec(strategy: ErrorMapBackoff, interval: u64, after: u64) -> RetrySpec {
    RetrySpec {
        strategy,
        interval: Duration::from_millis(interval),
        after: Duration::from_millis(after),
        max_duration: None,
        ceil: None,
    }
}

/// One request, whose every wait is waited for.
struct Scene<S: RetryStrategy> {
    request: Orchestrator<S>,
    world: VirtualWorld,
}

impl<S: RetryStrategy> Scene<S> {
    fn new(strategy: S, timeout: Option<Duration>) -> Self {
        let world = VirtualWorld::new();
        let call = match timeout {
            Some(timeout) => Call::new("upsert").timeout(timeout),
            None => Call::new("upsert"),
        };
        let mut request = Orchestrator::new(strategy, call);
        assert!(matches!(request.begin(&world), Step::Attempt));
        Self { request, world }
    }

    /// How long it waits after this failure, in milliseconds; or how it ends.
    fn fail(&mut self, failure: Failure) -> Result<u128, Verdict> {
        match self.request.handle_failure(failure, &self.world) {
            Step::Wait { delay, .. } => {
                self.world.advance(delay);
                match self.request.handle_waited(&self.world) {
                    Step::Attempt => Ok(delay.as_millis()),
                    Step::GiveUp(verdict) => Err(verdict),
                    step => panic!("{step:?}"),
                }
            }
            Step::Attempt => Ok(0),
            Step::GiveUp(verdict) => Err(verdict),
            step => panic!("{step:?}"),
        }
    }

    /// The waits until it ends.
    fn waits(&mut self, failure: &Failure) -> Vec<u128> {
        std::iter::from_fn(|| self.fail(failure.clone()).ok()).collect()
    }
}

fn scene() -> Scene<ErrorMapDirected> {
    Scene::new(ErrorMapDirected::default(), None)
}

#[test]
fn constant_is_after_and_then_the_interval_until_the_duration_is_over() {
    // 10 + 59 * 25 = 1485 ms; one more would be 1510.
    let waits = scene().waits(&answered(0xfff0));
    assert_eq!(waits[0], 10);
    assert!(waits[1..].iter().all(|wait| *wait == 25));
    assert_eq!(waits.len(), 60);
}

#[test]
fn linear_is_after_and_then_the_interval_times_the_retries_up_to_the_ceiling() {
    // 10 + 10 * (1 + … + 16) = 1370 ms; 170 more would be 1540.
    let expected: Vec<u128> = std::iter::once(10)
        .chain((1..=16).map(|n| 10 * n))
        .collect();
    assert_eq!(scene().waits(&answered(0xfff1)), expected);
    let mut endless = *answered(0xfff1).attachment::<RetryDirective>().unwrap();
    endless.spec.max_duration = None;
    let failure = directed(0xfff1, endless.spec);
    let mut scene = scene();
    let waits: Vec<_> = (0..25)
        .map(|_| scene.fail(failure.clone()).unwrap())
        .collect();
    assert_eq!(waits[19..], [190, 200, 200, 200, 200, 200]);
}

#[test]
fn exponential_is_after_and_then_the_interval_to_the_power_of_the_retries_up_to_the_ceiling() {
    // 10 + 2 + 4 + … + 256 = 520, + 500 = 1020 ms; 500 more would be 1520.
    let waits = scene().waits(&answered(0xfff2));
    assert_eq!(waits, [10, 2, 4, 8, 16, 32, 64, 128, 256, 500]);
}

#[test]
fn a_code_that_is_given_up_ends_in_its_own_error_and_not_in_a_timeout() {
    let mut scene = Scene::new(ErrorMapDirected::default(), Some(Duration::from_secs(75)));
    assert_eq!(scene.waits(&answered(0xfff2)).len(), 10);
    let last = scene.request.request().history().last().unwrap().outcome;
    assert_eq!(last, Outcome::Refused(Cause::Declined));

    let mut too_late = answered(0xfff2);
    if let Some(mut directive) = too_late.attachment::<RetryDirective>().copied() {
        directive.spec.max_duration = Some(Duration::from_millis(10));
        too_late = directive.attach_to(too_late);
    }
    let verdict = Scene::new(ErrorMapDirected::default(), None).fail(too_late);
    assert_eq!(verdict, Err(Verdict::Failed(Certainty::Unambiguous)));
}

#[test]
fn the_deadline_ends_it_if_it_comes_first() {
    let timeout = Duration::from_millis(100);
    let mut scene = Scene::new(ErrorMapDirected::default(), Some(timeout));
    assert_eq!(scene.waits(&answered(0xfff0)), [10, 25, 25, 25]);
    assert_eq!(scene.world.elapsed(), timeout);
}

#[test]
fn the_time_that_attempts_take_counts_too() {
    let mut scene = scene();
    assert_eq!(scene.fail(answered(0xfff0)), Ok(10));
    scene.world.advance(Duration::from_millis(1464));
    assert_eq!(
        scene.fail(answered(0xfff0)),
        Ok(25),
        "at 1474 ms, so until 1499"
    );
    assert!(scene.fail(answered(0xfff0)).is_err());
}

#[test]
fn a_change_of_code_restarts_the_schedule() {
    let mut scene = scene();
    for (code, wait) in [
        (0xfff1, 10),
        (0xfff1, 10),
        (0xfff1, 20),
        (0xfff2, 10),
        (0xfff2, 2),
        (0xfff1, 10),
        (0xfff1, 10),
        (0xfff1, 20),
    ] {
        assert_eq!(scene.fail(answered(code)), Ok(wait), "{code:x}");
    }
    // So does its duration.
    scene.world.advance(Duration::from_secs(9));
    assert_eq!(scene.fail(answered(0xfff2)), Ok(10));
}

#[test]
fn a_failure_without_a_specification_uses_the_inner_strategy_and_restarts_the_schedule() {
    let mut scene = scene();
    assert_eq!(scene.fail(answered(0xfff1)), Ok(10));
    assert_eq!(scene.fail(answered(0xfff1)), Ok(10));
    // The third retry of the request: best effort waits 2^2 ms.
    assert_eq!(scene.fail(Failure::responded(&KV_TEMPORARY_FAILURE)), Ok(4));
    assert_eq!(scene.fail(answered(0xfff1)), Ok(10));
    assert_eq!(scene.fail(answered(0xfff1)), Ok(10));
    // One that the strategy is not asked about breaks it too.
    assert!(scene.fail(Failure::responded(&KV_NOT_MY_VBUCKET)).is_ok());
    assert_eq!(scene.fail(answered(0xfff2)), Ok(10));
    assert!(scene.fail(Failure::responded(&KV_NOT_MY_VBUCKET)).is_ok());
    assert_eq!(scene.fail(answered(0xfff2)), Ok(10));
    assert_eq!(scene.fail(answered(0xfff2)), Ok(2));
}

#[test]
fn no_specification_makes_it_spin_or_wait_for_ever() {
    for growth in [
        ErrorMapBackoff::Constant,
        ErrorMapBackoff::Linear,
        ErrorMapBackoff::Exponential,
    ] {
        let mut least = scene();
        let mut most = scene();
        for _ in 0..100 {
            assert_eq!(least.fail(directed(0xfff0, spec(growth, 0, 0))), Ok(1));
            let wait = most.fail(directed(0xfff0, spec(growth, u64::MAX, u64::MAX)));
            assert_eq!(wait, Ok(RetryAfter::LIMIT.as_millis()));
        }
        let mut turns = scene();
        for code in (0..100).map(|n| 0xfff0 + n % 2) {
            assert_eq!(turns.fail(directed(code, spec(growth, 9, 0))), Ok(1));
        }
    }
}

#[test]
fn a_peer_s_hint_is_a_floor_here_too() {
    let hinted = answered(0xfff0).with_hint(Duration::from_millis(70));
    assert_eq!(scene().fail(hinted), Ok(70));
}

#[test]
fn the_inner_strategy_may_refuse_what_the_server_asks_for() {
    let limited = BestEffort::default().max_attempts(3).unwrap();
    let mut scene = Scene::new(ErrorMapDirected::new(limited), None);
    assert_eq!(scene.waits(&answered(0xfff0)), [10, 25]);
    let never = from_fn(|_, _| steadfast::strategy::RetryAction::no_retry());
    let mut scene = Scene::new(ErrorMapDirected::new(never), None);
    assert_eq!(scene.waits(&answered(0xfff0)), []);
}

#[test]
fn an_inner_strategy_s_own_state_stays() {
    /// Counts on the token how often it was asked.
    #[derive(Clone)]
    struct Counting(BestEffort);

    impl RetryStrategy for Counting {
        fn refresh_retry_token(
            &self,
            token: RetryToken,
            request: &Request<'_>,
            failure: &Failure,
            world: &dyn World,
        ) -> Decision {
            let count = token.state::<u32>().map_or(1, |count| count + 1);
            assert_eq!(count, request.retries() + 1);
            let token = token.with_state(count);
            self.0.refresh_retry_token(token, request, failure, world)
        }
    }

    let counting = ErrorMapDirected::new(Counting(BestEffort::default()));
    let mut scene = Scene::new(counting, None);
    for _ in 0..5 {
        scene.fail(answered(0xfff1)).unwrap();
    }
}

#[test]
fn a_definition_without_auto_retry_or_with_no_retry_directs_nothing() {
    for (attributes, directs) in [
        (r#""auto-retry""#, true),
        (r#""retry-later""#, false),
        (r#""auto-retry", "no-retry""#, false),
    ] {
        let map = String::from_utf8(MAP.to_vec()).unwrap();
        let map = map.replace(r#""auto-retry", "temp""#, attributes);
        let map = ErrorMap::parse(map.as_bytes()).unwrap();
        let status = Status::from_code(0xfff0);
        let directive = RetryDirective::from_definition(status, map.get(status).unwrap());
        assert_eq!(directive.is_some(), directs, "{attributes}");
    }
}

#[test]
fn its_worst_case_does_not_rely_on_delays_that_the_server_replaces() {
    let limits = Limits {
        timeout: Some(Duration::from_secs(2)),
        ..Limits::default()
    };
    let worst = ErrorMapDirected::default().info().worst_case(&limits);
    assert_eq!((worst.attempts, worst.wall_time), (None, limits.timeout));
    let limited = ErrorMapDirected::new(BestEffort::default().max_attempts(3).unwrap());
    assert_eq!(limited.info().worst_case(&limits).attempts, Some(3));
}

#[test]
fn it_says_what_it_does() {
    struct Shown(ErrorMapDirected);
    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.info().describe(f)
        }
    }
    let shown = Shown(ErrorMapDirected::default()).to_string();
    assert!(
        shown.starts_with("as the server's error map says, else best effort"),
        "{shown}"
    );
}
