//! Tests that every integration has to pass.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steadfast::strategy::{Admission, Cause, Decision, Refusal, RetryToken, WhenTooLate};
use steadfast::{Backoff, Failure, Request, RetryStrategy, Standard, World};
use steadfast_http::{HttpClassifier, HttpRetry};

use super::server::{Server, ServerAction, answer, closed_port, once_each, with};
use super::{Client, TestOutcome, TestRequest, get, post};

/// The guidance with delays of a millisecond.
pub fn quick() -> Standard {
    let backoff = Backoff::constant(Duration::from_millis(1));
    Standard::builder().backoff(backoff).build().unwrap()
}

pub fn client<C: Client>() -> C {
    C::new(HttpRetry::new(quick()).unwrap())
}

/// Runs all of them, each with its own server.
pub async fn hold<C: Client>() {
    first_try_success::<C>().await;
    a_post_is_sent_again_only_if_it_was_not_applied::<C>().await;
    a_post_that_was_read_is_not_sent_again::<C>().await;
    a_post_with_a_key_is_sent_again_with_the_same_body::<C>().await;
    a_post_that_is_declared_idempotent_is_sent_again::<C>().await;
    a_get_survives_a_cut_connection::<C>().await;
    no_server_means_nothing_was_sent::<C>().await;
    a_final_response_is_returned::<C>().await;
    the_deadline_holds::<C>().await;
    an_attempt_that_hangs_is_followed_by_another::<C>().await;
    hostile_hints::<C>().await;
    twenty_at_once_leave_the_bucket_where_it_was::<C>().await;
    a_classifier_that_panics_ends_the_request::<C>().await;
    a_rule_of_idempotency_that_panics_ends_the_request::<C>().await;
    one_budget_or_one_per_host::<C>().await;
    every_preset_survives_throttling::<C>().await;
    a_request_that_is_shed_is_not_sent::<C>().await;
    a_brake_sheds_requests_to_its_host_only::<C>().await;
}

async fn first_try_success<C: Client>() {
    let server = Server::start([]).await;
    let ended = client::<C>().send(post(&server.uri(), b"x")).await;
    assert_eq!(ended, TestOutcome::success(200, 1));
    assert_eq!(server.seen().len(), 1);
}

async fn a_post_is_sent_again_only_if_it_was_not_applied<C: Client>() {
    for (status, again) in [
        (425, true),
        (429, true),
        (408, false),
        (500, false),
        (503, false),
    ] {
        let server = Server::start([answer(status)]).await;
        let ended = client::<C>().send(post(&server.uri(), b"body")).await;
        let sent: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
        if again {
            assert_eq!(ended, TestOutcome::success(200, 2), "{status}");
            assert_eq!(sent, [b"body", b"body"], "{status}");
        } else {
            assert_eq!(ended.status, Some(status));
            assert_eq!(ended.cause, Some(Cause::Unsafe), "{status}");
            assert_eq!(ended.ambiguous, status >= 500, "{status}");
            assert_eq!(sent, [b"body"], "{status}");
        }
    }
}

async fn a_post_that_was_read_is_not_sent_again<C: Client>() {
    for act in [ServerAction::CloseRead, ServerAction::CloseUnread] {
        let server = Server::start([act.clone()]).await;
        let ended = client::<C>().send(post(&server.uri(), b"body")).await;
        assert_eq!(ended.cause, Some(Cause::Unsafe), "{act:?}: {ended:?}");
        assert!(ended.ambiguous, "{act:?}");
        let read = usize::from(matches!(act, ServerAction::CloseRead));
        assert_eq!(server.seen().len(), read, "{act:?}");
    }
}

async fn a_post_with_a_key_is_sent_again_with_the_same_body<C: Client>() {
    let server = Server::start([ServerAction::CloseRead, answer(503)]).await;
    let ask = TestRequest {
        headers: vec![("idempotency-key", "k-1")],
        ..post(&server.uri(), b"pay 5")
    };
    assert_eq!(client::<C>().send(ask).await, TestOutcome::success(200, 3));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for request in seen {
        assert_eq!(request.body, b"pay 5");
        assert!(request.head.contains("idempotency-key: k-1"));
    }
}

async fn a_post_that_is_declared_idempotent_is_sent_again<C: Client>() {
    let retry = HttpRetry::new(quick()).unwrap();
    let retry = retry.also_idempotent(|request| request.path == "/search");
    let client = C::new(retry);
    for (path, attempts) in [("search?q=1", 2), ("order", 1)] {
        let server = Server::start([answer(503)]).await;
        let ask = post(&format!("{}{path}", server.uri()), b"body");
        assert_eq!(client.send(ask).await.attempts, attempts, "{path}");
        assert_eq!(server.seen().len(), attempts as usize, "{path}");
    }
}

async fn a_get_survives_a_cut_connection<C: Client>() {
    let server = Server::start([ServerAction::CloseRead, ServerAction::CloseUnread]).await;
    assert_eq!(
        client::<C>().send(get(&server.uri())).await,
        TestOutcome::success(200, 3)
    );
}

/// Nothing was sent, so even a POST is retried until the attempts are used up.
async fn no_server_means_nothing_was_sent<C: Client>() {
    let (_held, uri) = closed_port();
    let ended = client::<C>().send(post(&uri, b"body")).await;
    assert_eq!(ended.cause, Some(Cause::AttemptsUsedUp { limit: 5 }));
    assert!(!ended.ambiguous);
    assert!(ended.text.contains("NOT_AVAILABLE"), "{}", ended.text);
}

async fn a_final_response_is_returned<C: Client>() {
    for status in [400, 401, 404, 409, 501] {
        let server = Server::start([answer(status)]).await;
        let ended = client::<C>().send(get(&server.uri())).await;
        assert_eq!((ended.status, ended.attempts), (Some(status), 1));
        assert_eq!(ended.cause, Some(Cause::NotRetryable), "{status}");
    }
}

async fn the_deadline_holds<C: Client>() {
    // A retry that would miss the deadline is not waited for, unless that is asked for.
    for patient in [false, true] {
        let server = Server::start([with(503, "retry-after", "3600")]).await;
        let strategy = quick();
        let mut retry = HttpRetry::new(strategy.clone())
            .unwrap()
            .timeout(Duration::from_secs(2));
        if patient {
            retry = retry
                .timeout(Duration::from_millis(300))
                .when_too_late(WhenTooLate::Wait);
        }
        let began = Instant::now();
        let ended = C::new(retry).send(get(&server.uri())).await;
        let took = began.elapsed();
        if patient {
            assert!(took >= Duration::from_millis(300), "{took:?}");
            assert!(took < Duration::from_secs(5), "{took:?}");
        } else {
            assert!(took < Duration::from_secs(2), "{took:?}");
            assert_eq!(
                (ended.status, ended.cause),
                (Some(503), Some(Cause::Deadline))
            );
        }
        assert_eq!(server.seen().len(), 1, "{ended:?}");
        assert_eq!(strategy.budget().level(), 500, "nothing is paid");
    }

    let server = Server::start([ServerAction::Hang]).await;
    let retry = HttpRetry::new(quick())
        .unwrap()
        .timeout(Duration::from_millis(300));
    let ended = C::new(retry).send(post(&server.uri(), b"x")).await;
    assert_eq!((ended.status, ended.cause), (None, Some(Cause::Deadline)));
    assert!(ended.ambiguous);
}

async fn an_attempt_that_hangs_is_followed_by_another<C: Client>() {
    let server = Server::start([ServerAction::Hang]).await;
    let strategy = quick();
    let retry = HttpRetry::new(strategy.clone()).unwrap();
    let retry = retry.attempt_timeout(Duration::from_secs(1));
    let ended = C::new(retry).send(get(&server.uri())).await;
    assert_eq!(ended, TestOutcome::success(200, 2));
    // A timeout costs ten, and the success gives one back.
    assert_eq!(strategy.budget().level(), 491);
}

/// A hint that is too long ends the request; an invalid one is ignored.
async fn hostile_hints<C: Client>() {
    let digits = "9".repeat(10_000);
    for (value, obeyed) in [
        ("-1", false),
        ("1e9", false),
        ("Thu, 01 Jan 1970 00:00:00 GMT", false),
        ("Fri, 31 Dec 9999 23:59:59 GMT", true),
        ("18446744073709551615", true),
        (&*digits, true),
    ] {
        let server = Server::start([with(503, "retry-after", value)]).await;
        let ended = client::<C>().send(get(&server.uri())).await;
        if obeyed {
            assert_eq!(ended.status, Some(503));
            assert_eq!(ended.cause, Some(Cause::HintTooLong));
        } else {
            assert_eq!(ended, TestOutcome::success(200, 2), "{value}");
        }
    }
}

/// Each request has its own token.
async fn twenty_at_once_leave_the_bucket_where_it_was<C: Client>() {
    let server = Server::start([once_each(answer(500))]).await;
    let backoff = Backoff::constant(Duration::from_millis(30));
    let builder = Standard::aws_2_1().to_builder().backoff(backoff);
    let strategy = builder.build().unwrap();
    let client = Arc::new(C::new(HttpRetry::new(strategy.clone()).unwrap()));
    let mut running = Vec::new();
    for path in 0..20 {
        let (client, uri) = (Arc::clone(&client), format!("{}{path}", server.uri()));
        running.push(async move { client.send(get(&uri)).await });
    }
    for ended in all(running).await {
        assert_eq!(ended, TestOutcome::success(200, 2));
    }
    assert_eq!(server.seen().len(), 40);
    assert_eq!(strategy.budget().level(), 500);
}

async fn a_classifier_that_panics_ends_the_request<C: Client>() {
    let server = Server::start([answer(500)]).await;
    let classifier = HttpClassifier::default().also(|outcome| -> Option<Result<(), Failure>> {
        match outcome.status()?.as_u16() {
            500 => std::panic::resume_unwind(Box::new("a bug")),
            _ => None,
        }
    });
    let retry = HttpRetry::new(quick()).unwrap().classify(classifier);
    let ended = C::new(retry).send(get(&server.uri())).await;
    assert_eq!((ended.status, ended.attempts), (Some(500), 1));
    assert_eq!(ended.cause, Some(Cause::StrategyFailed));
}

async fn a_rule_of_idempotency_that_panics_ends_the_request<C: Client>() {
    let retry = HttpRetry::new(quick()).unwrap();
    let retry = retry.also_idempotent(|_| std::panic::resume_unwind(Box::new("a bug")));
    let client = C::new(retry);
    for action in [answer(429), ServerAction::CloseRead] {
        let server = Server::start([action]).await;
        let ended = client.send(post(&server.uri(), b"body")).await;
        assert_eq!(ended.attempts, 1);
        assert_eq!(ended.cause, Some(Cause::StrategyFailed));
        assert_eq!(server.seen().len(), 1);
    }
    let server = Server::start([]).await;
    let ended = client.send(post(&server.uri(), b"body")).await;
    assert_eq!(ended, TestOutcome::success(200, 1));
}

async fn one_budget_or_one_per_host<C: Client>() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let retry = HttpRetry::per_host({
        let made = Arc::clone(&made);
        move || {
            let strategy = quick();
            made.lock().unwrap().push(strategy.clone());
            strategy
        }
    });
    let client = C::new(retry.unwrap());
    for _ in 0..2 {
        let server = Server::start([answer(500), answer(500)]).await;
        client.send(get(&server.uri())).await;
    }
    let level = |strategy: &Standard| strategy.budget().level();
    let levels: Vec<_> = made.lock().unwrap().iter().map(level).collect();
    assert_eq!(
        levels,
        [500, 491, 491],
        "the first is for hosts without room"
    );

    let shared = quick();
    for _ in 0..2 {
        let server = Server::start([answer(500), answer(500)]).await;
        let client = C::new(HttpRetry::new(shared.clone()).unwrap());
        client.send(get(&server.uri())).await;
    }
    assert_eq!(level(&shared), 482);
}

async fn every_preset_survives_throttling<C: Client>() {
    let mut running = Vec::new();
    for preset in [
        HttpRetry::guidance,
        HttpRetry::aws_2_0,
        HttpRetry::aws_2_1,
        HttpRetry::adaptive,
    ] {
        running.push(async move {
            let server = Server::start([answer(429)]).await;
            C::new(preset()).send(post(&server.uri(), b"x")).await
        });
    }
    for ended in all(running).await {
        assert_eq!(ended, TestOutcome::success(200, 2));
    }
}

/// Awaits all concurrently, in this task.
pub async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut ended: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, slot) in futures.iter_mut().zip(&mut ended) {
            if slot.is_none()
                && let std::task::Poll::Ready(done) = future.as_mut().poll(cx)
            {
                *slot = Some(done);
            }
        }
        match ended.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    ended.into_iter().map(Option::unwrap).collect()
}

/// Sheds every request.
struct Shedding;

impl RetryStrategy for Shedding {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Admission {
        Admission::Refused(Refusal::shed(Duration::from_secs(2)))
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

async fn a_request_that_is_shed_is_not_sent<C: Client>() {
    let server = Server::start([]).await;
    let client = C::new(HttpRetry::within(Duration::from_secs(10), Shedding));
    for ask in [get(&server.uri()), post(&server.uri(), b"body")] {
        let ended = client.send(ask).await;
        assert_eq!((ended.status, ended.attempts), (None, 0), "{ended:?}");
        assert_eq!(ended.cause, Some(Cause::Shed));
        assert_eq!(ended.would_wait, Some(Duration::from_secs(2)));
        assert!(!ended.ambiguous);
        let said = "nothing was sent  LOAD_SHED; try again in 2.00 s";
        assert!(ended.text.contains(said), "{}", ended.text);
    }
    assert!(server.seen().is_empty(), "a request was sent");
}

async fn a_brake_sheds_requests_to_its_host_only<C: Client>() {
    let hanging = Server::start(vec![ServerAction::Hang; 100]).await;
    let healthy = Server::start([]).await;
    let retry = HttpRetry::fleet().attempt_timeout(Duration::from_millis(20));
    let client = C::new(retry);
    let mut shed = None;
    for _ in 0..100 {
        let ended = client.send(get(&hanging.uri())).await;
        if ended.cause == Some(Cause::Shed) && ended.attempts == 0 {
            shed = Some(ended);
            break;
        }
    }
    let shed = shed.expect("a host that never responds");
    assert!(shed.would_wait.is_some() && !shed.ambiguous);
    let ended = client.send(get(&healthy.uri())).await;
    assert_eq!(ended, TestOutcome::success(200, 1));
}
