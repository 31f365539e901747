//! Worlds of users, values that are not accepted, and what can be read of a retry.
use crate::common::clients::{Body, MiddlewareClient, ReqwestClient, TowerClient, request};
use crate::common::promises::quick;
use crate::common::server::{Server, answer, closed_port, with};
use crate::common::{Client, TestOutcome, get, post};
use crate::integration::ErrorClassifier;
use http::{Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use steadfast::report::Outcome;
use steadfast::strategy::Cause;
use steadfast::world::{Roll, SharedWorld, SystemWorld, Timer, from_sleep};
use steadfast::{Standard, VirtualWorld, World, reason, retry};
use steadfast_http::tower::{HttpRetryLayer, ReplayBody, RetryLayer};
use steadfast_http::{HttpClassifier, HttpRetry};
use tower::{Layer, ServiceExt, service_fn};

/// Notes how long it should wait, and does not.
#[derive(Clone, Default)]
struct Hasty(Arc<Mutex<Vec<Duration>>>);

impl World for Hasty {
    fn now(&self) -> Instant {
        SystemWorld.now()
    }

    fn roll(&self) -> Roll {
        Roll::ZERO
    }
}

impl Timer for Hasty {
    type Sleep = Ready<()>;

    fn sleep(&self, delay: Duration) -> Ready<()> {
        self.0.lock().unwrap().push(delay);
        ready(())
    }
}

async fn waits_as_retry_after_says<C: Client>() {
    for (header, value, delay) in [
        ("retry-after", "7", Duration::from_secs(7)),
        ("retry-after-ms", "250", Duration::from_millis(250)),
    ] {
        let server = Server::start([with(503, header, value)]).await;
        let world = Hasty::default();
        let retry = HttpRetry::guidance().world(world.clone());
        let ended = C::new(retry).send(get(&server.uri())).await;
        assert_eq!(ended, TestOutcome::success(200, 2), "{header}");
        // The dice roll zeros, so the jitter adds nothing to the hint.
        assert_eq!(*world.0.lock().unwrap(), [delay], "{header}");
    }
}

#[tokio::test]
async fn a_client_waits_as_retry_after_says() {
    waits_as_retry_after_says::<TowerClient>().await;
    waits_as_retry_after_says::<ReqwestClient>().await;
    waits_as_retry_after_says::<MiddlewareClient>().await;
}

async fn delays<C: Client>(seed: u64) -> Vec<Duration> {
    let server = Server::start(vec![answer(503); 4]).await;
    let world = Arc::new(VirtualWorld::new().seeded(seed).recording());
    let retry = HttpRetry::guidance().world(Arc::clone(&world));
    let ended = C::new(retry).send(get(&server.uri())).await;
    assert_eq!(ended, TestOutcome::success(200, 5));
    let delay = |outcome| match outcome {
        Outcome::Retry { delay, .. } => delay,
        outcome => panic!("{outcome:?}"),
    };
    let events = world.take_events();
    events
        .into_iter()
        .map(|event| delay(event.outcome))
        .collect()
}

#[tokio::test]
async fn in_a_virtual_world_the_delays_follow_from_the_seed() {
    let tower = delays::<TowerClient>(7).await;
    assert_eq!(tower.len(), 4);
    assert_eq!(tower, delays::<ReqwestClient>(7).await);
    assert_eq!(tower, delays::<MiddlewareClient>(7).await);
    assert_ne!(tower, delays::<TowerClient>(8).await);
}

#[test]
fn the_layers_wait_on_smol() {
    let smol = || from_sleep(smol::Timer::after);
    let attempts = AtomicU32::new(0);
    let attempts: &'static AtomicU32 = Box::leak(Box::new(attempts));
    let once = move || attempts.fetch_add(1, Ordering::Relaxed) == 0;
    let http = service_fn(move |_: Request<ReplayBody<Body>>| {
        let status = if once() { 503 } else { 200 };
        let response = Response::builder().status(status).body(()).unwrap();
        ready(Ok::<_, Infallible>(response))
    });
    let retry = HttpRetry::new_in(smol(), quick()).unwrap();
    let client = HttpRetryLayer::new(retry.clone()).layer(http);
    let response = smol::block_on(client.oneshot(request(get("http://a.example/"))));
    assert_eq!(response.unwrap().status(), 200);
    assert_eq!(attempts.load(Ordering::Relaxed), 2);

    attempts.store(0, Ordering::Relaxed);
    let any = service_fn(move |()| ready(Ok::<_, std::io::Error>(!once())));
    let layer = RetryLayer::new_in(smol(), quick()).unwrap();
    let layer = layer.idempotent(|()| true).accept(|done: &bool| *done);
    assert!(smol::block_on(layer.layer(any).oneshot(())).unwrap());
    assert_eq!(attempts.load(Ordering::Relaxed), 2);
}

async fn a_response_is_retried_by_a_predicate<C: Client>() {
    let pending = || with(200, "x-state", "pending");
    let classifier = || {
        HttpClassifier::default()
            .retry_response(|response| response.header("x-state") == Some("pending"))
    };
    let client = |strategy| C::new(HttpRetry::new(strategy).unwrap().classify(classifier()));

    let server = Server::start([pending(), pending()]).await;
    let ended = client(quick()).send(get(&server.uri())).await;
    assert_eq!(ended, TestOutcome::success(200, 3));

    // A POST was carried out, so it is sent once, and its response is the result.
    let server = Server::start([pending(), pending()]).await;
    let ended = client(quick()).send(post(&server.uri(), b"x")).await;
    assert_eq!((ended.status, ended.attempts), (Some(200), 1));
    assert_eq!(ended.cause, Some(Cause::Unsafe));
    assert_eq!(server.seen().len(), 1);

    // Without a better one, the last response is the result.
    let server = Server::start(vec![pending(); 9]).await;
    let ended = client(quick()).send(get(&server.uri())).await;
    assert_eq!((ended.status, ended.attempts), (Some(200), 5));
    assert_eq!(ended.cause, Some(Cause::AttemptsUsedUp { limit: 5 }));
}

#[tokio::test]
async fn a_response_that_is_not_accepted_is_retried_if_the_request_is_idempotent() {
    a_response_is_retried_by_a_predicate::<TowerClient>().await;
    a_response_is_retried_by_a_predicate::<ReqwestClient>().await;
    a_response_is_retried_by_a_predicate::<MiddlewareClient>().await;
}

#[tokio::test]
async fn the_generic_layer_retries_responses_by_the_same_law() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let service = service_fn(move |()| {
        let call = counted.fetch_add(1, Ordering::Relaxed) + 1;
        ready(Ok::<_, std::io::Error>(call))
    });
    let layer = RetryLayer::new(quick())
        .unwrap()
        .accept(|call: &u32| *call > 2);
    let last = layer.layer(service.clone()).oneshot(()).await.unwrap();
    assert_eq!(last, 1, "not idempotent: the first response is the last");

    calls.store(0, Ordering::Relaxed);
    let layer = layer.idempotent(|()| true);
    assert_eq!(layer.layer(service.clone()).oneshot(()).await.unwrap(), 3);

    calls.store(0, Ordering::Relaxed);
    let never = RetryLayer::new(quick()).unwrap().idempotent(|()| true);
    let never = never.accept(|_: &u32| false);
    let last = never.layer(service).oneshot(()).await.unwrap();
    assert_eq!(last, 5, "the last of five attempts");
}

#[tokio::test]
async fn errors_of_reqwest_are_classified_for_calls_of_ones_own() {
    let send = async |strategy: &Standard, request: reqwest::RequestBuilder, idempotent| {
        retry(strategy)
            .idempotent(idempotent)
            .classify(ErrorClassifier)
            .run(async |_| {
                let copy = request.try_clone().unwrap();
                copy.send().await?.error_for_status()
            })
            .await
    };
    let (client, strategy) = (reqwest::Client::new(), quick());

    let server = Server::start([answer(503), answer(429)]).await;
    let response = send(&strategy, client.get(server.uri()), true).await;
    assert_eq!(response.unwrap().status(), 200);
    assert_eq!(server.seen().len(), 3);

    let server = Server::start([answer(503)]).await;
    let error = send(&strategy, client.post(server.uri()), false).await;
    let error = error.unwrap_err();
    assert!(error.was_refused_for(Cause::Unsafe) && error.is_ambiguous());
    assert_eq!(server.seen().len(), 1);

    let server = Server::start([answer(404)]).await;
    let error = send(&strategy, client.get(server.uri()), true).await;
    assert!(error.unwrap_err().was_refused_for(Cause::NotRetryable));

    let (_held, uri) = closed_port();
    let error = send(&strategy, client.get(uri), true).await.unwrap_err();
    let reasons = error.report().reasons();
    assert_eq!(reasons.times(&reason::NOT_AVAILABLE), 4, "{error:#}");
}

#[tokio::test]
async fn the_budget_of_a_retry_can_be_read() {
    let level = |budget: Option<steadfast::Budget>| budget.unwrap().level();
    let server = Server::start([answer(503)]).await;
    let retry = HttpRetry::guidance().world(Hasty::default());
    TowerClient::new(retry.clone())
        .send(get(&server.uri()))
        .await;
    assert_eq!(level(retry.budget()), 496);
    assert_eq!(level(retry.budget_of("any.example:80")), 496);

    let server = Server::start([answer(503)]).await;
    let retry = HttpRetry::per_host(Standard::guidance).unwrap();
    let retry = retry.world(SharedWorld::new(Hasty::default()));
    TowerClient::new(retry.clone())
        .send(get(&server.uri()))
        .await;
    let address = server.uri();
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    assert_eq!(level(retry.budget_of(address)), 496);
    assert_eq!(level(retry.budget()), 500, "of other hosts");
}

#[tokio::test]
async fn the_error_of_the_client_can_be_found_in_the_result() {
    let (_held, uri) = closed_port();
    let client = TowerClient::new(HttpRetry::new(quick()).unwrap());
    let error = client.0.oneshot(request(get(&uri))).await.unwrap_err();
    let last = error.last_error().unwrap();
    let hyper = last.downcast_ref::<hyper_util::client::legacy::Error>();
    assert!(hyper.unwrap().is_connect());
}
