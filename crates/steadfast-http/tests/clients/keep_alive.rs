//! HTTP/1.1: connections that end while they are used again.

use super::raw::{Act, Fault, Server};
use crate::common::clients::{MiddlewareClient, ReqwestClient, TowerClient};
use crate::common::promises::client;
use crate::common::{Client, TestOutcome, TestRequest, get, post};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn fault(name: &'static str, act: Act) -> Fault {
    Fault {
        name,
        carried_out: true,
        proves_nothing_happened: false,
        act,
    }
}

/// Reads, so that there is a connection in the pool, then writes. Returns the outcome of
/// the write, and how often it was carried out.
async fn write_again<C: Client>(method: &'static str, script: Vec<Fault>) -> (TestOutcome, usize) {
    let server = Server::start(false, script).await;
    let client = client::<C>();
    assert_eq!(client.send(get(&server.uri())).await.status, Some(200));
    let ask = TestRequest {
        method,
        ..post(&server.uri(), b"pay 5")
    };
    let ended = client.send(ask).await;
    (ended, server.carried_out() - 1)
}

fn succeeded(ended: &TestOutcome) -> bool {
    ended.status == Some(200) && ended.cause.is_none()
}

/// A pooled connection that ends once it has the request.
async fn ends_with_the_request<C: Client>() {
    for (name, act) in [
        ("closed at its first byte", Act::CloseAfterReading(1)),
        ("closed after it", Act::Write(Vec::new())),
        ("reset after it", Act::Reset(Vec::new())),
        ("closed in the response", Act::Write(OK[..9].to_vec())),
    ] {
        for method in ["PUT", "POST"] {
            let first = fault("fine", Act::KeepAlive(OK.to_vec()));
            let script = vec![first, fault(name, act.clone())];
            let (ended, carried_out) = write_again::<C>(method, script).await;
            let case = format!("{method} {name}: carried out {carried_out} times, {ended:?}");
            let again = method == "PUT";
            assert_eq!(succeeded(&ended), again, "{case}");
            assert!(again || ended.ambiguous && carried_out == 1, "{case}");
        }
    }
}

/// A server that closes after its response, while the client writes the next request.
async fn races_with_the_request<C: Client>() {
    for _ in 0..30 {
        let script = vec![fault("closing", Act::Write(OK.to_vec()))];
        let (ended, carried_out) = write_again::<C>("POST", script).await;
        let case = format!("carried out {carried_out} times, {ended:?}");
        assert!(carried_out <= 1, "{case}");
        let honest = ended.ambiguous || carried_out == usize::from(succeeded(&ended));
        assert!(honest, "{case}");
    }
}

#[tokio::test]
async fn a_reused_connection_that_ends_is_in_flight_under_tower() {
    ends_with_the_request::<TowerClient>().await;
    races_with_the_request::<TowerClient>().await;
}

#[tokio::test]
async fn a_reused_connection_that_ends_is_in_flight_under_reqwest() {
    ends_with_the_request::<ReqwestClient>().await;
    races_with_the_request::<ReqwestClient>().await;
}

#[tokio::test]
async fn a_reused_connection_that_ends_is_in_flight_under_the_middleware() {
    ends_with_the_request::<MiddlewareClient>().await;
    races_with_the_request::<MiddlewareClient>().await;
}
