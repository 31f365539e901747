//! Attempts that change what they borrow.

use std::sync::Arc;

use steadfast::{BestEffort, Failure, RetryStrategy, retry};

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
