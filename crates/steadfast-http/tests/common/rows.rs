//! The token bucket, end to end: what each answer makes of the bucket and of
//! the delay, with the numbers of the presets.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steadfast::budget::{Costs, Refund};
use steadfast::event::Decided;
use steadfast::strategy::Cause;
use steadfast::{Backoff, Budget, RetryEvent, Standard};

use super::server::{Do, Server, answer, with};

/// A client of some library under a strategy, that takes a 400 with
/// `x-amzn-errortype: ThrottlingException` for throttling, as AWS means it.
pub trait UnderStrategy: Send + 'static {
    fn under(
        strategy: Standard,
        server: &Server,
        observer: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static,
    ) -> Self;

    /// Whether a request that may be sent twice succeeds.
    fn succeeds(&self) -> impl Future<Output = bool> + Send;
}

struct Row {
    name: &'static str,
    strategy: Standard,
    script: Vec<Do>,
    /// Bucket and delay in milliseconds after each retry.
    retries: Vec<(u32, u64)>,
    end: End,
    bucket: u32,
}

#[derive(Clone, Copy)]
enum End {
    Ok,
    Max,
    Quota,
}

/// Every row, all at once: they wait for their delays side by side.
pub async fn hold<C: UnderStrategy>() {
    let mut running = Vec::new();
    for row in rows() {
        running.push(tokio::spawn(holds::<C>(row)));
    }
    for row in running {
        row.await.unwrap();
    }
    a_hint_of_thirty_seconds_is_waited_for::<C>().await;
}

/// The guidance takes a hint for the least delay. That it is waited for is shown
/// by what was decided: nobody wants a test of half a minute.
async fn a_hint_of_thirty_seconds_is_waited_for<C: UnderStrategy>() {
    let server = Server::start([with(500, "retry-after", "30")]).await;
    let delays = Arc::new(Mutex::new(Vec::new()));
    let observer = {
        let delays = Arc::clone(&delays);
        move |event: &RetryEvent<'_>| match event.decided() {
            Decided::Retry { delay, .. } => delays.lock().unwrap().push(delay),
            Decided::Refused(refusal) => panic!("{refusal}"),
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

async fn holds<C: UnderStrategy>(row: Row) {
    let Row {
        name,
        strategy,
        script,
        retries,
        end,
        bucket,
    } = row;
    let (asked, server) = (script.len(), Server::start(script).await);
    let (budget, log) = (
        strategy.budget().clone(),
        Arc::new(Mutex::new(Log::default())),
    );
    let observer = {
        let (budget, log) = (budget.clone(), Arc::clone(&log));
        move |event: &RetryEvent<'_>| {
            let mut log = log.lock().unwrap();
            match event.decided() {
                Decided::Retry { delay, .. } => log.retries.push((level(&budget), delay)),
                Decided::Refused(refusal) => log.refusal = Some((refusal.cause(), refusal.delay())),
            }
        }
    };
    let began = Instant::now();
    let succeeded = C::under(strategy, &server, observer).succeeds().await;
    let took = began.elapsed();
    let expected: Vec<_> = retries
        .iter()
        .map(|(bucket, delay)| (*bucket, Duration::from_millis(*delay)))
        .collect();
    let Log { retries, refusal } = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(retries, expected, "{name}");
    let waited: Duration = retries.iter().map(|(_, delay)| *delay).sum();
    assert!(
        took >= waited,
        "{name}: {took:?}, but the delays are {waited:?}"
    );
    assert_eq!(level(&budget), bucket, "{name}");
    assert_eq!(server.seen().len(), asked, "{name}");
    match end {
        End::Ok => assert!(succeeded && refusal.is_none(), "{name}: {refusal:?}"),
        End::Max => {
            let limit = retries.len() as u32 + 1;
            let cause = refusal.map(|(cause, _)| cause);
            assert_eq!(cause, Some(Cause::AttemptsUsedUp { limit }), "{name}");
        }
        End::Quota => {
            let (cause, would_wait) = refusal.unwrap();
            assert_eq!(cause, Cause::BudgetEmpty, "{name}");
            // A caller with a loop of its own learns how long to wait.
            assert!(would_wait.is_some_and(|wait| !wait.is_zero()), "{name}");
        }
    }
}

fn level(budget: &Budget) -> u32 {
    budget.level(Instant::now())
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The preset without its jitter, so that delays are exact.
fn aws_2_1() -> steadfast::strategy::StandardBuilder {
    Standard::aws_2_1()
        .to_builder()
        .backoff(Backoff::exponential(ms(50), ms(20_000)).unwrap())
        .throttling_backoff(Backoff::exponential(ms(1000), ms(20_000)).unwrap())
}

/// A hundred times as fast as the preset, so that the test is not slow.
fn fast(preset: Standard, cap: u64) -> steadfast::strategy::StandardBuilder {
    let backoff = Backoff::exponential(ms(10), ms(cap)).unwrap();
    preset.to_builder().backoff(backoff)
}

fn bucket(level: u32, costs: Costs) -> Budget {
    let builder = Budget::builder().costs(costs).initial(level);
    builder.refund(Refund::LastCostOr(1)).build().unwrap()
}

fn rows() -> Vec<Row> {
    let costs_2_1 = Costs {
        normal: 14,
        timeout: 14,
        throttling: 5,
    };
    let costs_2_0 = Costs {
        normal: 5,
        timeout: 10,
        throttling: 5,
    };
    let row = |name,
               builder: steadfast::strategy::StandardBuilder,
               script,
               retries: &[_],
               end,
               bucket| Row {
        name,
        strategy: builder.build().unwrap(),
        script,
        retries: retries.to_vec(),
        end,
        bucket,
    };
    let fails = |status, times| vec![answer(status); times];
    let then_ok = |mut script: Vec<Do>| {
        script.push(answer(200));
        script
    };
    let throttled = |status| with(status, "x-amzn-errortype", "ThrottlingException");
    let five = || aws_2_1().max_attempts(5);
    vec![
        row(
            "2.1: two retries, then success",
            aws_2_1(),
            then_ok(fails(500, 2)),
            &[(486, 50), (472, 100)],
            End::Ok,
            486,
        ),
        row(
            "2.1: attempts used up",
            aws_2_1(),
            fails(502, 3),
            &[(486, 50), (472, 100)],
            End::Max,
            472,
        ),
        row(
            "2.1: bucket 14",
            aws_2_1().budget(bucket(14, costs_2_1)),
            fails(500, 2),
            &[(0, 50)],
            End::Quota,
            0,
        ),
        row(
            "2.1: bucket 0",
            aws_2_1().budget(bucket(0, costs_2_1)),
            fails(500, 1),
            &[],
            End::Quota,
            0,
        ),
        row(
            "2.1: five attempts",
            five(),
            fails(500, 5),
            &[(486, 50), (472, 100), (458, 200), (444, 400)],
            End::Max,
            444,
        ),
        row(
            "2.1: five attempts, cap 200 ms",
            five().max_backoff(ms(200)),
            fails(500, 5),
            &[(486, 50), (472, 100), (458, 200), (444, 200)],
            End::Max,
            444,
        ),
        row(
            "2.1: throttling as a 400",
            aws_2_1(),
            then_ok(vec![throttled(400)]),
            &[(495, 1000)],
            End::Ok,
            500,
        ),
        row(
            "2.1: throttling as a 429",
            aws_2_1(),
            then_ok(vec![throttled(429)]),
            &[(495, 1000)],
            End::Ok,
            500,
        ),
        row(
            "2.0: two retries, then success",
            fast(Standard::aws_2_0(), 200),
            then_ok(fails(500, 2)),
            &[(495, 10), (490, 20)],
            End::Ok,
            495,
        ),
        row(
            "2.0: bucket 5",
            fast(Standard::aws_2_0(), 200).budget(bucket(5, costs_2_0)),
            vec![answer(500), answer(502)],
            &[(0, 10)],
            End::Quota,
            0,
        ),
        row(
            "2.0: five attempts at a cap",
            fast(Standard::aws_2_0(), 30).max_attempts(5),
            fails(500, 5),
            &[(495, 10), (490, 20), (485, 30), (480, 30)],
            End::Max,
            480,
        ),
        row(
            "guidance: two retries, then success",
            fast(Standard::guidance(), 200),
            then_ok(fails(500, 2)),
            &[(495, 10), (490, 20)],
            End::Ok,
            491,
        ),
        row(
            "guidance: a timeout costs ten",
            fast(Standard::guidance(), 200),
            then_ok(fails(504, 1)),
            &[(490, 10)],
            End::Ok,
            491,
        ),
        // Hints, clamped between the backoff and five seconds more.
        row(
            "2.1: hint 1500 ms",
            aws_2_1(),
            then_ok(vec![with(500, "x-amz-retry-after", "1500")]),
            &[(486, 1500)],
            End::Ok,
            500,
        ),
        row(
            "2.1: hint 0",
            aws_2_1(),
            then_ok(vec![with(500, "x-amz-retry-after", "0")]),
            &[(486, 50)],
            End::Ok,
            500,
        ),
        row(
            "2.1: hint invalid",
            aws_2_1(),
            then_ok(vec![with(500, "x-amz-retry-after", "invalid")]),
            &[(486, 50)],
            End::Ok,
            500,
        ),
        row(
            "2.1: hint -100",
            aws_2_1(),
            then_ok(vec![with(500, "x-amz-retry-after", "-100")]),
            &[(486, 50)],
            End::Ok,
            500,
        ),
        row(
            "2.1: hint 10 s",
            aws_2_1(),
            then_ok(vec![with(500, "x-amz-retry-after", "10000")]),
            &[(486, 5050)],
            End::Ok,
            500,
        ),
    ]
}
