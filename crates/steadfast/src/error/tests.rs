use std::time::Duration;

use super::*;
use crate::call::Call;
use crate::failure::{Failure, Stage};
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::{NOT_AVAILABLE, SOCKET_CLOSED_WHILE_IN_FLIGHT, THROTTLED};
use crate::strategy::BestEffort;
use crate::world::VirtualWorld;

const MS: Duration = Duration::from_millis(1);

/// The error of a call whose attempts fail so, 100 ms apart.
fn error(call: Call, failures: impl IntoIterator<Item = Failure>) -> Error<&'static str> {
    let world = VirtualWorld::new();
    let mut request = Orchestrator::new(BestEffort::default(), call);
    let mut step = request.begin(&world);
    let mut failures = failures.into_iter();
    loop {
        step = match step {
            Step::Attempt => {
                world.advance(100 * MS);
                request.handle_failure(failures.next().expect("a failure"), &world)
            }
            Step::Wait { delay, .. } => {
                world.advance(delay);
                request.handle_waited(&world)
            }
            Step::GiveUp(_) => return Error::new(request.take_report(), Some("no luck")),
            other => panic!("{other:?}"),
        };
    }
}

/// A final response is not in the history. Nothing before it says what it means.
#[test]
fn a_request_that_got_a_final_response_is_never_called_unsent_or_unapplied() {
    for failures in [0, 1] {
        let world = VirtualWorld::new();
        let mut request = Orchestrator::new(BestEffort::default(), Call::new("put"));
        let mut step = request.begin(&world);
        for _ in 0..failures {
            assert!(matches!(step, Step::Attempt));
            let _ = request.handle_failure(Failure::not_sent(&NOT_AVAILABLE), &world);
            world.advance(100 * MS);
            step = request.handle_waited(&world);
        }
        request.handle_final_response(Stage::Responded, &world);
        let error = Error::new(request.take_report(), Some("no such table"));
        assert!(!error.to_string().contains("was not applied"), "{error}");
        let failure = error.to_failure();
        assert_eq!(
            (failure.stage, failure.safety),
            (Stage::Responded, Safety::No)
        );
    }
}

#[test]
fn a_response_whose_error_says_maybe_is_not_called_unapplied() {
    let maybe = throttled().with_safety(Safety::Maybe);
    let text = error(Call::new("debit"), [maybe]).to_string();
    assert!(!text.contains("was not applied"), "{text}");
}

fn throttled() -> Failure {
    Failure::responded(&THROTTLED)
        .with_peer("127.0.0.1:11210")
        .with_note("answered 429")
}

#[test]
fn one_line_says_what_happened_whether_it_may_have_been_applied_and_why() {
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT).with_peer("127.0.0.1:11211");
    let error = error(Call::new("upsert"), [throttled(), throttled(), cut]);
    assert_eq!(
        error.to_string(),
        "upsert failed, may have been applied: 3 attempts, THROTTLED ×2, \
         SOCKET_CLOSED_WHILE_IN_FLIGHT; last node 127.0.0.1:11211; not retried: a retry could \
         apply it twice: the request is not idempotent: no luck"
    );
}

#[test]
fn a_timeout_says_after_how_long_and_that_nothing_was_applied_if_that_is_sure() {
    let call = Call::new("upsert").service("kv").timeout(250 * MS);
    let error = error(call, std::iter::repeat(throttled()));
    assert_eq!(
        error.to_string(),
        "kv upsert timed out after 303 ms, was not applied: 3 attempts, THROTTLED ×3; \
         last node 127.0.0.1:11210; not retried: the deadline leaves no time for a retry: no luck"
    );
}

#[test]
fn in_full_it_has_a_line_for_each_attempt_and_counts_those_left_out() {
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let elsewhere = throttled().with_peer("127.0.0.1:11211");
    let failures = [throttled(), elsewhere].into_iter().cycle().take(20);
    let text = format!("{:#}", error(Call::new("upsert"), failures.chain([cut])));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "upsert failed, may have been applied");
    assert_eq!(
        lines[1],
        "  strategy  best effort (backoff 1ms × 2ⁿ up to 500ms)   not idempotent"
    );
    assert_eq!(
        lines[2],
        "  #1       0 ms  127.0.0.1:11210  answered 429  THROTTLED  retry in 1 ms"
    );
    assert_eq!(lines[10], "  …     5 more");
    let unsafe_to_retry = "a retry could apply it twice: the request is not idempotent";
    assert!(lines[18].ends_with(&format!("not retried: {unsafe_to_retry}")));
    assert_eq!(lines[19], "  error     no luck");
    assert_eq!(lines.len(), 20);
}

#[test]
fn after_the_first_attempts_that_failed_alike_share_a_line_which_says_how_many_and_from_when_to_when()
 {
    let call = || Call::new("upsert").timeout(Duration::from_secs(60));
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let failures = std::iter::repeat_n(throttled(), 20).chain([cut]);
    let text = format!("{:#}", error(call(), failures));
    let lines: Vec<&str> = text.lines().collect();
    for (line, delay) in [(2, "1 ms"), (3, "2 ms"), (4, "4 ms")] {
        assert!(
            lines[line].ends_with(&format!("THROTTLED  retry in {delay}")),
            "{text}"
        );
    }
    assert_eq!(
        lines[5],
        "  #4 to #20  407 ms to 7.51 s  127.0.0.1:11210  answered 429  THROTTLED ×17  \
         the last retry in 500 ms"
    );
    assert!(
        lines[6].starts_with("  #21    8.11 s  bytes may have left"),
        "{text}"
    );
    assert_eq!(lines.len(), 8);
}

#[test]
fn on_one_line_the_report_has_every_attempt_and_in_full_the_error_has_its_causes() {
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let failures = std::iter::repeat_n(throttled(), 5).chain([cut]);
    let (report, _) = error(Call::new("upsert"), failures).into_parts();
    let text = report.to_string();
    assert!(
        text.contains(
            "; attempts 4 to 5 until 415 ms: 127.0.0.1:11210, answered 429, THROTTLED ×2, "
        ),
        "{text}"
    );
    let cause = anyhow::anyhow!("no such host").context("cannot connect");
    let text = format!("{:#}", Error::from_parts(report, Some(cause)));
    assert!(
        text.ends_with("\n  error     cannot connect: no such host"),
        "{text}"
    );
}

#[cfg(feature = "json")]
#[test]
fn the_error_as_json() {
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let failures = std::iter::repeat_n(throttled(), 5).chain([cut]);
    let json = error(Call::new("upsert"), failures).to_json();
    assert_eq!(json["operation"], "upsert");
    assert_eq!(json["verdict"], "failed");
    assert_eq!(json["ambiguous"], true);
    assert_eq!(json["attempts"], 6);
    assert_eq!(json["retries"], 5);
    assert_eq!(json["retry_reasons"], serde_json::json!(["THROTTLED"]));
    assert_eq!(json["refusal"]["cause"], "unsafe");
    assert_eq!(json["history"][0]["decided"]["retry_after_us"], 1000);
    assert_eq!(json["history"][0]["times"], 1);
    assert_eq!(json["history"][3]["attempt"], 5);
    assert_eq!(json["history"][3]["times"], 2);
    assert_eq!(json["history"][0]["peer"], "127.0.0.1:11210");
    assert_eq!(json["history"][4]["decided"]["refused"], "unsafe");
    assert_eq!(json["error"], "no luck");
}

#[test]
fn an_error_taken_apart_and_put_together_with_another_keeps_its_story() {
    let whole = error(
        Call::new("get"),
        [Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT)],
    );
    let said = whole.to_string();
    let (report, last) = whole.into_parts();
    assert_eq!(last, Some("no luck"));
    let other = Error::from_parts(report, Some(7));
    assert_eq!(other.last_error(), Some(&7));
    assert_eq!(other.to_string(), said.replace("no luck", "7"));
}
