//! Attempts that change what they borrow.

use std::future::pending;
use std::sync::Arc;

use steadfast::{Attempt, BestEffort, Failure, RetryStrategy, Standard, retry};

use crate::{MS, unsent, waiting};

/// A connection that fails twice, and keeps count in itself.
#[derive(Default)]
struct Connection {
    sent: Vec<String>,
}

impl Connection {
    async fn send(&mut self, what: &str) -> Result<usize, Failure> {
        tokio::task::yield_now().await;
        self.sent.push(what.to_owned());
        tokio::task::yield_now().await;
        match self.sent.len() {
            1 | 2 => Err(unsent()),
            sent => Ok(sent),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_borrows_the_same_state_mutably() {
    let mut connection = Connection::default();
    let sent = retry(&waiting(MS))
        .classify(Failure::clone)
        .run_with(&mut connection, async |connection, attempt| {
            connection.send(&format!("try {}", attempt.number())).await
        })
        .await;
    assert_eq!(sent.expect("the third succeeds"), 3);
    assert_eq!(connection.sent, ["try 1", "try 2", "try 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_change_what_it_captures() {
    let (mut attempts, mut names) = (0, Vec::new());
    let result = retry(&waiting(MS))
        .classify(Failure::clone)
        .run_with(&mut (), async |(), attempt| {
            attempts += attempt.number();
            names.push("one more");
            tokio::task::yield_now().await;
            if names.len() < 3 {
                return Err(unsent());
            }
            Ok(names.len())
        })
        .await;
    assert_eq!(result.expect("the third succeeds"), 3);
    assert_eq!((attempts, names.len()), (1 + 2 + 3, 3));
}

#[tokio::test(start_paused = true)]
async fn the_future_can_be_spawned() {
    let strategy: Arc<dyn RetryStrategy> = Arc::new(BestEffort::default());
    let greeting = String::from("hello");
    let task = tokio::spawn(async move {
        let mut state = (Connection::default(), 0);
        let sent = retry(&strategy)
            .timeout(10_000 * MS)
            .attempt_timeout(1000 * MS)
            .classify(Failure::clone)
            .run_with(&mut state, async move |(connection, count), _| {
                *count += 1;
                connection.send(&greeting).await
            })
            .await;
        (sent.map_err(|error| error.verdict()), state.1)
    });
    let (sent, count) = task.await.expect("it does not panic");
    assert_eq!((sent, count), (Ok(3), 3));
}

/// An attempt that is a function, and a future that is boxed: both must be `Send` too.
#[test]
fn a_function_can_be_the_attempt_and_the_future_can_be_boxed() {
    async fn send(connection: &mut Connection, _: Attempt) -> Result<usize, Failure> {
        connection.send("hello").await
    }
    fn boxed(
        connection: &mut Connection,
    ) -> std::pin::Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        let call = retry(Standard::guidance()).classify(Failure::clone);
        Box::pin(async move { call.run_with(connection, send).await.is_ok() })
    }
    drop(boxed(&mut Connection::default()));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_cut_off_leaves_the_state_as_it_was_then() {
    let mut steps = Vec::new();
    let error = retry(&waiting(MS))
        .idempotent(true)
        .timeout(500 * MS)
        .attempt_timeout(200 * MS)
        .classify(Failure::clone)
        .run_with(&mut steps, async |steps, attempt| {
            steps.push((attempt.number(), "begun"));
            pending::<()>().await;
            steps.push((attempt.number(), "ended"));
            Ok::<(), Failure>(())
        })
        .await
        .expect_err("no attempt ends");
    assert!(error.is_timeout());
    assert_eq!(steps, [(1, "begun"), (2, "begun"), (3, "begun")]);
}
