//! HTTP clients without credentials: they cost little, and others can still connect.
//!
//! A separate process, because it holds a thousand descriptors.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "cluster/support/mod.rs"]
mod support;

use std::time::Duration;

use steadfast_cluster::{Service, TestCluster};
use support::cluster;
use support::http::{Call, parse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The time within which the server must act.
const SOON: Duration = Duration::from_secs(20);

const HTTP: [Service; 5] = [
    Service::Management,
    Service::Query,
    Service::Analytics,
    Service::Search,
    Service::Views,
];

async fn connect(cluster: &TestCluster, service: Service) -> TcpStream {
    let address = &cluster.addresses(service)[0];
    TcpStream::connect(address).await.unwrap()
}

/// Sends a request with credentials on a connection that stays open.
async fn ask(stream: &mut TcpStream) -> u16 {
    let call = Call::new("GET", "/pools/default").text();
    let call = call.replace("connection: close\r\n", "");
    stream.write_all(call.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    loop {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
        if let Some(reply) = parse(&received).filter(|reply| reply.whole) {
            return reply.status;
        }
    }
}

#[tokio::test]
async fn idle_connections_make_room_for_others_and_a_user_keeps_its_connection() {
    let cluster = cluster(1, 0).await;
    let mut user = connect(&cluster, Service::Management).await;
    assert_eq!(ask(&mut user).await, 200);
    let mut idle = Vec::new();
    for number in 0..=500 {
        idle.push(connect(&cluster, HTTP[number % HTTP.len()]).await);
    }
    let oldest = timeout(SOON, idle[0].read(&mut [0])).await;
    assert_eq!(oldest.expect("the oldest one is closed").unwrap_or(0), 0);
    assert_eq!(ask(&mut user).await, 200);
    let another = Call::new("GET", "/pools/default");
    let another = another.send(&cluster, Service::Management).await;
    assert_eq!(another.status, 200);
}

#[tokio::test]
async fn a_large_body_is_read_only_of_a_user() {
    let cluster = cluster(1, 0).await;
    let large = "x".repeat(1024 * 1024);
    for service in HTTP {
        for login in [None, Some(("app", "wrong"))] {
            // The head is enough: the server does not wait for the body.
            let call = Call::new("POST", "/anything")
                .by(login)
                .body(large.as_str());
            let head = call.text();
            let head = head.strip_suffix(&large).unwrap();
            let mut stream = connect(&cluster, service).await;
            stream.write_all(head.as_bytes()).await.unwrap();
            assert_eq!(status(stream).await, 401, "{service}");
            // Nor does it read one whose length it does not know.
            let chunked = head.replace("content-length: 1048576", "transfer-encoding: chunked");
            let mut stream = connect(&cluster, service).await;
            stream.write_all(chunked.as_bytes()).await.unwrap();
            let chunk = format!("{:x}\r\n{}\r\n", 17 * 1024, &large[..17 * 1024]);
            stream.write_all(chunk.as_bytes()).await.unwrap();
            assert_eq!(status(stream).await, 401, "{service}");
        }
        let call = Call::new("POST", "/anything").body(large.as_str());
        let of_user = call.send(&cluster, service).await.status;
        assert!(![401, 413].contains(&of_user), "{service}: {of_user}");
    }
}

/// The status of the response on a connection, however the connection ends.
async fn status(mut stream: TcpStream) -> u16 {
    let mut received = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut received)).await;
    assert!(read.is_ok(), "there is no response");
    parse(&received).unwrap().status
}
