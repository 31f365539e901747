//! tonic's calls over real sockets: under the layer around a channel, and as single
//! calls with the classifier.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic and read the clock"
)]

mod client;
mod server;

use std::error::Error as _;
use std::time::{Duration, Instant};

use client::{Call, Event, Layered, OneByOne};
use server::{Server, ServerAction, Unreadable};
use steadfast::Stage;
use steadfast::strategy::Cause;
use steadfast_http::tower::AnyError;
use tonic::Code;

/// Checks all promises with one kind of client.
async fn holds<C: Call>() {
    a_first_try_costs_one_call::<C>().await;
    pushback_is_the_least_delay::<C>().await;
    retry_info_is_the_least_delay::<C>().await;
    a_negative_pushback_forbids_a_retry::<C>().await;
    a_hostile_pushback_ends_the_call_at_once::<C>().await;
    a_call_that_is_not_idempotent_is_retried_only_if_it_was_not_applied::<C>().await;
    a_final_status_is_handed_on::<C>().await;
    a_cut_connection_is_ambiguous::<C>().await;
    no_server_means_nothing_was_sent::<C>().await;
    a_server_that_goes_away_and_comes_back::<C>().await;
}

#[tokio::test]
async fn every_promise_holds_under_the_layer() {
    holds::<Layered>().await;
}

#[tokio::test]
async fn every_promise_holds_call_by_call() {
    holds::<OneByOne>().await;
}

async fn a_first_try_costs_one_call<C: Call>() {
    let server = Server::start([]).await;
    let (answer, events) = C::greet(&server.uri(), false).await;
    assert_eq!(answer.unwrap(), "hello ada");
    assert!(events.is_empty());
    assert_eq!(server.calls(), 1);
}

async fn pushback_is_the_least_delay<C: Call>() {
    let act = ServerAction::status(Code::Unavailable).pushback("200");
    let server = Server::start([act]).await;
    let began = Instant::now();
    let (answer, events) = C::greet(&server.uri(), true).await;
    assert_eq!(answer.unwrap(), "hello ada");
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert!(
        matches!(events[..], [Event { waits: Some(delay), .. }] if delay >= Duration::from_millis(200))
    );
    assert_eq!(server.calls(), 2);
}

async fn retry_info_is_the_least_delay<C: Call>() {
    let act = ServerAction::status(Code::Unavailable).retry_info(0, 150_000_000);
    let server = Server::start([act]).await;
    let (answer, events) = C::greet(&server.uri(), true).await;
    assert_eq!(answer.unwrap(), "hello ada");
    assert!(
        matches!(events[..], [Event { waits: Some(delay), .. }] if delay >= Duration::from_millis(150))
    );
}

async fn a_negative_pushback_forbids_a_retry<C: Call>() {
    for value in ["-1", "soon", "1.5"] {
        let server = Server::start([ServerAction::status(Code::Unavailable).pushback(value)]).await;
        let (answer, events) = C::greet(&server.uri(), true).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable, "{value}");
        assert_eq!(events[0].refused, Some(Cause::NotRetryable), "{value}");
        let note = "gRPC UNAVAILABLE, the peer forbids a retry in grpc-retry-pushback-ms";
        assert_eq!(events[0].note.as_deref(), Some(note));
        assert_eq!(server.calls(), 1, "{value}");
    }
}

async fn a_hostile_pushback_ends_the_call_at_once<C: Call>() {
    for value in ["9".repeat(10_000), u64::MAX.to_string()] {
        let server =
            Server::start([ServerAction::status(Code::Unavailable).pushback(&value)]).await;
        let (answer, events) = C::greet(&server.uri(), true).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
        assert_eq!(events[0].refused, Some(Cause::HintTooLong));
        assert_eq!(server.calls(), 1);
    }
    // Invalid details are noted.
    let act = ServerAction::status(Code::Unavailable).details(b"\xff\xff\xff\xff");
    let server = Server::start([act]).await;
    let (answer, events) = C::greet(&server.uri(), true).await;
    assert_eq!(answer.unwrap(), "hello ada");
    let note = "gRPC UNAVAILABLE, no readable delay in grpc-status-details-bin";
    assert_eq!(events[0].note.as_deref(), Some(note));
}

async fn a_call_that_is_not_idempotent_is_retried_only_if_it_was_not_applied<C: Call>() {
    let unavailable = ServerAction::status(Code::Unavailable).pushback("1");
    let late = ServerAction::status(Code::DeadlineExceeded);
    let full = ServerAction::status(Code::ResourceExhausted);
    let throttled = ServerAction::status(Code::ResourceExhausted).retry_info(0, 1_000_000);
    for (act, calls, stage) in [
        (unavailable, 1, Stage::Inconclusive),
        (late, 1, Stage::Inconclusive),
        (full, 1, Stage::Responded),
        (throttled, 2, Stage::Responded),
    ] {
        let server = Server::start([act.clone()]).await;
        let (answer, events) = C::greet(&server.uri(), false).await;
        assert_eq!(answer.is_ok(), calls == 2, "{act:?}");
        assert_eq!((server.calls(), events[0].stage), (calls, stage), "{act:?}");
    }
}

async fn a_final_status_is_handed_on<C: Call>() {
    for code in [
        Code::InvalidArgument,
        Code::NotFound,
        Code::Aborted,
        Code::Internal,
    ] {
        let server = Server::start([ServerAction::status(code)]).await;
        let (answer, events) = C::greet(&server.uri(), true).await;
        let status = answer.unwrap_err();
        assert_eq!((status.code(), status.message()), (code, "as told"));
        assert_eq!(events[0].refused, Some(Cause::NotRetryable), "{code:?}");
        assert_eq!(server.calls(), 1, "{code:?}");
    }
}

async fn a_cut_connection_is_ambiguous<C: Call>() {
    for (idempotent, calls) in [(true, 2), (false, 1)] {
        let server = Server::start([ServerAction::Cut]).await;
        let (answer, events) = C::greet(&server.uri(), idempotent).await;
        assert_eq!(answer.is_ok(), idempotent);
        assert_eq!((server.calls(), events[0].stage), (calls, Stage::InFlight));
    }
}

/// Nothing was sent, so even a call that is not idempotent is retried.
async fn no_server_means_nothing_was_sent<C: Call>() {
    let (_held, uri) = server::closed_port();
    let (answer, events) = C::greet(&uri, false).await;
    assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
    assert_eq!(events.len(), 5);
    assert_eq!(events[4].refused, Some(Cause::AttemptsUsedUp { limit: 5 }));
    assert!(
        events.iter().all(|event| event.stage == Stage::NotSent),
        "{events:?}"
    );
}

async fn a_server_that_goes_away_and_comes_back<C: Call>() {
    let (held, uri) = server::closed_port();
    let call = tokio::spawn(async move { C::greet_patiently(&uri).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let server = Server::listen(held.listen(64).unwrap(), []);
    let (answer, events) = call.await.unwrap();
    assert_eq!(answer.unwrap(), "hello ada");
    assert!(!events.is_empty());
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn the_status_of_a_call_without_a_response_has_the_history_as_its_source() {
    let (_held, uri) = server::closed_port();
    let status = Layered::greet(&uri, false).await.0.unwrap_err();
    let source = status.source().and_then(|source| source.downcast_ref());
    let error: &steadfast::Error<AnyError> = source.unwrap();
    assert_eq!(error.report().attempts(), 5);
    let mut next = error.source();
    while next.is_some_and(|error| !error.is::<tonic::ConnectError>()) {
        next = next.and_then(|error| error.source());
    }
    assert!(
        next.is_some(),
        "the error of the channel is not in the chain"
    );
}

/// The layer returns the response before its trailers arrive.
#[tokio::test]
async fn a_status_in_the_trailers_is_seen_call_by_call_and_not_by_the_layer() {
    let server = Server::start([ServerAction::InTrailers(Code::Unavailable)]).await;
    let (answer, events) = OneByOne::greet(&server.uri(), true).await;
    assert_eq!(answer.unwrap(), "hello ada");
    assert_eq!((server.calls(), events.len()), (2, 1));

    let server = Server::start([ServerAction::InTrailers(Code::Unavailable)]).await;
    let (answer, events) = Layered::greet(&server.uri(), true).await;
    assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
    assert_eq!((server.calls(), events.len()), (1, 0));
}

/// A server that has responded has carried out the call, whatever it says afterwards.
#[tokio::test]
async fn a_call_that_is_throttled_after_its_response_may_have_been_applied() {
    let throttled = || [ServerAction::ThrottledAfterMessage];
    let server = Server::start(throttled()).await;
    let (answer, events) = OneByOne::greet(&server.uri(), false).await;
    assert_eq!(answer.unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(server.calls(), 1, "{events:?}");
    assert_eq!(events[0].stage, Stage::Inconclusive);

    let server = Server::start(throttled()).await;
    let (answer, _) = OneByOne::greet(&server.uri(), true).await;
    assert_eq!((answer.unwrap().as_str(), server.calls()), ("hello ada", 2));
}

/// tonic's client reports such a response as `OUT_OF_RANGE` or `UNIMPLEMENTED`, as a server
/// does that rejects a call.
#[tokio::test]
async fn a_call_whose_response_cannot_be_read_may_have_been_applied() {
    for (why, code) in [
        (Unreadable::TooLong, Code::OutOfRange),
        (Unreadable::Encoded, Code::Unimplemented),
    ] {
        let server = Server::start([ServerAction::Unreadable(why)]).await;
        let (answer, events) = OneByOne::greet(&server.uri(), false).await;
        assert_eq!(answer.unwrap_err().code(), code);
        assert_eq!(server.calls(), 1, "{why:?}");
        assert_eq!(events[0].refused, Some(Cause::NotRetryable), "{why:?}");
        assert_eq!(events[0].stage, Stage::Inconclusive, "{why:?}");
    }
}

#[tokio::test]
async fn the_server_gets_the_remaining_time() {
    let server = Server::start([ServerAction::status(Code::Unavailable)]).await;
    let (answer, _) = OneByOne::greet_within(&server.uri(), Duration::from_secs(60)).await;
    answer.unwrap();
    let timeouts = server.timeouts();
    assert_eq!(timeouts.len(), 2);
    assert!(timeouts.iter().all(Option::is_some), "{timeouts:?}");
}
