//! Tests of the default, as a newcomer meets it: the first request of a new client fails.

use std::future::Future;
use std::time::Duration;

use steadfast_http::HttpRetry;

use super::promises::all;
use super::server::{Server, ServerAction, answer, closed_port};
use super::{Client, TestOutcome, get};

const CLIENTS: usize = 100;
/// The least of them whose request must succeed.
const ENOUGH: usize = 99;

/// Runs all of them.
pub async fn hold<C: Client>() {
    for action in [
        answer(500),
        answer(503),
        answer(429),
        ServerAction::CloseRead,
        ServerAction::CloseUnread,
    ] {
        let name = format!("{action:?}");
        survive(&name, || after::<C>(action.clone())).await;
    }
    survive("a refused connection", while_refused::<C>).await;
}

async fn survive<F: Future<Output = TestOutcome>>(fault: &str, request: impl Fn() -> F) {
    let ended = all((0..CLIENTS).map(|_| request()).collect()).await;
    let retried = TestOutcome::success(200, 2);
    let survived = ended.iter().filter(|ended| **ended == retried).count();
    println!("{survived} of {CLIENTS} survive {fault}");
    let other = ended.iter().find(|ended| **ended != retried);
    assert!(survived >= ENOUGH, "{survived} survive {fault}: {other:?}");
}

/// Makes the first request of a client, at a server that does this once.
async fn after<C: Client>(action: ServerAction) -> TestOutcome {
    let server = Server::start([action]).await;
    C::new(HttpRetry::default()).send(get(&server.uri())).await
}

/// Makes the first request of a client before its server listens.
async fn while_refused<C: Client>() -> TestOutcome {
    let (held, uri) = closed_port();
    let client = C::new(HttpRetry::default());
    let listens = async {
        // The retry comes after half a second at the earliest.
        tokio::time::sleep(Duration::from_millis(200)).await;
        Server::start_on(held.listen(16).unwrap())
    };
    let (ended, _server) = tokio::join!(client.send(get(&uri)), listens);
    ended
}
