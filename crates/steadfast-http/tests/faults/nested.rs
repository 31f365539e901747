//! Integrations inside other retries: attempts never multiply.

use steadfast::classify::any_error;
use steadfast::{Backoff, Standard, retry};
use steadfast_http::HttpRetry;
use steadfast_http::reqwest::SendWithRetry;

use crate::common::server::{Server, ServerAction, answer};

fn three_attempts() -> Standard {
    let builder = Standard::builder().max_attempts(3);
    builder.backoff(Backoff::none()).build().unwrap()
}

#[tokio::test]
async fn send_with_retry_inside_a_retry_does_not_multiply_attempts() {
    let http_retry = HttpRetry::new(three_attempts()).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(vec![ServerAction::CloseRead; 20]).await;
    let strategy = three_attempts();
    let send = || client.get(server.uri()).send_with_retry(&http_retry);

    let call = retry(&strategy).idempotent(true);
    call.run(|_| send()).await.unwrap_err();
    assert_eq!(server.seen().len(), 3, "the outer call leaves it at that");

    let call = retry(&strategy).idempotent(true).classify(any_error);
    call.run(|_| send()).await.unwrap_err();
    assert_eq!(server.seen().len(), 3 + 5, "retries of both add up");

    // A response that the caller turns into an error.
    let server = Server::start(vec![answer(503); 20]).await;
    let send = async || {
        let response = client.get(server.uri()).send_with_retry(&http_retry).await;
        response.unwrap().error_for_status()
    };
    let call = retry(&strategy).idempotent(true).classify(any_error);
    call.run(|_| send()).await.unwrap_err();
    assert_eq!(server.seen().len(), 5);
}
