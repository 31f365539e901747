//! A call to something flaky, and what an error of it says.
//!
//! Run with `cargo run --example flaky`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io;
use std::time::Duration;

use steadfast::classify::{ByInfo, Classifier};
use steadfast::explain::plan;
use steadfast::{BestEffort, Call, Failure, StrategyExt, explain, reason};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let strategy = BestEffort::default();

    // The server is not there twice, and then it is.
    let mut replies = [
        Err(io::ErrorKind::ConnectionRefused),
        Err(io::ErrorKind::ConnectionReset),
        Ok(42),
    ]
    .into_iter();
    let answer = steadfast::retry(&strategy)
        .operation("get")
        .idempotent(true)
        .timeout(Duration::from_secs(1))
        .observe(&|event| println!("  {event}"))
        .run(|_attempt| {
            let reply = replies
                .next()
                .expect("asked three times")
                .map_err(io::Error::from);
            async move { reply }
        })
        .await;
    println!("get: {answer:?}\n");

    // A write is not sent again once its bytes may have left.
    let mut replies = [
        io::ErrorKind::ConnectionRefused,
        io::ErrorKind::ConnectionReset,
    ]
    .into_iter();
    let error = steadfast::retry(&strategy)
        .operation("put")
        .timeout(Duration::from_secs(1))
        .classify(ByInfo.also(|error: &io::Error| {
            let refused = error.kind() == io::ErrorKind::ConnectionRefused;
            refused.then(|| Failure::not_sent(&reason::NOT_AVAILABLE).with_peer("10.0.0.7:11210"))
        }))
        .run(|_attempt| {
            let reply = replies.next().expect("asked twice");
            async move { Err::<(), _>(io::Error::from(reply)) }
        })
        .await
        .expect_err("the second reply leaves it open");
    println!("{error}\n\n{error:#}\n");

    // What would be decided, without doing it.
    let cut = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
    println!(
        "{}\n",
        explain(&strategy, &Call::new("put"), &cut).expect("ours can be explained")
    );
    let thrice = strategy
        .max_attempts(3)
        .expect("three attempts are possible");
    let failures = std::iter::repeat(Failure::responded(&reason::THROTTLED).throttling());
    println!(
        "{}",
        plan(&thrice, &Call::new("put"), failures).expect("ours can be explained")
    );
}
