//! The token bucket, end to end: the bucket and the delay after each response,
//! with the numbers of the presets.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steadfast::budget::{Costs, Refund};
use steadfast::strategy::Cause;
use steadfast::{Backoff, Budget, RetryEvent, Standard};

use super::server::{Server, ServerAction, answer, with};

/// A client of some library under a strategy. It takes a response with
/// `x-amzn-errortype: ThrottlingException` for throttling, as AWS does.
pub trait UnderStrategy: Send + 'static {
    fn under(
        strategy: Standard,
        server: &Server,
        observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static,
    ) -> Self;

    /// Returns whether an idempotent request succeeds.
    fn succeeds(&self) -> impl Future<Output = bool> + Send;
}

/// Preset and changes of it; responses; bucket and delay in ms after each retry;
/// end; bucket at the end. `T` marks throttling, and `500@1500` asks for a delay.
const ROWS: &[&str] = &[
    "2.1                      | 500 500 200         | 486:50 472:100               | ok    | 486",
    "2.1                      | 502 502 502         | 486:50 472:100               | max   | 472",
    "2.1 bucket=14            | 500 500             | 0:50                         | quota | 0",
    "2.1 bucket=0             | 500                 |                              | quota | 0",
    "2.1 attempts=5           | 500 500 500 500 500 | 486:50 472:100 458:200 444:400 | max | 444",
    "2.1 attempts=5 cap=200   | 500 500 500 500 500 | 486:50 472:100 458:200 444:200 | max | 444",
    "2.1                      | 400T 200            | 495:1000                     | ok    | 500",
    "2.1                      | 429T 200            | 495:1000                     | ok    | 500",
    "2.0                      | 500 500 200         | 495:10 490:20                | ok    | 495",
    "2.0 bucket=5             | 500 502             | 0:10                         | quota | 0",
    "2.0 attempts=5 cap=30    | 500 500 500 500 500 | 495:10 490:20 485:30 480:30  | max   | 480",
    "guidance                 | 500 500 200         | 495:10 490:20                | ok    | 491",
    // A timeout costs ten.
    "guidance                 | 504 200             | 490:10                       | ok    | 491",
    // Hints, clamped between the backoff and five seconds more.
    "2.1                      | 500@1500 200        | 486:1500                     | ok    | 500",
    "2.1                      | 500@0 200           | 486:50                       | ok    | 500",
    "2.1                      | 500@invalid 200     | 486:50                       | ok    | 500",
    "2.1                      | 500@-100 200        | 486:50                       | ok    | 500",
    "2.1                      | 500@10000 200       | 486:5050                     | ok    | 500",
];

/// Checks every row. They run concurrently, because they wait for their delays.
pub async fn hold<C: UnderStrategy>() {
    let mut running = Vec::new();
    for row in ROWS {
        running.push(tokio::spawn(check::<C>(row)));
    }
    for row in running {
        row.await.unwrap();
    }
    a_hint_of_thirty_seconds_is_waited_for::<C>().await;
}

/// The guidance takes a hint for the least delay. The test sees the decision and
/// does not wait for half a minute.
async fn a_hint_of_thirty_seconds_is_waited_for<C: UnderStrategy>() {
    let server = Server::start([with(500, "retry-after", "30")]).await;
    let delays = Arc::new(Mutex::new(Vec::new()));
    let observer = {
        let delays = Arc::clone(&delays);
        move |event: &RetryEvent<'_>| match event.delay() {
            Some(delay) => delays.lock().unwrap().push(delay),
            None => panic!("{event}"),
        }
    };
    let client = C::under(Standard::guidance(), &server, observer);
    let mut running = tokio::spawn(async move { client.succeeds().await });
    while delays.lock().unwrap().is_empty() {
        tokio::time::sleep(ms(1)).await;
    }
    // And it is really waiting.
    assert!(tokio::time::timeout(ms(100), &mut running).await.is_err());
    running.abort();
    assert_eq!(server.seen().len(), 1);
    let delays = delays.lock().unwrap();
    let (least, most) = (ms(30_000), ms(31_000));
    assert!(
        delays.len() == 1 && delays[0] >= least && delays[0] <= most,
        "{delays:?}"
    );
}

#[derive(Default)]
struct Log {
    retries: Vec<(u32, Duration)>,
    refusal: Option<(Cause, Option<Duration>)>,
}

async fn check<C: UnderStrategy>(row: &'static str) {
    let columns: Vec<&str> = row.split('|').map(str::trim).collect();
    let [preset, responses, retries, end, bucket] = columns[..] else {
        panic!("{row}");
    };
    let strategy = strategy(preset);
    let script: Vec<_> = responses.split_whitespace().map(response).collect();
    let expected: Vec<_> = retries.split_whitespace().map(retry).collect();
    let (asked, server) = (script.len(), Server::start(script).await);
    let budget = strategy.budget().clone();
    let log = Arc::new(Mutex::new(Log::default()));
    let observer = {
        let (budget, log) = (budget.clone(), Arc::clone(&log));
        move |event: &RetryEvent<'_>| {
            let mut log = log.lock().unwrap();
            log.retries
                .extend(event.delay().map(|delay| (level(&budget), delay)));
            log.refusal = event
                .refusal()
                .map(|refusal| (refusal.cause(), refusal.delay()));
        }
    };
    let began = Instant::now();
    let succeeded = C::under(strategy, &server, observer).succeeds().await;
    let took = began.elapsed();
    let Log { retries, refusal } = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(retries, expected, "{row}");
    let waited: Duration = retries.iter().map(|(_, delay)| *delay).sum();
    assert!(took >= waited, "{row}: {took:?} is less than {waited:?}");
    assert_eq!(level(&budget).to_string(), bucket, "{row}");
    assert_eq!(server.seen().len(), asked, "{row}");
    match end {
        "ok" => assert!(succeeded && refusal.is_none(), "{row}: {refusal:?}"),
        "max" => {
            let limit = retries.len() as u32 + 1;
            let cause = refusal.map(|(cause, _)| cause);
            assert_eq!(cause, Some(Cause::AttemptsUsedUp { limit }), "{row}");
        }
        "quota" => {
            let (cause, would_wait) = refusal.unwrap();
            assert_eq!(cause, Cause::BudgetEmpty, "{row}");
            // A caller with its own loop learns how long to wait.
            assert!(would_wait.is_some_and(|wait| !wait.is_zero()), "{row}");
        }
        other => panic!("{other}"),
    }
}

fn level(budget: &Budget) -> u32 {
    budget.level()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A preset without its jitter, so that delays are exact. Other presets than 2.1
/// are a hundred times as fast, so that the test is not slow.
fn strategy(preset: &str) -> Standard {
    let mut words = preset.split(' ');
    let preset = words.next().unwrap();
    let settings: HashMap<&str, u64> = words
        .map(|word| word.split_once('=').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect();
    let cap = settings.get("cap").copied();
    let exponential = |base, cap| Backoff::exponential(ms(base), ms(cap)).unwrap();
    let (mut builder, normal, timeout) = match preset {
        "2.1" => {
            let builder = Standard::aws_2_1().to_builder();
            let builder = builder.backoff(exponential(50, 20_000));
            (
                builder.throttling_backoff(exponential(1000, 20_000)),
                14,
                14,
            )
        }
        "2.0" => (Standard::aws_2_0().to_builder(), 5, 10),
        _ => (Standard::guidance().to_builder(), 5, 10),
    };
    builder = match cap {
        Some(cap) if preset == "2.1" => builder.max_backoff(ms(cap)),
        None if preset == "2.1" => builder,
        _ => builder.backoff(exponential(10, cap.unwrap_or(200))),
    };
    if let Some(attempts) = settings.get("attempts") {
        builder = builder.max_attempts(*attempts as u32);
    }
    if let Some(level) = settings.get("bucket") {
        let costs = Costs {
            normal,
            timeout,
            throttling: 5,
        };
        let budget = Budget::builder().costs(costs).initial(*level as u32);
        builder = builder.budget(budget.refund(Refund::LastCostOr(1)).build().unwrap());
    }
    builder.build().unwrap()
}

fn response(text: &str) -> ServerAction {
    let status = |text: &str| text.parse().unwrap();
    if let Some(text) = text.strip_suffix('T') {
        return with(status(text), "x-amzn-errortype", "ThrottlingException");
    }
    match text.split_once('@') {
        Some((text, delay)) => with(status(text), "x-amz-retry-after", delay),
        None => answer(status(text)),
    }
}

fn retry(text: &str) -> (u32, Duration) {
    let (bucket, delay) = text.split_once(':').unwrap();
    (bucket.parse().unwrap(), ms(delay.parse().unwrap()))
}
