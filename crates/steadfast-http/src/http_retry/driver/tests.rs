use std::cell::Cell;
use std::convert::Infallible;
use std::task::Waker;

use http::Response;
use steadfast::strategy::{RetryAction, StrategyExt, from_async_fn};
use steadfast::{Backoff, Standard, VirtualWorld};

use super::*;

/// A request that counts what it is told.
#[derive(Default)]
struct Asked {
    failed: Cell<u32>,
    retried: Cell<u32>,
}

impl SentRequest<Response<()>, Infallible> for Asked {
    fn address(&self) -> String {
        "localhost:80".to_owned()
    }

    fn redirects(&self, _: &Result<Response<()>, Infallible>, _: Redirects) -> Redirects {
        Redirects::None
    }

    fn lost(&self) -> Option<LostBody> {
        None
    }

    fn failed(&self) {
        self.failed.set(self.failed.get() + 1);
    }

    fn retried(&self) {
        self.retried.set(self.retried.get() + 1);
    }
}

fn put(
    world: VirtualWorld,
    strategy: impl RetryStrategy + 'static,
) -> HttpDriver<Response<()>, Infallible> {
    let headers = HeaderMap::new();
    let head = RequestHead::new(&Method::PUT, "/", &headers);
    let retry = HttpRetry::new_in(world, strategy).unwrap();
    retry.driver(&head, false, String::new)
}

fn three_attempts() -> Standard {
    let builder = Standard::builder().backoff(Backoff::constant(Duration::from_secs(1)));
    builder.max_attempts(3).build().unwrap()
}

fn unavailable() -> Option<Result<Response<()>, Infallible>> {
    Some(Ok(Response::builder().status(503).body(()).unwrap()))
}

/// The connection may read a body to its end while a retry is being decided.
#[test]
fn a_request_whose_body_is_lost_before_a_retry_is_not_tried_again() {
    let asked = Asked::default();
    let mut driver = put(VirtualWorld::new(), three_attempts());
    let mut cx = Context::from_waker(Waker::noop());
    driver.begin();
    driver.attempt();
    assert!(driver.end(unavailable(), &asked).is_none());
    // The wait of a virtual world ends at once.
    assert_eq!(driver.poll_next(&mut cx, &asked), Poll::Ready(true));
    driver.attempt();
    driver.fail_unmade(&asked);
    assert_eq!(driver.poll_next(&mut cx, &asked), Poll::Ready(false));
    let error = driver.give_up().unwrap_err();
    assert_eq!(error.report().attempts(), 2);
    let text = format!("{error:#}");
    assert!(text.contains("the body cannot be sent again"), "{text}");
}

/// Otherwise each request that waits would hold a connection.
#[test]
fn a_failed_response_is_dropped_as_soon_as_a_retry_is_granted_and_the_last_is_kept() {
    let asked = Asked::default();
    let mut driver = put(VirtualWorld::new(), three_attempts());
    let mut cx = Context::from_waker(Waker::noop());
    driver.begin();
    for attempt in 1..=3 {
        driver.attempt();
        assert!(driver.end(unavailable(), &asked).is_none());
        assert_eq!(asked.failed.get(), attempt);
        assert_eq!(driver.last.is_some(), attempt == 3);
        assert_eq!(asked.retried.get(), attempt.min(2));
        assert_eq!(driver.poll_next(&mut cx, &asked), Poll::Ready(attempt < 3));
    }
    assert_eq!(driver.give_up().unwrap().status(), 503);
}

/// While the strategy asks another service, nobody knows whether the response is the last.
#[test]
fn a_failed_response_is_kept_while_the_strategy_decides() {
    for granted in [true, false] {
        let asks = from_async_fn(move |_, _| async move {
            tokio::task::yield_now().await;
            match granted {
                true => RetryAction::Retry(Duration::from_secs(1)),
                false => RetryAction::DoNotRetry { raise: None },
            }
        });
        let asked = Asked::default();
        let mut driver = put(VirtualWorld::new(), asks.max_attempts(2).unwrap());
        let mut cx = Context::from_waker(Waker::noop());
        driver.begin();
        driver.attempt();
        assert!(driver.end(unavailable(), &asked).is_none());
        assert!(driver.poll_next(&mut cx, &asked).is_pending());
        assert!(driver.last.is_some(), "the strategy decides");
        assert_eq!(driver.poll_next(&mut cx, &asked), Poll::Ready(granted));
        assert_eq!(driver.last.is_none(), granted);
    }
}
